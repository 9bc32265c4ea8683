/** Runs the steps of policies on a request. */
import type { RespondVerdict, Verdict } from '../../../ground/exchange/exchange.ts'
import type { Step } from '../../policies/define.ts'
import type { BoundPolicies } from '../config/policies.ts'
import type { CompiledRule } from '../config/rules.ts'
import type { EarlyResponse } from './backend-call.ts'
import { type RequestContext, StepProgress } from './request-context.ts'
import type { GatewayRuntime } from './runtime.ts'

/** The field of StepProgress that counts the steps. */
type StepCount = 'preRoutingDone' | 'postRoutingDone' | 'directResponsesDone' | 'backendStepsDone'

/** The first step that reads the headers which name a message, and the rule of the request. */
interface NameReading {
  readonly at: number
  readonly rule: CompiledRule | undefined
}

/** Returns undefined if no step reads the headers. */
export function nameReading(
  { firstReader }: BoundPolicies,
  rule: CompiledRule | undefined,
): NameReading | undefined {
  return firstReader < 0 ? undefined : { at: firstReader, rule }
}

export function progressOf(context: RequestContext): StepProgress {
  context.steps ??= new StepProgress()
  return context.steps
}

/**
 * Runs steps in order until one responds. `count` is incremented for each step that does not respond. `names`:
 * before its step, headers are set that name the message of the client.
 */
export function runSteps(
  context: RequestContext,
  runtime: GatewayRuntime,
  steps: readonly Step[],
  count: StepCount,
  from = 0,
  names?: NameReading,
): EarlyResponse | Promise<EarlyResponse> {
  const progress = progressOf(context)
  for (let at = from; at < steps.length; at++) {
    if (at === names?.at) {
      const named = runtime.kinds
        .having('nameMessage', names.rule)
        ?.nameMessage?.(context, undefined, names.rule)
      if (named instanceof Promise) {
        return named.then((refused) => {
          if (context.over) return undefined
          return refused ?? runSteps(context, runtime, steps, count, at)
        })
      }
      if (named !== undefined) return named
    }
    const step = steps[at]
    progress.running = step
    const verdict = step && runtime.runStep(step, context.exchange)
    if (verdict instanceof Promise) {
      return verdict.then((settled) => {
        if (context.over) return undefined
        const response = responseOf(settled)
        if (response !== undefined) return response
        progress[count]++
        progress.running = undefined
        return runSteps(context, runtime, steps, count, at + 1, names)
      })
    }
    const response = responseOf(verdict)
    if (response !== undefined) return response
    progress[count]++
    progress.running = undefined
  }
  return undefined
}

function responseOf(verdict: Verdict | undefined): RespondVerdict | undefined {
  return verdict?.kind === 'respond' ? verdict : undefined
}
