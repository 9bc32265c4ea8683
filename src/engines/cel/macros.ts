/** Macros: calls that take their arguments as expressions instead of values. */

import { hasStep } from './access.ts'
import {
  bindStep,
  existsOneStep,
  filterKeysStep,
  filterStep,
  type Loop,
  mapStep,
  mapValuesStep,
  quantifierStep,
} from './comprehension.ts'
import { type CompileContext, findLocal, type VariableScope } from './context.ts'
import { isCelError } from './error.ts'
import type { Step } from './frame.ts'
import {
  type CallExpression,
  childrenOf,
  type Expression,
  type MethodExpression,
} from './syntax.ts'
import { variablesStep } from './variables.ts'

type Build = (loop: Loop) => Step

/** Macros of the form `range.name(variable, expression)`. */
const loops: Readonly<Record<string, Build>> = {
  all: (loop) => quantifierStep('all', loop),
  exists: (loop) => quantifierStep('exists', loop),
  exists_one: existsOneStep,
  existsOne: existsOneStep,
  filter: filterStep,
  map: (loop) => mapStep(loop, undefined),
  mapValues: mapValuesStep,
  filterKeys: filterKeysStep,
  with: bindStep,
}

/** Returns the step of a macro call; undefined for all other calls. */
export function macroStep(
  expression: MethodExpression | CallExpression,
  scope: VariableScope | undefined,
  context: CompileContext,
): Step | undefined {
  return expression.op === 'call'
    ? callMacro(expression, scope, context)
    : methodMacro(expression, scope, context)
}

function callMacro(
  call: CallExpression,
  scope: VariableScope | undefined,
  context: CompileContext,
) {
  const { name, args } = call
  const [first, second] = args
  if (name === 'has') {
    if (args.length !== 1 || first?.op !== 'field') {
      return context.refuse(call, 'has() takes one field, such as has(jwt.sub)')
    }
    const problem = context.fieldProblem(first.of, first.name, scope)
    if (problem !== undefined) return context.refuse(first, problem)
    return hasStep(context.step(first.of, scope), first.name)
  }
  if (name === 'default') {
    if (args.length !== 2 || first === undefined || second === undefined) {
      return context.refuse(call, 'default() takes an expression and a replacement')
    }
    return defaultStep(context.step(first, scope), context.step(second, scope))
  }
  if (name === 'coalesce') return coalesceStep(args.map((arg) => context.step(arg, scope)))
  if (name === 'variables' && args.length === 0) return variablesStep()
  return undefined
}

/** Evaluates to the first value, or to the second if the first is an error of kind `missing`. */
function defaultStep(value: Step, fallback: Step): Step {
  return (frame) => {
    const result = value(frame)
    return isCelError(result) && result.kind === 'missing' ? fallback(frame) : result
  }
}

/** Evaluates to the first value that is neither an error nor null, or to null if there is none. */
function coalesceStep(candidates: readonly Step[]): Step {
  return (frame) => {
    for (const candidate of candidates) {
      const result = candidate(frame)
      if (result !== null && !isCelError(result)) return result
    }
    return null
  }
}

function methodMacro(
  method: MethodExpression,
  scope: VariableScope | undefined,
  context: CompileContext,
) {
  const { name, of, args } = method
  const isCel = of.op === 'name' && of.name === 'cel' && findLocal(scope, 'cel') === undefined
  if (isCel && name === 'bind' && args.length === 3) return bind(method, scope, context)
  const [variable, body, transform] = args
  const build = Object.hasOwn(loops, name) ? loops[name] : undefined
  if (build === undefined || variable === undefined || body === undefined) return undefined
  if (args.length === 2) return build(loopOf(of, variable, body, scope, context))
  if (args.length !== 3 || name !== 'map' || transform === undefined) return undefined
  const loop = loopOf(of, variable, body, scope, context)
  const within = variable.op === 'name' ? context.bind(variable.name, scope) : scope
  return mapStep({ ...loop, steps: loop.steps + weigh(transform) }, context.step(transform, within))
}

function bind(
  method: MethodExpression,
  scope: VariableScope | undefined,
  context: CompileContext,
): Step {
  const [variable, value, body] = method.args
  if (variable === undefined || value === undefined || body === undefined) {
    return context.refuse(method, 'cel.bind() takes a name, a value and an expression')
  }
  return bindStep(loopOf(value, variable, body, scope, context))
}

function loopOf(
  range: Expression,
  variable: Expression,
  body: Expression,
  scope: VariableScope | undefined,
  context: CompileContext,
): Loop {
  if (variable.op !== 'name') {
    const refused = context.refuse(variable, 'a macro needs a plain name for its variable')
    return { range: refused, slot: 0, body: refused, steps: 1 }
  }
  const inner = context.bind(variable.name, scope)
  return {
    range: context.step(range, scope),
    slot: inner.slot,
    body: context.step(body, inner),
    steps: 1 + weigh(body),
  }
}

/** Counts the operations of an expression. The iterations of a loop are counted when it runs. */
function weigh(expression: Expression): number {
  return childrenOf(expression).reduce((sum, child) => sum + weigh(child), 1)
}
