/** Errors that providers send with a successful status, and responses that cannot be read. */
import type { ProviderError } from '../chat.ts'
import { embeddingsFormats, responseFields } from '../formats/index.ts'
import { field, isObject, type JsonObject, numberAt, parseJson, stringAt } from '../json/json.ts'
import { LlmError } from '../llm-error.ts'
import { countFormats } from '../request/counts/index.ts'
import type { OutgoingRequest } from '../request/outgoing.ts'

/** Maximum number of characters of a provider's text that an error repeats. */
const maxExcerpt = 1_000

export const excerptOf = (text: string): string => text.trim().slice(0, maxExcerpt)

function hasResponse(body: JsonObject): boolean {
  return responseFields.some((name) => {
    const value = field(body, name)
    return value != null && !(Array.isArray(value) && value.length === 0)
  })
}

/** Returns true for `{error}`, `{type: "error"}`, `{message}`, `{Message}` and `{detail}`. */
function isError(body: JsonObject): boolean {
  const error = field(body, 'error')
  if (isObject(error) || (typeof error === 'string' && error !== '')) return true
  const hasMessage = ['message', 'Message'].some((name) => stringAt(body, name))
  return body.type === 'error' || hasMessage || field(body, 'detail') != null
}

export const providerFailed = 'the provider answered with an error'

/**
 * Returns the error in a provider's text; undefined if the text is a response. If guards protect the response, the
 * message is never the text itself, in which escapes hide what the text says.
 */
export function errorInResponse(
  request: OutgoingRequest,
  text: string,
  parsed = parseJson(text),
  isGuarded = false,
): ProviderError | undefined {
  const body: unknown = Array.isArray(parsed) && parsed.length === 1 ? parsed[0] : parsed
  if (!isObject(body) || hasResponse(body) || !isError(body)) return undefined
  const error = readerOf(request)(502, text)
  const whole = isGuarded ? providerFailed : text
  const message = error.message === text ? (stringAt(body, 'detail') ?? whole) : error.message
  return { ...error, message: excerptOf(message), status: statusOf(body, error) }
}

export function readerOf({
  plan,
  translation,
  format,
}: OutgoingRequest): (status: number, text: string) => ProviderError {
  if (translation !== undefined) return translation.readError
  if (plan.kind === 'native') return (plan.errors ?? format.errors).read
  if (plan.kind === 'embeddings') return embeddingsFormats[plan.format].readError
  if (plan.kind === 'count') return countFormats[plan.format].readError
  throw new Error('a translated request has no translation')
}

/** An error that the provider sent in place of a response. */
export class ProviderFailure extends LlmError {
  readonly error: ProviderError

  constructor(error: ProviderError) {
    super(error.status, error.message)
    this.name = 'ProviderFailure'
    this.error = error
  }
}

/** HTTP statusByErrorName by the names that vendors use for errors. */
const statusByErrorName: Readonly<Record<string, number>> = {
  invalid_request_error: 400,
  authentication_error: 401,
  permission_error: 403,
  not_found_error: 404,
  request_too_large: 413,
  rate_limit_error: 429,
  rate_limit_exceeded: 429,
  insufficient_quota: 429,
  overloaded_error: 529,
  INVALID_ARGUMENT: 400,
  UNAUTHENTICATED: 401,
  PERMISSION_DENIED: 403,
  NOT_FOUND: 404,
  RESOURCE_EXHAUSTED: 429,
  UNAVAILABLE: 503,
}

/** Returns the status that the provider should have sent. */
function statusOf(body: JsonObject, { code, kind }: ProviderError): number {
  const error = field(body, 'error')
  const numbers = [
    numberAt(error, 'code'),
    numberAt(error, 'status'),
    numberAt(body, 'status'),
    numberAt(body, 'code'),
    Number(code),
  ]
  const status = numbers.find((number) => number !== undefined && number >= 400 && number <= 599)
  const named = [code, kind].find(
    (name) => name !== undefined && Object.hasOwn(statusByErrorName, name),
  )
  return status ?? statusByErrorName[named ?? ''] ?? 502
}

/** A response that cannot be read. The message does not quote it, because logs repeat the message. */
class UnreadableResponse extends LlmError {
  /** The beginning of the response, for clients. */
  readonly excerpt: string

  constructor(text: string) {
    const excerpt = excerptOf(text)
    const isEmpty = excerpt === '' ? '; it is empty' : ''
    super(502, `the response of the provider is not a JSON object${isEmpty}`)
    this.name = 'UnreadableResponse'
    this.excerpt = excerpt
  }
}

/** @throws LlmError 502 if the text of a response is not a JSON object */
export function needObject(text: string): JsonObject {
  const body = parseJson(text)
  if (!isObject(body)) throw unreadable(text)
  return body
}

/** Returns true if the provider failed although it answered with a successful status. */
export const isOfProvider = (error: LlmError): boolean =>
  error instanceof ProviderFailure || error instanceof UnreadableResponse

export const unreadable = (text: string): LlmError => new UnreadableResponse(text)

/** Returns the text of an error for the client. If guards protect the response, it quotes nothing that they have not read. */
export function clientText(error: LlmError, isGuarded: boolean): string {
  const { message } = error
  if (isGuarded || !(error instanceof UnreadableResponse) || error.excerpt === '') return message
  return `${message}: ${error.excerpt}`
}

/** Returns the text of an error for logs, which never quotes a response. */
export const loggedText = (error: LlmError): string =>
  error instanceof ProviderFailure ? providerFailed : error.message
