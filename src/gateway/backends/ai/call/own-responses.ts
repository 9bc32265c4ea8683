/** Responses of the gateway itself to clients of language models. */

import type { ProviderError } from '../../../../engines/messages/chat.ts'
import type { ErrorForm } from '../../../../engines/messages/format.ts'
import { openAiErrors } from '../../../../engines/messages/formats/completions/index.ts'
import { bedrockErrors } from '../../../../engines/messages/formats/converse/client.ts'
import { googleErrors } from '../../../../engines/messages/formats/generate-content/requests.ts'
import { formatOf, type RouteType } from '../../../../engines/messages/formats/index.ts'
import { anthropicErrors } from '../../../../engines/messages/formats/messages/index.ts'
import type { JsonObject } from '../../../../engines/messages/json/json.ts'
import { LlmError, UnsupportedByProviderError } from '../../../../engines/messages/llm-error.ts'
import {
  clientText,
  ProviderFailure,
  providerFailed,
} from '../../../../engines/messages/response/provider-error.ts'
import {
  type Collection,
  storedCollections,
} from '../../../../engines/messages/stored/collections.ts'
import type { RespondVerdict } from '../../../../ground/exchange/exchange.ts'
import type { ErrorWriter } from '../../../proxy/request/error-response.ts'
import type { ErrorFormName, KnownPath } from '../policy/known-paths.ts'
import type { RouteTypes } from '../policy/route-types.ts'
import type { StoredPath } from '../policy/stored-paths.ts'

/** Wait after which clients should give up, if they can be told, instead of repeating the request. */
const longWaitMs = 60_000

/** Detail of requests that the chosen provider does not support. */
export const unsupported = 'the provider does not support a part of the request'

const json = ['content-type', 'application/json'] as const

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

/** Writers of errors in each form. */
const forms: Readonly<Record<ErrorFormName, Pick<ErrorForm, 'write' | 'finalCode'>>> = {
  openai: openAiErrors,
  anthropic: anthropicErrors,
  google: googleErrors,
  bedrock: bedrockErrors,
  ollama: { write: ({ message: error }) => ({ error }) },
}

/** Maximum number of characters of a path that an error repeats. */
const maxPath = 200

/** Refuses a request to a path of a vendor's API that no type is mapped to, in the form of that API. */
function refuseUnmapped(path: string, { ending, type, errors }: KnownPath): RespondVerdict {
  const advice =
    type === undefined
      ? 'no type reads its format; to send it unread and without guards, map it to Passthrough in spec.policies.ai.routes, after which all clients share what the vendor keeps'
      : `set spec.policies.ai.routes, such as "${ending}: ${type}"`
  const message = `${path.slice(0, maxPath)} is not mapped to a type: ${advice}`
  const body = JSON.stringify(forms[errors].write({ status: 400, message }))
  const detail = 'no type is mapped to the path'
  return { kind: 'respond', status: 400, headers: [json], body, reason: 'InvalidRequest', detail }
}

/** Refuses a method that requests of a type do not have. `allowed` is the value of Allow. */
function refuseMethod(
  route: RouteType,
  method: string,
  path: string,
  allowed: string,
): RespondVerdict {
  const message = `${method} ${path.slice(0, maxPath)} is not supported: send ${route} requests with ${allowed}`
  const body = JSON.stringify(writeErrorFor(route, { status: 405, message }))
  const headers = [json, ['allow', allowed] as const]
  const detail = `the method is not ${allowed}`
  return { kind: 'respond', status: 405, headers, body, reason: 'InvalidRequest', detail }
}

export const isProbe = (method: string): boolean => method === 'GET' || method === 'HEAD'

export const ambiguousPath = new LlmError(
  400,
  'the path has dot segments or control characters; send it without them',
)

export const isStoredPath = (found: RouteType | KnownPath | StoredPath): found is StoredPath =>
  typeof found === 'object' && 'collection' in found

const noLists = new LlmError(
  400,
  'lists of everything stored are not served, because the provider does not know which client owns what; keep the ids of what you create',
)

function storedRefusal(
  { collection, methods, id }: StoredPath,
  method: string,
  path: string,
): RespondVerdict | undefined {
  if (methods.includes(method)) return undefined
  if (id === undefined && isProbe(method)) return llmRefusal(collection, noLists)
  return refuseMethod(collection, method, path, methods.join(', '))
}

/** Refuses a request whose path or method has no type; undefined if it has one. */
export function pathRefusal(
  found: RouteType | KnownPath | StoredPath | undefined,
  method: string,
  path: string,
): RespondVerdict | undefined {
  if (found === undefined) return llmRefusal('Completions', ambiguousPath)
  if (isStoredPath(found)) return storedRefusal(found, method, path)
  if (typeof found === 'object') return refuseUnmapped(path, found)
  if (found === 'Models') {
    return isProbe(method) ? undefined : refuseMethod(found, method, path, 'GET, HEAD')
  }
  const isRead = formatOf(found) !== undefined
  return isRead && method !== 'POST' ? refuseMethod(found, method, path, 'POST') : undefined
}

/** Refuses a model that the gateway does not serve, in the form of the client's format. */
export const modelNotFound = (route: RouteType): RespondVerdict =>
  modelNotFoundIn(errorFormOf(route))

export function modelNotFoundIn(form: ErrorFormName): RespondVerdict {
  const kind = form === 'openai' ? 'invalid_request_error' : undefined
  const error = { status: 404, message: 'Model not found', kind, code: 'model_not_found' }
  const body = JSON.stringify(forms[form].write(error))
  const detail = 'the model is not served'
  return { kind: 'respond', status: 404, headers: [json], body, reason: 'InvalidRequest', detail }
}

/** Returns a writer of errors in the format that clients of a path expect; undefined if it is not known. */
export function errorWriterAt(types: RouteTypes, path: string): ErrorWriter | undefined {
  const form = types.errorFormOf(path)
  if (form === undefined) return undefined
  const { write, finalCode } = forms[form]
  return (status, message, limit) => {
    const isFinal = finalCode !== undefined && limit !== undefined && limit.waitMs > longWaitMs
    const final = isFinal ? { kind: finalCode, code: finalCode } : undefined
    return JSON.stringify(write({ status, message: limit?.message ?? message, ...final }))
  }
}

const collections: readonly Collection[] = Object.values(storedCollections)

/** Types that the gateway does not read are those of vendor A, except for some collections. */
const errorFormOf = (route: RouteType): ErrorFormName =>
  formatOf(route)?.errors.name ??
  collections.find(({ type }) => type === route)?.errors ??
  openAiErrors.name

const writeErrorFor = (route: RouteType, error: ProviderError): JsonObject =>
  forms[errorFormOf(route)].write(error)
