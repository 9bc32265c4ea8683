/**
 * Changes responses. First come the policies that have run on the request, in reverse order: PostRouting,
 * then PreRouting. Then come the header filters of the rule and of the backendRef. As for requests, the most
 * specific change is the last one.
 */
import { FollowingExchange } from '../../../ground/exchange/derived.ts'
import type { Exchange, ResponseHead } from '../../../ground/exchange/exchange.ts'
import { FieldPairs, MemoryBody } from '../../../ground/exchange/memory-message.ts'
import { changeHeaders } from '../../../ground/model/header-changes.ts'
import { dropReserved } from '../../sign-in/other-routes.ts'
import type { LocalResponse } from './error-response.ts'
import type { RequestContext } from './request-context.ts'
import { keepSession } from './session-persistence.ts'

/** Changes `exchange.response`. Returns a promise only if a step returns one. */
export function changeResponse(context: RequestContext, exchange: Exchange): void | Promise<void> {
  // The backend's call comes first because it is closest to the endpoint.
  const pending = context.call?.changeResponse?.(exchange)
  if (pending === undefined) return changeBySteps(context, exchange)
  return pending.then(() => (context.over ? undefined : changeBySteps(context, exchange)))
}

function changeBySteps(context: RequestContext, exchange: Exchange): void | Promise<void> {
  const { steps } = context
  for (let at = (steps?.passed ?? 0) - 1; at >= 0; at--) {
    const pending = steps?.at(at)?.onResponse?.(exchange)
    if (pending !== undefined) return finishSteps(pending, at - 1, context, exchange)
  }
  changeByFilters(context, exchange)
}

async function finishSteps(
  pending: Promise<void>,
  from: number,
  context: RequestContext,
  exchange: Exchange,
): Promise<void> {
  await pending
  for (let at = from; at >= 0; at--) {
    if (context.over) return
    await context.steps?.at(at)?.onResponse?.(exchange)
  }
  if (!context.over) changeByFilters(context, exchange)
}

function changeByFilters(context: RequestContext, exchange: Exchange): void {
  const { response } = exchange
  if (response === undefined) return
  if (context.isBesideSignIn) dropReserved(response.headers)
  // A response of the gateway itself comes from no endpoint, so it begins no session.
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

/**
 * Prevents further changes of the response. Called after a response step failed, because it would fail
 * again.
 */
export function forgetResponseChanges(context: RequestContext): void {
  // Records of the decision still say which steps the request has passed.
  if (context.steps !== undefined) context.steps.isResponseDone = true
  context.ruleFilters = false
  context.backendFilters = false
  context.session = undefined
}

/** An exchange whose response is made by the gateway, for response steps. */
export class LocalExchange extends FollowingExchange {
  readonly #fields: FieldPairs
  readonly responseBody: MemoryBody
  readonly response: ResponseHead

  constructor(exchange: Exchange, { status, headers, body }: LocalResponse) {
    super(exchange)
    this.#fields = new FieldPairs(headers)
    this.responseBody = new MemoryBody(body)
    this.response = { status, headers: this.#fields }
  }

  /** Returns the response after the steps have run. */
  finished(): LocalResponse {
    return {
      status: this.response.status,
      headers: this.#fields.pairs,
      body: this.responseBody.content,
    }
  }

  get request() {
    return this.origin.request
  }
  get requestBody() {
    return this.origin.requestBody
  }
}
