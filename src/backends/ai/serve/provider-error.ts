/** Errors that providers send with a good status, and what is no answer at all. */
import type { ProviderError } from '../chat.ts'
import { readCompletionsError } from '../formats/completions/response.ts'
import { readConverseError } from '../formats/converse/response.ts'
import { readGoogleError } from '../formats/generate-content/response.ts'
import { readMessagesError } from '../formats/messages/response.ts'
import { field, isObject, type JsonObject, numberAt, parseJson, stringAt } from '../json.ts'
import { LlmError } from '../llm-error.ts'
import type { OutgoingRequest } from './request.ts'

/** Characters of a text that is no error of the provider's. */
const longestPlain = 1_000

/** A text of the provider as far as an error repeats it. */
export const excerptOf = (text: string): string => text.trim().slice(0, longestPlain)

/** Fields that only answers have. */
const answerFields = [
  'choices',
  'content',
  'output',
  'candidates',
  'promptFeedback',
  'data',
  'predictions',
  'embedding',
  'embeddings',
  'embeddingsByType',
  'input_tokens',
  'inputTokens',
] as const

function hasAnswer(body: JsonObject): boolean {
  return answerFields.some((name) => {
    const value = field(body, name)
    return value != null && !(Array.isArray(value) && value.length === 0)
  })
}

/** `{error}`, the same in a list, `{type: "error"}`, `{message}`, `{Message}`. */
function isError(body: JsonObject): boolean {
  const error = field(body, 'error')
  if (isObject(error) || (typeof error === 'string' && error !== '')) return true
  const hasMessage = ['message', 'Message', 'detail'].some((name) => stringAt(body, name))
  return body.type === 'error' || hasMessage
}

/** What is an error rather than an answer in the text of a provider; undefined for an answer. */
export function errorInAnswer(request: OutgoingRequest, text: string): ProviderError | undefined {
  const parsed = parseJson(text)
  const body: unknown = Array.isArray(parsed) && parsed.length === 1 ? parsed[0] : parsed
  if (!isObject(body) || hasAnswer(body) || !isError(body)) return undefined
  const error = readerOf(request)(502, text)
  const message = error.message === text ? (stringAt(body, 'detail') ?? text) : error.message
  return { ...error, message: excerptOf(message), status: statusOf(body, error) }
}

export function readerOf({
  plan,
  translation,
  route,
}: OutgoingRequest): (status: number, text: string) => ProviderError {
  if (translation !== undefined) return translation.readError
  if (plan.kind === 'native') {
    const isMessages = route === 'Messages' || route === 'VendorCTokenCount'
    return isMessages ? readMessagesError : readCompletionsError
  }
  return plan.kind === 'embeddings' && plan.format === 'predict'
    ? readGoogleError
    : readConverseError
}

/** Statuses by what vendors call an error. */
const statuses: Readonly<Record<string, number>> = {
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

/** The status that the provider should have answered with. */
function statusOf(body: JsonObject, { code, kind }: ProviderError): number {
  const error = field(body, 'error')
  const numbers = [
    numberAt(error, 'code'),
    numberAt(error, 'status'),
    numberAt(body, 'status'),
    numberAt(body, 'code'),
    Number(code),
  ]
  const told = numbers.find((number) => number !== undefined && number >= 400 && number <= 599)
  const named = [code, kind].find((name) => name !== undefined && Object.hasOwn(statuses, name))
  return told ?? statuses[named ?? ''] ?? 502
}

/** The answer of a provider that cannot be read, in its own words. */
export function unreadable(text: string): LlmError {
  const said = excerptOf(text)
  const detail = said === '' ? '; it is empty' : `: ${said}`
  return new LlmError(502, `the answer of the provider is not a JSON object${detail}`)
}
