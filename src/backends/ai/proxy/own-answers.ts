/** What the gateway itself tells clients of language models. */

import type { RespondVerdict } from '../../../exchange/exchange.ts'
import type { ErrorWriter } from '../../../proxy/request/error-response.ts'
import type { JsonObject } from '../json.ts'
import type { LlmError } from '../llm-error.ts'
import type { Refusal } from '../policy/config.ts'
import type { RouteType } from '../policy/schema.ts'
import { writeErrorFor } from '../serve/errors.ts'
import { ProviderFailure } from '../serve/provider-failure.ts'

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

/** Nothing is read of these, so their clients may understand anything. */
const unread: ReadonlySet<RouteType> = new Set<RouteType>(['Passthrough', 'Realtime'])

/** Writes errors in the format of the client; undefined if nothing that it says is read. */
export function errorWriterFor(route: RouteType): ErrorWriter | undefined {
  if (unread.has(route)) return undefined
  return (status, message) => JSON.stringify(writeErrorFor(route, { status, message }))
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
