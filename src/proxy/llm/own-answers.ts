/** What the gateway itself tells clients of language models. */

import type { JsonObject } from '../../backends/ai/json.ts'
import type { LlmError } from '../../backends/ai/llm-error.ts'
import type { Refusal } from '../../backends/ai/policy/config.ts'
import type { RouteType } from '../../backends/ai/policy/schema.ts'
import { writeErrorFor } from '../../backends/ai/serve/errors.ts'
import { ProviderFailure } from '../../backends/ai/serve/provider-failure.ts'
import type { GatewayError } from '../../errors/index.ts'
import type { RespondVerdict } from '../../exchange/exchange.ts'
import type { RequestContext } from '../request-context.ts'
import { answerOf, type LocalResponse, refusalText, rescue } from '../rescue.ts'
import type { GatewayRuntime } from '../runtime.ts'
import { routeTypesAhead } from './model-route.ts'

const json = ['content-type', 'application/json'] as const
const plain = ['content-type', 'text/plain'] as const

export function ownAnswer(status: number, body: JsonObject): RespondVerdict {
  const reason = 'DirectResponse'
  return { kind: 'respond', status, headers: [json], body: JSON.stringify(body), reason }
}

/** In the format of the client, so that its SDK can tell what is wrong. */
export function llmRefusal(route: RouteType, refusal: LlmError): RespondVerdict {
  const { status, message } = refusal
  const isProviders = refusal instanceof ProviderFailure
  const error = isProviders ? refusal.error : { status, message }
  const body = JSON.stringify(writeErrorFor(route, error))
  const reason = status < 500 && !isProviders ? 'InvalidRequest' : 'UpstreamFailure'
  return { kind: 'respond', status, headers: [json], body, reason }
}

/** Nothing is read of these, so nobody knows what their clients understand. */
const unread: ReadonlySet<RouteType> = new Set<RouteType>(['Passthrough', 'Realtime'])

/** An error of the gateway in the way that its client understands. */
export function answerToError(
  context: RequestContext,
  error: GatewayError,
  runtime: GatewayRuntime,
): LocalResponse {
  const { row } = error
  const route = routeOf(context, runtime)
  if (route === undefined) {
    const isGrpcRoute = context.placement?.rule.resource.route.kind === 'GRPCRoute'
    return rescue(error, context.exchange.request.headers, isGrpcRoute)
  }
  const body = writeErrorFor(route, { status: row.status, message: row.text })
  return { status: row.status, headers: [json], body: JSON.stringify(body) }
}

/** What a policy answers. If it refuses a request to a model, the body has the format of the client. */
export function answerToVerdict(
  context: RequestContext,
  verdict: RespondVerdict,
  runtime: GatewayRuntime,
): LocalResponse {
  const route = verdict.refusal === true ? routeOf(context, runtime) : undefined
  if (route === undefined) return answerOf(verdict, context.exchange.request.headers)
  const { status, headers = [] } = verdict
  const body = writeErrorFor(route, { status, message: refusalText(verdict) })
  return { status, headers: [json, ...headers], body: JSON.stringify(body) }
}

/** The format of the client; undefined where it speaks to no model, or nobody reads what it says. */
function routeOf(context: RequestContext, runtime: GatewayRuntime): RouteType | undefined {
  const types = context.model?.routeTypes ?? routeTypesAhead(context, runtime)
  if (types === undefined) return undefined
  const route = context.model?.route ?? types.typeOf(context.exchange.request.path) ?? 'Completions'
  return unread.has(route) ? undefined : route
}

/** In the words of the webhook where it has any, else of whoever wrote the guard. */
export function guardRefusal(
  { status, message }: Refusal,
  said?: { readonly status: number | undefined; readonly body: string | undefined },
): RespondVerdict {
  return {
    kind: 'respond',
    status: said?.status ?? status,
    headers: [plain],
    body: said?.body ?? message,
    reason: 'Guardrail',
  }
}
