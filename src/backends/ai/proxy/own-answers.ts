/** Answers of the gateway itself to clients of language models. */
import type { RespondVerdict } from '../../../exchange/exchange.ts'
import { type ErrorWriter, noRetryHeader } from '../../../proxy/request/error-response.ts'
import { writeErrorFor, writeLimitErrorFor } from '../client-formats.ts'
import type { JsonObject } from '../json.ts'
import { type LlmError, UnsupportedByProviderError } from '../llm-error.ts'
import type { Refusal } from '../policy/config.ts'
import type { RouteType } from '../policy/schema.ts'
import { ProviderFailure } from '../serve/provider-error.ts'

/** Detail of requests that the chosen provider does not support. */
export const unsupported = 'the provider does not support a part of the request'

const json = ['content-type', 'application/json'] as const

export function ownAnswer(status: number, body: JsonObject): RespondVerdict {
  const reason = 'DirectResponse'
  return { kind: 'respond', status, headers: [json], body: JSON.stringify(body), reason }
}

/** Returns an error in the format of the client, so that its SDK can report it. */
export function llmRefusal(route: RouteType, refusal: LlmError): RespondVerdict {
  const { status, message } = refusal
  const isOfProvider = refusal instanceof ProviderFailure
  const error = isOfProvider ? refusal.error : { status, message }
  const body = JSON.stringify(writeErrorFor(route, error))
  const reason = status < 500 && !isOfProvider ? 'InvalidRequest' : 'UpstreamFailure'
  return { kind: 'respond', status, headers: [json], body, reason, detail: detailOf(refusal) }
}

/** Does not contain the message, which may quote the request or the answer. */
function detailOf(refusal: LlmError): string {
  if (refusal instanceof UnsupportedByProviderError) return unsupported
  if (refusal instanceof ProviderFailure) return 'the provider answered with an error'
  return refusal.status < 500
    ? 'the request cannot be read or converted'
    : 'the answer of the provider cannot be read or converted'
}

/** Route types whose formats the gateway does not know. */
const unknownFormats: ReadonlySet<RouteType> = new Set<RouteType>(['Passthrough', 'Realtime'])

/** Returns a writer of errors in the client's format; undefined if the gateway does not know the format. */
export function errorWriterFor(route: RouteType): ErrorWriter | undefined {
  if (unknownFormats.has(route)) return undefined
  return (status, message, limit) =>
    JSON.stringify(
      limit === undefined
        ? writeErrorFor(route, { status, message })
        : writeLimitErrorFor(route, status, limit),
    )
}

/** Returns the response of a guard that rejects; `answer` of its webhook takes precedence. */
export function guardRefusal(
  { status, message }: Refusal,
  answer?: { readonly status: number | undefined; readonly body: string | undefined },
): RespondVerdict {
  return {
    kind: 'respond',
    status: answer?.status ?? status,
    // The same request would be refused again.
    headers: [['content-type', 'text/plain'], noRetryHeader],
    body: answer?.body ?? message,
    reason: 'Guardrail',
  }
}
