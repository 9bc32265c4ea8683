/** The syntax tree of an expression. */
import type { CelValue } from './value.ts'

export type BinaryOperator =
  | '=='
  | '!='
  | '<'
  | '<='
  | '>'
  | '>='
  | 'in'
  | '+'
  | '-'
  | '*'
  | '/'
  | '%'

/** A node of the tree; `at` is its offset in the source, in UTF-16 units. */
export type Expression = { readonly at: number } & (
  | { readonly op: 'literal'; readonly value: CelValue }
  /** `isGlobal` is set if the name has a leading dot, so that it is not a variable of a macro. */
  | { readonly op: 'name'; readonly name: string; readonly isGlobal?: boolean }
  | { readonly op: 'field'; readonly of: Expression; readonly name: string }
  | { readonly op: 'index'; readonly of: Expression; readonly key: Expression }
  | { readonly op: 'call'; readonly name: string; readonly args: readonly Expression[] }
  | {
      readonly op: 'method'
      readonly name: string
      readonly of: Expression
      readonly args: readonly Expression[]
    }
  | { readonly op: 'list'; readonly items: readonly Expression[] }
  | { readonly op: 'map'; readonly entries: readonly (readonly [Expression, Expression])[] }
  | {
      readonly op: 'if'
      readonly condition: Expression
      readonly whenTrue: Expression
      readonly whenFalse: Expression
    }
  | { readonly op: 'and' | 'or'; readonly operands: readonly Expression[] }
  | { readonly op: 'not' | 'negate'; readonly operand: Expression }
  | {
      readonly op: 'binary'
      readonly operator: BinaryOperator
      readonly left: Expression
      readonly right: Expression
    }
)

export type MethodExpression = Expression & { readonly op: 'method' }
export type CallExpression = Expression & { readonly op: 'call' }

/** Returns the direct parts of an expression. */
export function childrenOf(expression: Expression): readonly Expression[] {
  switch (expression.op) {
    case 'literal':
    case 'name':
      return []
    case 'field':
      return [expression.of]
    case 'index':
      return [expression.of, expression.key]
    case 'call':
      return expression.args
    case 'method':
      return [expression.of, ...expression.args]
    case 'list':
      return expression.items
    case 'map':
      return expression.entries.flat()
    case 'if':
      return [expression.condition, expression.whenTrue, expression.whenFalse]
    case 'and':
    case 'or':
      return expression.operands
    case 'not':
    case 'negate':
      return [expression.operand]
    case 'binary':
      return [expression.left, expression.right]
  }
}
