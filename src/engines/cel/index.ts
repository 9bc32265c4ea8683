/**
 * Expressions: compiled once, evaluated often, never with an exception.
 *
 *   const outcome = compileCel('request.path.startsWith("/a")', { variables: gatewayVariables })
 *   if (outcome.ok) outcome.value.evaluate(activationOf({ request: { path: '/a/b' } })) // true
 */
import { fail, type Outcome, succeed } from '../../ground/base/outcome.ts'
import { unavailableReads } from './availability.ts'
import { compileStep } from './compile.ts'
import { CompileContext } from './context.ts'
import { CelError } from './error.ts'
import type { Activation, EvaluationFrame, Step } from './frame.ts'
import { typeNames } from './functions/convert.ts'
import { namespaces } from './functions/table.ts'
import { type ExpressionPointName, expressionPoints, type Variables } from './gateway-variables.ts'
import { doesMention, findMentions, type MentionedVariables } from './mentions.ts'
import { parseExpression } from './parser.ts'
import { type CelProblem, problemAt } from './problem.ts'
import type { CelResult } from './value.ts'

export { CelError, errorText, isCelError } from './error.ts'
export { FlattenedMap } from './flattened.ts'
export type { Activation } from './frame.ts'
export { toText } from './functions/convert.ts'
export {
  type ExpressionPointName,
  expressionPoints,
  gatewayVariables,
  stages,
  variableTable,
} from './gateway-variables.ts'
export { combinedLines, type HeaderSource, HeadersView } from './headers.ts'
export { parseJson, writeJson } from './json.ts'
export { positionedText } from './problem.ts'
export { CelDuration, CelTimestamp } from './time.ts'
export {
  type CelMapValue,
  type CelRecord,
  type CelResult,
  CelType,
  CelUint,
  type CelValue,
  CelView,
  isList,
  isMap,
  mapGet,
  mapKeys,
} from './value.ts'
export { activationOf } from './variables.ts'

interface CelOptions {
  /**
   * The declared variables and their fields. Other names are problems, and a declared variable that is not
   * set is null. If omitted, any name is a variable, and one that is not set is an error of kind `missing`.
   */
  readonly variables?: Variables
  /**
   * The container in which names are looked up first. In `a.b`, `x` is the variable `a.b.x`, else `a.x`, else
   * `x` (CEL language definition, Name resolution). Used only if `variables` is omitted.
   */
  readonly container?: string
  /** Maximum number of steps of one evaluation. A step is about one operation, or 16 characters of text. */
  readonly costLimit?: number
}

/** Takes about ten milliseconds. */
const defaultCostLimit = 500_000

/** A compiled expression; immutable. */
export class CelProgram {
  readonly source: string
  readonly #step: Step
  readonly #locals: number
  readonly #costLimit: number
  readonly #mentions: MentionedVariables

  /** Called by `compileCel` and `compileOrFail` only. */
  constructor(
    source: string,
    step: Step,
    locals: number,
    costLimit: number,
    mentions: MentionedVariables,
  ) {
    this.source = source
    this.#step = step
    this.#locals = locals
    this.#costLimit = costLimit
    this.#mentions = mentions
  }

  /**
   * Returns the value or an error. Never throws, even if the activation does.
   *
   * @param share divides the maximum number of steps, for one of several evaluations that share it
   */
  evaluate(activation: Activation, share = 1): CelResult {
    const locals = this.#locals === 0 ? noLocals : []
    const frame: EvaluationFrame = { activation, locals, budget: this.#costLimit / share }
    try {
      const result = this.#step(frame)
      return frame.budget < 0 ? tooCostly : result
    } catch (error) {
      return fromThrown(error)
    }
  }

  /** Names of the variables that the expression reads. */
  get variables(): readonly string[] {
    return [...new Set(this.#mentions.paths.map(([name = '']) => name))]
  }

  /**
   * Returns true if the expression may read the value at a dotted path such as `request.body`: it reads that,
   * a value around it (`request`), a part of it (`request.body.model`), or a computed field (`request[x]`).
   */
  mentions(path: string): boolean {
    return doesMention(this.#mentions, path)
  }
}

const noLocals: never[] = []
const tooCostly = new CelError('cost', 'the evaluation takes too many steps')

/** Converts what was thrown: by a supplier of a variable, or by JavaScript when stack or memory runs out. */
function fromThrown(error: unknown): CelError {
  return error instanceof RangeError
    ? new CelError('limit', 'a value is too large or nests too deeply')
    : new CelError('internal', `the evaluation failed: ${error instanceof Error ? error.name : ''}`)
}

/**
 * Compiles an expression. Problems are syntax errors, unknown functions and methods, wrong numbers of
 * arguments, invalid constant patterns and, if `variables` is set, unknown variables.
 */
export function compileCel(
  source: string,
  { variables, container, costLimit = defaultCostLimit }: CelOptions = {},
): Outcome<CelProgram, CelProblem> {
  const parsed = parseExpression(source)
  if (!parsed.ok) return parsed
  const context = new CompileContext(source, variables, compileStep, container)
  const step = context.step(parsed.value, undefined)
  const [first, ...rest] = context.problems
  if (first !== undefined) return fail(first, ...rest)
  const mentions = findMentions(parsed.value, (name) => isVariable(name, variables))
  return succeed(new CelProgram(source, step, context.locals, costLimit, mentions))
}

/**
 * Finds what an expression of the gateway reads that never has a value at the point where it runs. An
 * expression that does not compile has no such problems.
 */
export function availabilityProblems(source: string, point: ExpressionPointName): CelProblem[] {
  const parsed = parseExpression(source)
  if (!parsed.ok) return []
  return unavailableReads(parsed.value, expressionPoints[point]).map(({ at, message }) =>
    problemAt(source, at, message),
  )
}

/** Whether everything that an expression reads can have a value at the point. */
export function isAvailable(source: string, point: ExpressionPointName): boolean {
  return availabilityProblems(source, point).length === 0
}

/** Returns true if a name is that of a variable. Names of namespaces and types are not, unless declared. */
function isVariable(name: string, variables: Variables | undefined): boolean {
  if (variables !== undefined) return variables.has(name)
  return !namespaces.has(name) && !typeNames.has(name) && name !== 'cel'
}

/**
 * Compiles an expression for the proxy. If it does not compile, every evaluation returns an error of kind
 * `value`, so that only what depends on the expression fails.
 */
export function compileOrFail(source: string, options: CelOptions = {}): CelProgram {
  const outcome = compileCel(source, options)
  if (outcome.ok) return outcome.value
  const error = new CelError('value', `no expression: ${outcome.problems[0]?.message}`)
  return new CelProgram(source, () => error, 0, defaultCostLimit, { paths: [], readsAll: false })
}
