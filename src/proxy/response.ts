/**
 * The way back: what has taken effect on the request changes the response too. Steps in reverse
 * order of the registry, PostRouting before PreRouting, then the header filters of the rule and of
 * the backendRef, so that on responses, too, the most specific has the last word.
 */
import type { Exchange } from '../exchange/exchange.ts'
import { changeHeaders } from '../model/header-changes.ts'
import type { Step } from '../policies/define.ts'
import { keepSession } from './session/persistence.ts'
import type { Walk } from './walk.ts'

const noSteps: readonly Step[] = []

/** Does anything change this response? Most have nothing to do. */
export function changesResponse(walk: Walk): boolean {
  return (
    walk.postRoutingDone > 0 ||
    walk.preRoutingDone > 0 ||
    walk.ruleFilters ||
    walk.backendFilters ||
    walk.session !== undefined ||
    walk.pool !== undefined
  )
}

/** Changes `exchange.response`; a promise only where a step needs time. */
export function changeResponse(walk: Walk, exchange: Exchange): void | Promise<void> {
  // Whoever picked the endpoint stands next to it.
  const told = walk.pool?.onResponse(exchange)
  if (told === undefined) return changeBySteps(walk, exchange)
  return told.then(() => (walk.over ? undefined : changeBySteps(walk, exchange)))
}

function changeBySteps(walk: Walk, exchange: Exchange): void | Promise<void> {
  const hasSteps = walk.postRoutingDone > 0 || walk.preRoutingDone > 0
  const steps = hasSteps ? passedSteps(walk) : noSteps
  for (let at = steps.length - 1; at >= 0; at--) {
    const pending = steps[at]?.onResponse?.(exchange)
    if (pending !== undefined) return finishSteps(pending, steps.slice(0, at), walk, exchange)
  }
  changeByFilters(walk, exchange)
}

async function finishSteps(
  pending: Promise<void>,
  before: readonly Step[],
  walk: Walk,
  exchange: Exchange,
): Promise<void> {
  await pending
  for (const step of before.toReversed()) {
    if (walk.over) return
    await step.onResponse?.(exchange)
  }
  if (!walk.over) changeByFilters(walk, exchange)
}

/** Steps that let the request pass, in the order in which they did. */
function passedSteps(walk: Walk): readonly Step[] {
  const post = walk.postRouting?.steps.slice(0, walk.postRoutingDone) ?? []
  if (walk.preRoutingDone === 0) return post
  return [...(walk.preRouting?.steps.slice(0, walk.preRoutingDone) ?? []), ...post]
}

function changeByFilters(walk: Walk, exchange: Exchange): void {
  const { response } = exchange
  if (response === undefined) return
  // An answer of the gateway itself comes from no endpoint.
  if (walk.session !== undefined && exchange === walk.exchange) keepSession(walk)
  if (walk.ruleFilters) {
    for (const changes of walk.placement?.rule.filters.responseHeaders ?? []) {
      changeHeaders(response, changes)
    }
  }
  if (walk.backendFilters) {
    for (const changes of walk.backend?.filters.responseHeaders ?? []) {
      changeHeaders(response, changes)
    }
  }
}

/** After a response step has failed, none is run again: the same one would fail again. */
export function forgetResponseChanges(walk: Walk): void {
  walk.preRoutingDone = 0
  walk.postRoutingDone = 0
  walk.ruleFilters = false
  walk.backendFilters = false
  walk.session = undefined
}
