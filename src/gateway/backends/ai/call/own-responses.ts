/** Responses of the gateway itself to clients of language models. */

import type { ProviderError } from '../../../../engines/messages/chat.ts'
import { openAiErrors } from '../../../../engines/messages/formats/completions/index.ts'
import { formatOf, type RouteType } from '../../../../engines/messages/formats/index.ts'
import { anthropicErrors } from '../../../../engines/messages/formats/messages/index.ts'
import type { JsonObject } from '../../../../engines/messages/json/json.ts'
import {
  type LlmError,
  UnsupportedByProviderError,
} from '../../../../engines/messages/llm-error.ts'
import {
  clientText,
  ProviderFailure,
  providerFailed,
} from '../../../../engines/messages/response/provider-error.ts'
import type { RespondVerdict, SpentLimit } from '../../../../ground/exchange/exchange.ts'
import type { ErrorWriter } from '../../../proxy/request/error-response.ts'
import type { Refusal } from '../policy/config.ts'
import type { ErrorForm, KnownPath } from '../policy/known-paths.ts'
import type { RouteTypes } from '../policy/route-types.ts'

/** Wait after which clients should give up, if they can be told, instead of repeating the request. */
const longWaitMs = 60_000

/** Detail of requests that the chosen provider does not support. */
export const unsupported = 'the provider does not support a part of the request'

const json = ['content-type', 'application/json'] as const

/** Tells the SDKs of vendors A and C not to wait and repeat a request to a language model. */
export const noRetryHeader = ['x-should-retry', 'false'] as const

export function ownResponse(status: number, body: JsonObject): RespondVerdict {
  const reason = 'DirectResponse'
  return { kind: 'respond', status, headers: [json], body: JSON.stringify(body), reason }
}

/**
 * Returns an error in the format of the client, so that its SDK can report it. `isProtected` is set if guards
 * protect the response, so that the error must not quote it.
 */
export function llmRefusal(
  route: RouteType,
  refusal: LlmError,
  isProtected = false,
): RespondVerdict {
  const { status } = refusal
  const message = clientText(refusal, isProtected)
  const isOfProvider = refusal instanceof ProviderFailure
  const error = isOfProvider ? refusal.error : { status, message }
  const body = JSON.stringify(writeErrorFor(route, error))
  const reason = status < 500 && !isOfProvider ? 'InvalidRequest' : 'UpstreamFailure'
  return { kind: 'respond', status, headers: [json], body, reason, detail: detailOf(refusal) }
}

/** Does not contain the message, which may quote the request or the response. */
function detailOf(refusal: LlmError): string {
  if (refusal instanceof UnsupportedByProviderError) return unsupported
  if (refusal instanceof ProviderFailure) return providerFailed
  return refusal.status < 500
    ? 'the request cannot be read or converted'
    : 'the response of the provider cannot be read or converted'
}

/** Route types whose formats the gateway does not know. */
const unknownFormats: ReadonlySet<RouteType> = new Set<RouteType>(['Passthrough', 'Realtime'])

const googleStatuses: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  429: 'RESOURCE_EXHAUSTED',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}

/** Writes errors in the form of an API whose requests the gateway does not read. */
const formWriters: Readonly<Record<ErrorForm, (status: number, message: string) => JsonObject>> = {
  openai: (status, message) => openAiErrors.write({ status, message }),
  anthropic: (status, message) => anthropicErrors.write({ status, message }),
  google: (code, message) => ({
    error: { code, message, status: googleStatuses[code] ?? 'INTERNAL' },
  }),
  bedrock: (_, message) => ({ message }),
  ollama: (_, error) => ({ error }),
}

/** Maximum number of characters of a path that an error repeats. */
const maxPath = 200

/** Refuses a request to a path of a vendor's API that no type is mapped to, in the form of that API. */
export function refuseUnmapped(path: string, { ending, type, errors }: KnownPath): RespondVerdict {
  const example = type === undefined ? '' : `, such as "${ending}: ${type}"`
  const shown = path.slice(0, maxPath)
  const message = `${shown} is not mapped to a type: set spec.policies.ai.routes${example}`
  const body = JSON.stringify(formWriters[errors](400, message))
  const detail = 'no type is mapped to the path'
  return { kind: 'respond', status: 400, headers: [json], body, reason: 'InvalidRequest', detail }
}

/** Refuses a method other than POST. */
export function refuseMethod(route: RouteType, method: string, path: string): RespondVerdict {
  const message = `${method} ${path.slice(0, maxPath)} is not supported: send ${route} requests with POST`
  const body = JSON.stringify(writeErrorFor(route, { status: 405, message }))
  const headers = [json, ['allow', 'POST'] as const]
  const detail = 'the method is not POST'
  return { kind: 'respond', status: 405, headers, body, reason: 'InvalidRequest', detail }
}

/** Returns a writer of errors in the format that clients of a path expect. */
export function errorWriterAt(types: RouteTypes, path: string): ErrorWriter | undefined {
  const unmapped = types.unmappedPath(path)
  if (unmapped === undefined) return errorWriterFor(types.typeOf(path) ?? 'Completions')
  const write = formWriters[unmapped.errors]
  return (status, message) => JSON.stringify(write(status, message))
}

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

/** Returns the response of a guard that rejects; `given` by its webhook takes precedence. */
export function guardRefusal(
  { status, message }: Refusal,
  given?: { readonly status: number | undefined; readonly body: string | undefined },
): RespondVerdict {
  return {
    kind: 'respond',
    status: given?.status ?? status,
    // The same request would be refused again.
    headers: [['content-type', 'text/plain'], noRetryHeader],
    body: given?.body ?? message,
    reason: 'Guardrail',
  }
}

/** Returns the form of errors that clients of a type understand. */
const formOf = (route: RouteType) => formatOf(route)?.errors ?? openAiErrors

/** Like `writeErrorFor`, for a rate limit of the gateway. */
function writeLimitErrorFor(
  route: RouteType,
  status: number,
  { message, waitMs }: SpentLimit,
): JsonObject {
  const { finalCode: code } = formOf(route)
  if (code === undefined || waitMs <= longWaitMs) return writeErrorFor(route, { status, message })
  return writeErrorFor(route, { status, message, kind: code, code })
}

const writeErrorFor = (route: RouteType, error: ProviderError): JsonObject =>
  formOf(route).write(error)
