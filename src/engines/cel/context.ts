import { nearest } from '../../ground/base/suggest.ts'
import type { Step } from './frame.ts'
import type { Variables } from './gateway-variables.ts'
import { type CelProblem, problemAt } from './problem.ts'
import type { Expression } from './syntax.ts'

/** A variable that a macro binds, and those that are bound around it. */
export interface VariableScope {
  readonly name: string
  /** Index of the variable's value in `Frame.locals`. */
  readonly slot: number
  readonly outer: VariableScope | undefined
}

export function findLocal(
  scope: VariableScope | undefined,
  name: string,
): VariableScope | undefined {
  let found = scope
  while (found !== undefined && found.name !== name) found = found.outer
  return found
}

/** State that the parts of the compiler share. */
export class CompileContext {
  readonly source: string
  /** The declared variables; if undefined, any name is a variable. */
  readonly variables: Variables | undefined
  readonly problems: CelProblem[] = []
  /** Maximum number of macro variables that are in use at once. */
  locals = 0
  /** Prefixes with which the name of a variable is looked up, longest first; the last one is empty. */
  readonly scopes: readonly string[]
  readonly #step: (expression: Expression, scope: VariableScope | undefined, context: this) => Step

  constructor(
    source: string,
    variables: Variables | undefined,
    step: (
      expression: Expression,
      scope: VariableScope | undefined,
      context: CompileContext,
    ) => Step,
    container = '',
  ) {
    const parts = container === '' ? [] : container.split('.')
    this.scopes = [...parts, ''].map((_, at) =>
      parts
        .slice(0, parts.length - at)
        .map((part) => `${part}.`)
        .join(''),
    )
    this.source = source
    this.variables = variables
    this.#step = step
  }

  step(expression: Expression, scope: VariableScope | undefined): Step {
    return this.#step(expression, scope, this)
  }

  /** Binds another macro variable inside `outer`. */
  bind(name: string, outer: VariableScope | undefined): VariableScope {
    const slot = outer === undefined ? 0 : outer.slot + 1
    this.locals = Math.max(this.locals, slot + 1)
    return { name, slot, outer }
  }

  /** Returns why a variable cannot have a field; undefined if it can, or if `of` is not a variable. */
  fieldProblem(
    of: Expression,
    field: string,
    scope: VariableScope | undefined,
  ): string | undefined {
    const known = this.#fieldsOf(of, scope)
    if (known === undefined || known.fields.has(field)) return undefined
    const names = [...known.fields.keys()]
    const meant = nearest(field, names)
    const hint = meant === undefined ? `it has ${names.join(', ')}` : `did you mean ${meant}?`
    return `${known.path} has no field ${field}; ${hint}`
  }

  /** Returns the declared fields of a variable, or of a field of one. */
  #fieldsOf(
    of: Expression,
    scope: VariableScope | undefined,
  ): { readonly path: string; readonly fields: Variables } | undefined {
    if (of.op === 'name') {
      const fields =
        findLocal(scope, of.name) === undefined ? this.variables?.get(of.name) : undefined
      return fields && { path: of.name, fields }
    }
    if (of.op !== 'field') return undefined
    const outer = this.#fieldsOf(of.of, scope)
    const fields = outer?.fields.get(of.name)
    return outer && fields && { path: `${outer.path}.${of.name}`, fields }
  }

  /** Records a problem of an expression; returns a step to use instead of the expression. */
  refuse(expression: Expression, message: string): Step {
    this.problems.push(problemAt(this.source, expression.at, message))
    return () => null
  }
}
