/**
 * The way back: what has taken effect on the request changes the response too. Steps in reverse
 * order of the registry, PostRouting before PreRouting, then the header filters of the rule and of
 * the backendRef, so that on responses, too, the most specific has the last word.
 */
import type { Exchange } from '../../exchange/exchange.ts'
import { changeHeaders } from '../../model/header-changes.ts'
import type { Step } from '../../policies/define.ts'
import type { RequestContext } from './request-context.ts'
import { keepSession } from './session/persistence.ts'

const noSteps: readonly Step[] = []

/** Does anything change this response? Most have nothing to do. */
export function changesResponse(context: RequestContext): boolean {
  return (
    context.postRoutingDone > 0 ||
    context.preRoutingDone > 0 ||
    context.ruleFilters ||
    context.backendFilters ||
    context.session !== undefined ||
    context.call?.changeResponse !== undefined
  )
}

/** Changes `exchange.response`; a promise only where a step needs time. */
export function changeResponse(context: RequestContext, exchange: Exchange): void | Promise<void> {
  // The backend's own part comes first: it stands next to the endpoint.
  const pending = context.call?.changeResponse?.(exchange)
  if (pending === undefined) return changeBySteps(context, exchange)
  return pending.then(() => (context.over ? undefined : changeBySteps(context, exchange)))
}

function changeBySteps(context: RequestContext, exchange: Exchange): void | Promise<void> {
  const hasSteps = context.postRoutingDone > 0 || context.preRoutingDone > 0
  const steps = hasSteps ? passedSteps(context) : noSteps
  for (let at = steps.length - 1; at >= 0; at--) {
    const pending = steps[at]?.onResponse?.(exchange)
    if (pending !== undefined) return finishSteps(pending, steps.slice(0, at), context, exchange)
  }
  changeByFilters(context, exchange)
}

async function finishSteps(
  pending: Promise<void>,
  before: readonly Step[],
  context: RequestContext,
  exchange: Exchange,
): Promise<void> {
  await pending
  for (const step of before.toReversed()) {
    if (context.over) return
    await step.onResponse?.(exchange)
  }
  if (!context.over) changeByFilters(context, exchange)
}

/** Steps that let the request pass, in the order in which they did. */
function passedSteps(context: RequestContext): readonly Step[] {
  const post = context.postRouting?.steps.slice(0, context.postRoutingDone) ?? []
  if (context.preRoutingDone === 0) return post
  return [...(context.preRouting?.steps.slice(0, context.preRoutingDone) ?? []), ...post]
}

function changeByFilters(context: RequestContext, exchange: Exchange): void {
  const { response } = exchange
  if (response === undefined) return
  // An answer of the gateway itself comes from no endpoint.
  if (context.session !== undefined && exchange === context.exchange) keepSession(context)
  if (context.ruleFilters) {
    for (const changes of context.placement?.rule.filters.responseHeaders ?? []) {
      changeHeaders(response, changes)
    }
  }
  if (context.backendFilters) {
    for (const changes of context.backend?.filters.responseHeaders ?? []) {
      changeHeaders(response, changes)
    }
  }
}

/** After a response step has failed, none is run again: the same one would fail again. */
export function forgetResponseChanges(context: RequestContext): void {
  context.preRoutingDone = 0
  context.postRoutingDone = 0
  context.ruleFilters = false
  context.backendFilters = false
  context.session = undefined
}
