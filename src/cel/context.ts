/** What the parts of the compiler share. */
import type { Step } from './frame.ts'
import { type CelProblem, problemAt } from './problem.ts'
import type { Expression } from './syntax.ts'
import type { Variables } from './variables.ts'

/** Variables that macros have bound around an expression, the innermost first. */
export interface Scope {
  readonly name: string
  /** Where its value is in `Frame.locals`. */
  readonly slot: number
  readonly outer: Scope | undefined
}

export function findLocal(scope: Scope | undefined, name: string): Scope | undefined {
  let found = scope
  while (found !== undefined && found.name !== name) found = found.outer
  return found
}

export class CompileContext {
  readonly source: string
  /** Names of all variables that may be set; undefined: any name is a variable. */
  readonly variables: Variables | undefined
  readonly problems: CelProblem[] = []
  /** Local variables in use at once, at most. */
  locals = 0
  /** Beginnings of names of variables, the longest first; the last one is empty. */
  readonly scopes: readonly string[]
  readonly #step: (expression: Expression, scope: Scope | undefined, context: this) => Step

  constructor(
    source: string,
    variables: Variables | undefined,
    step: (expression: Expression, scope: Scope | undefined, context: CompileContext) => Step,
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

  step(expression: Expression, scope: Scope | undefined): Step {
    return this.#step(expression, scope, this)
  }

  /** Binds one more variable. */
  bind(name: string, outer: Scope | undefined): Scope {
    const slot = outer === undefined ? 0 : outer.slot + 1
    this.locals = Math.max(this.locals, slot + 1)
    return { name, slot, outer }
  }

  /** Why a variable cannot have a field; undefined where it may, or where this is no variable. */
  fieldProblem(of: Expression, field: string, scope: Scope | undefined): string | undefined {
    const known = this.#fieldsOf(of, scope)
    if (known === undefined || known.fields.has(field)) return undefined
    return `${known.path} has no field ${field}, but ${[...known.fields.keys()].join(', ')}`
  }

  /** What is known of the fields of a variable, or of a field of one. */
  #fieldsOf(
    of: Expression,
    scope: Scope | undefined,
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

  /** Notes a problem; the step stands in for the part that has it. */
  refuse(expression: Expression, message: string): Step {
    this.problems.push(problemAt(this.source, expression.at, message))
    return () => null
  }
}
