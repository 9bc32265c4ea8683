/** Text -> our own tree. The library's parser is used here and nowhere else. */
import { type ASTNode, Environment } from '@marcbachmann/cel-js'
import { fail, type Outcome, succeed } from '../base/outcome.ts'
import { bytesOfLiteral } from './bytes-literal.ts'
import { type CelProblem, problemAt } from './problem.ts'
import { CelUint, type CelValue } from './value.ts'

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

/** `at` is the offset in the source, in UTF-16 units. */
export type Expression = { readonly at: number } & (
  | { readonly op: 'literal'; readonly value: CelValue }
  | { readonly op: 'name'; readonly name: string }
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

/** Deepest nesting of an expression; evaluation takes a few stack frames per level. */
const maxDepth = 250

const maxNodes = 10_000

const environment = new Environment({
  unlistedVariablesAreDyn: true,
  limits: { maxAstNodes: maxNodes, maxDepth },
})

interface ParserError {
  readonly summary?: string
  readonly range?: { readonly start: number }
}

/** Parses a text of any content; never throws. */
export function parseExpression(source: string): Outcome<Expression, CelProblem> {
  let root: ASTNode
  try {
    root = environment.parse(source).ast
  } catch (error) {
    // The parser recurses without bound into chains of `!` and `-`.
    if (error instanceof RangeError) return fail(problemAt(source, 0, 'it nests too deeply'))
    const { summary, range } = error as ParserError
    return fail(problemAt(source, range?.start ?? 0, summary ?? 'it cannot be parsed'))
  }
  const deep = tooDeepAt(root)
  if (deep !== undefined) return fail(problemAt(source, deep, 'it nests too deeply'))
  const problems: CelProblem[] = []
  const tree = convert(root, problems)
  const [first, ...rest] = problems
  return first === undefined ? succeed(tree) : fail(first, ...rest)
}

function nodesBelow(node: ASTNode): readonly ASTNode[] {
  switch (node.op) {
    case 'value':
    case 'id':
      return []
    case '.':
    case '.?':
      return [node.args[0]]
    case 'call':
      return node.args[1]
    case 'rcall':
      return [node.args[1], ...node.args[2]]
    case '!_':
    case '-_':
      return [node.args]
    case 'map':
      return node.args.flat()
    default:
      return node.args
  }
}

/** Offset of a node that lies too deep; operands of one chain of `&&` or `||` lie equally deep. */
function tooDeepAt(root: ASTNode): number | undefined {
  const open = [{ node: root, depth: 1 }]
  for (let item = open.pop(); item !== undefined; item = open.pop()) {
    const { node, depth } = item
    if (depth > maxDepth) return node.start
    const isChain = node.op === '&&' || node.op === '||'
    for (const child of nodesBelow(node)) {
      open.push({ node: child, depth: isChain && child.op === node.op ? depth : depth + 1 })
    }
  }
  return undefined
}

type Convert = (node: ASTNode) => Expression

function convert(node: ASTNode, problems: CelProblem[]): Expression {
  const at = node.start
  const below: Convert = (child) => convert(child, problems)
  switch (node.op) {
    case 'value':
      return { op: 'literal', at, value: literal(node, false, problems) }
    case 'id':
      return { op: 'name', at, name: node.args }
    case '.':
    case '.?':
      return { op: 'field', at: node.pos, of: below(node.args[0]), name: node.args[1] }
    case '[]':
    case '[?]':
      return { op: 'index', at, of: below(node.args[0]), key: below(node.args[1]) }
    case 'call':
      return { op: 'call', at, name: node.args[0], args: node.args[1].map(below) }
    case 'rcall': {
      const [name, of, args] = node.args
      return { op: 'method', at: nameAt(node, of), name, of: below(of), args: args.map(below) }
    }
    case 'list':
      return { op: 'list', at, items: node.args.map(below) }
    case 'map':
      return { op: 'map', at, entries: node.args.map(([k, v]) => [below(k), below(v)] as const) }
    default:
      return convertOperator(node, below, problems)
  }
}

/** Where the name of a method stands; the start of the call where a comment hides it. */
function nameAt(node: ASTNode, of: ASTNode): number {
  const dot = /^[\s)]*\.\s*/.exec(node.input.slice(of.end, node.end))?.[0]
  return dot === undefined ? node.start : of.end + dot.length
}

type OperatorNode = Exclude<
  ASTNode,
  { op: 'value' | 'id' | '.' | '.?' | '[]' | '[?]' | 'call' | 'rcall' | 'list' | 'map' }
>

function convertOperator(node: OperatorNode, below: Convert, problems: CelProblem[]): Expression {
  const at = node.start
  switch (node.op) {
    case '?:': {
      const [condition, whenTrue, whenFalse] = node.args
      return {
        op: 'if',
        at,
        condition: below(condition),
        whenTrue: below(whenTrue),
        whenFalse: below(whenFalse),
      }
    }
    case '&&':
      return { op: 'and', at, operands: chain(node, '&&').map(below) }
    case '||':
      return { op: 'or', at, operands: chain(node, '||').map(below) }
    case '!_':
      return { op: 'not', at, operand: below(node.args) }
    case '-_': {
      // The least int can be written only as one: its size alone is no int.
      const { args } = node
      if (args.op === 'value' && typeof args.args === 'bigint') {
        return { op: 'literal', at, value: literal(args, true, problems) }
      }
      return { op: 'negate', at, operand: below(args) }
    }
    default: {
      const [left, right] = node.args
      return { op: 'binary', at, operator: node.op, left: below(left), right: below(right) }
    }
  }
}

/** Operands of a chain such as `a && b && c`, which the parser nests. */
function chain(root: ASTNode, op: '&&' | '||'): ASTNode[] {
  const operands: ASTNode[] = []
  const open = [root]
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (node.op === op) open.push(node.args[1], node.args[0])
    else operands.push(node)
  }
  return operands
}

function literal(
  node: ASTNode & { op: 'value' },
  isNegative: boolean,
  problems: CelProblem[],
): CelValue {
  const { args: value, input, start, end } = node
  if (typeof value === 'bigint') {
    const number = isNegative ? -value : value
    if (BigInt.asIntN(64, number) === number) return number
    problems.push(problemAt(input, start, 'the integer is outside 64 bits'))
    return 0n
  }
  if (value instanceof Uint8Array) return bytesOfLiteral(input.slice(start, end), value)
  if (typeof value === 'object' && value !== null) return new CelUint(BigInt(value.toString()))
  return value
}

/** The direct parts of an expression. */
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
