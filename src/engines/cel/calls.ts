/** Compiles calls of functions and methods. */
import { type CompileContext, findLocal, type VariableScope } from './context.ts'
import { CelError, isCelError, noOverload } from './error.ts'
import { type EvaluationFrame, type Step, spend, stepsOfLength } from './frame.ts'
import type { ApplyFunction, CelFunction } from './functions/define.ts'
import { functions, namespaces } from './functions/table.ts'
import { viewMethods } from './headers.ts'
import { patternProblem, replacementProblem } from './patterns.ts'
import { unknownName } from './problem.ts'
import type { CallExpression, Expression, MethodExpression } from './syntax.ts'
import { type CelResult, type CelValue, CelView, typeName } from './value.ts'

/** Compiles `name(args)`. */
export function callStep(
  call: CallExpression,
  scope: VariableScope | undefined,
  context: CompileContext,
): Step {
  const found = functions.get(call.name)
  if (found === undefined || found.style === 'method' || call.name.includes('.')) {
    for (const arg of call.args) context.step(arg, scope)
    return noSuchFunction(call, unknownName('function', call.name, functions.keys()), context)
  }
  return apply(call, call.name, found, call.args, scope, context)
}

/** Compiles `of.name(args)`, where `of` is a value or a namespace. */
export function methodStep(
  method: MethodExpression,
  scope: VariableScope | undefined,
  context: CompileContext,
): Step {
  const { of, name, args } = method
  if (of.op === 'name' && isNamespace(of.name, scope, context)) {
    const found = functions.get(`${of.name}.${name}`)
    if (found !== undefined) return apply(method, `${of.name}.${name}`, found, args, scope, context)
  }
  const found = functions.get(name)
  const isFunction = found !== undefined && found.style !== 'function'
  if (!isFunction && !viewMethods.has(name)) {
    for (const part of [of, ...args]) context.step(part, scope)
    return noSuchFunction(method, unknownName('method', name, functions.keys()), context)
  }
  const own = viewMethods.has(name)
  if (!own && isFunction) return apply(method, name, found, [of, ...args], scope, context)
  return viewMethodStep(method, isFunction ? found : undefined, scope, context)
}

/**
 * If variables are declared, an unknown function is a problem of the expression. Otherwise, calling it is an
 * error at evaluation, like reading an unknown variable.
 */
function noSuchFunction(part: Expression, message: string, context: CompileContext): Step {
  if (context.variables !== undefined) return context.refuse(part, message)
  const error = new CelError('type', message)
  return () => error
}

function isNamespace(
  name: string,
  scope: VariableScope | undefined,
  context: CompileContext,
): boolean {
  const isShadowed = findLocal(scope, name) !== undefined || context.variables?.has(name) === true
  return namespaces.has(name) && !isShadowed
}

function apply(
  call: Expression,
  name: string,
  found: CelFunction,
  args: readonly Expression[],
  scope: VariableScope | undefined,
  context: CompileContext,
): Step {
  const steps = args.map((arg) => context.step(arg, scope))
  if (args.length < found.min || args.length > found.max) {
    const wanted = found.min === found.max ? `${found.min}` : `${found.min} to ${found.max}`
    const message = `${name}() has ${args.length} arguments, it takes ${wanted}`
    return context.refuse(call, `${message} with what it is called on`)
  }
  const problem = constantProblem(name, args)
  if (problem !== undefined) return context.refuse(call, problem)
  return found.apply === undefined
    ? variadicStep(found.applyAll, steps)
    : fixedStep(found.apply, steps)
}

/** Finds a problem of constant arguments when the expression is compiled. */
function constantProblem(name: string, args: readonly Expression[]): string | undefined {
  const [, pattern, replacement] = args
  const isRegex = name === 'matches' || name === 'regexReplace'
  if (!isRegex || pattern?.op !== 'literal' || typeof pattern.value !== 'string') return undefined
  const problem = patternProblem(pattern.value)
  if (problem !== undefined) return `the pattern is not valid: ${problem}`
  const isText = replacement?.op === 'literal' && typeof replacement.value === 'string'
  return isText ? replacementProblem(replacement.value as string) : undefined
}

const omitted = undefined as unknown as CelValue

function fixedStep(apply: ApplyFunction, steps: readonly Step[]): Step {
  const [first, second, third, fourth] = steps
  if (first === undefined) return (frame) => apply(frame, omitted, omitted, omitted, omitted)
  if (second === undefined) {
    return (frame) => {
      const a = first(frame)
      if (a instanceof CelError) return a
      return spendOn(a, frame) ?? apply(frame, a, omitted, omitted, omitted)
    }
  }
  if (third === undefined) {
    return (frame) => {
      const a = first(frame)
      if (a instanceof CelError) return a
      const b = second(frame)
      if (b instanceof CelError) return b
      return spendOn(a, frame) ?? spendOn(b, frame) ?? apply(frame, a, b, omitted, omitted)
    }
  }
  const rest = fourth === undefined ? [first, second, third] : [first, second, third, fourth]
  return (frame) => {
    const values = evaluateAll(rest, frame)
    if (isCelError(values)) return values
    return apply(
      frame,
      values[0] ?? null,
      values[1] ?? null,
      values[2] ?? null,
      values[3] ?? omitted,
    )
  }
}

/** Spends steps for a long argument, because most functions take time in proportion to their arguments. */
function spendOn(value: CelValue, frame: EvaluationFrame): CelError | undefined {
  const isLong = typeof value === 'string' || value instanceof Uint8Array
  return isLong && value.length > 64 ? spend(frame, stepsOfLength(value.length)) : undefined
}

function evaluateAll(
  steps: readonly Step[],
  frame: EvaluationFrame,
): readonly CelValue[] | CelError {
  const values: CelValue[] = []
  for (const step of steps) {
    const value = step(frame)
    if (isCelError(value)) return value
    const cost = spendOn(value, frame)
    if (cost !== undefined) return cost
    values.push(value)
  }
  return values
}

function variadicStep(applyAll: CelFunction['applyAll'], steps: readonly Step[]): Step {
  return (frame) => {
    const values = evaluateAll(steps, frame)
    if (isCelError(values)) return values
    return applyAll === undefined ? noFunction : applyAll(frame, values)
  }
}

const noFunction = new CelError('internal', 'a function without code')

/** Calls the method of a view if the receiver is a view that has it, otherwise the function of that name. */
function viewMethodStep(
  { of, name, args }: MethodExpression,
  found: CelFunction | undefined,
  scope: VariableScope | undefined,
  context: CompileContext,
): Step {
  const receiver = context.step(of, scope)
  const steps = args.map((arg) => context.step(arg, scope))
  return (frame) => {
    const value = receiver(frame)
    if (isCelError(value)) return value
    const cost = spendOn(value, frame)
    if (cost !== undefined) return cost
    const values = evaluateAll(steps, frame)
    if (isCelError(values)) return values
    const own = value instanceof CelView ? value.method(name, values) : undefined
    return own ?? applyFound(name, found, frame, [value, ...values])
  }
}

function applyFound(
  name: string,
  found: CelFunction | undefined,
  frame: EvaluationFrame,
  values: readonly CelValue[],
): CelResult {
  if (found === undefined || values.length < found.min || values.length > found.max) {
    return noOverload(name, ...values.map(typeName))
  }
  if (found.applyAll !== undefined) return found.applyAll(frame, values)
  const [a = null, b = omitted, c = omitted, d = omitted] = values
  return found.apply?.(frame, a, b, c, d) ?? noFunction
}
