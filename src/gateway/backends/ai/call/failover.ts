/** Decides after which failures of a provider another one is tried, and which one may succeed. */
import type { ProviderError } from '../../../../engines/messages/chat.ts'
import {
  field,
  isObject,
  objectAt,
  parseJson,
  stringAt,
  utf8Text,
} from '../../../../engines/messages/json/json.ts'
import type { OutgoingRequest } from '../../../../engines/messages/request/outgoing.ts'
import { errorInResponse, readerOf } from '../../../../engines/messages/response/provider-error.ts'
import type { ResponseHead } from '../../../../ground/exchange/exchange.ts'
import type { FailoverRules } from '../../../../ground/model/model-providers.ts'
import { retryHintMs } from './retry-hint.ts'

/** Returns true if the provider failed, so that another one may succeed. */
export const isProviderFailure = (status: number): boolean => status === 429 || status >= 500

/** Why the content of a response leads to another provider. */
export type FailoverReason =
  | 'error code'
  | 'context exceeded'
  | 'content filter'
  | 'model not found'

/** Returns whether a status leads to another provider. */
export function isFailoverStatus(
  rules: FailoverRules | undefined,
  status: number,
  response: ResponseHead | undefined,
): boolean {
  if (rules === undefined) return isProviderFailure(status)
  if (!rules.statuses.includes(status)) return false
  const { retryAfterMs } = rules
  if (status !== 429 || retryAfterMs === undefined || response === undefined) return true
  return retryHintMs(response, Date.now()) > retryAfterMs
}

/** Returns why a whole response leads to another provider; undefined if it does not. */
export function reasonInResponse(
  rules: FailoverRules | undefined,
  request: OutgoingRequest,
  status: number,
  bytes: Uint8Array,
): FailoverReason | undefined {
  if (rules === undefined) return undefined
  const { onContentFilter, onContextExceeded, onModelNotFound, errorCodes } = rules
  const isRead =
    onContentFilter || onContextExceeded || onModelNotFound === true || errorCodes.length > 0
  if (!isRead) return undefined
  if (status >= 400) return reasonOfError(rules, readerOf(request)(status, utf8Text(bytes)))
  const text = utf8Text(bytes)
  const parsed = parseJson(text)
  const error = errorInResponse(request, text, parsed)
  return error === undefined ? reasonInBody(rules, () => parsed) : reasonOfError(rules, error)
}

/** Returns why the first event of a stream leads to another provider. `error` is the error that it reports. */
export function reasonInEvent(
  rules: FailoverRules | undefined,
  error: ProviderError | undefined,
  parse: () => unknown,
): FailoverReason | undefined {
  if (rules === undefined) return undefined
  return error === undefined ? reasonInBody(rules, parse) : reasonOfError(rules, error)
}

/** Names that vendors and servers have for requests that are too large for the context of a model. */
const contextCodes: ReadonlySet<string> = new Set([
  'context_length_exceeded',
  'exceed_context_size_error',
  'model_context_window_exceeded',
])
const contextTexts =
  /prompt is too long|maximum context length|context (?:window|length|size)|input is too long|input length and .max_tokens. exceed|exceeds the maximum number of tokens|too many input tokens/i

/** Names that vendors have for requests that their filters refuse. */
const filterCodes: ReadonlySet<string> = new Set([
  'content_filter',
  'content_policy_violation',
  'moderation_blocked',
  'ResponsibleAIPolicyViolation',
])
const filterTexts =
  /content management policy|content filter(?:ing)? policy|flagged as potentially violating/i

/** Names that vendors and servers have for models that they do not have; most of them come with 404. */
const missingCodes: ReadonlySet<string> = new Set(['model_not_found', 'DeploymentNotFound'])
const missingTexts = /model (?:identifier is invalid|.{0,512}(?:does not exist|not found))/i

/** Returns why an error leads to another provider; undefined if it does not. */
function reasonOfError(
  { errorCodes, onContextExceeded, onContentFilter, onModelNotFound }: FailoverRules,
  { status, code = '', kind = '', message }: ProviderError,
): FailoverReason | undefined {
  const isRefusal = status >= 400 && status < 500 && status !== 429
  const has = (names: ReadonlySet<string>, texts: RegExp) =>
    names.has(code) || names.has(kind) || (isRefusal && texts.test(message))
  if (onContextExceeded && has(contextCodes, contextTexts)) return 'context exceeded'
  if (onContentFilter && has(filterCodes, filterTexts)) return 'content filter'
  if (onModelNotFound === true && (status === 404 || has(missingCodes, missingTexts))) {
    return 'model not found'
  }
  return errorCodes.includes(code) || errorCodes.includes(kind) ? 'error code' : undefined
}

/** Reasons for which models of any vendor end an answer because of a filter. */
const filterEnds: ReadonlySet<string> = new Set([
  'content_filter',
  'content_filtered',
  'guardrail_intervened',
  'refusal',
  'SAFETY',
  'PROHIBITED_CONTENT',
  'BLOCKLIST',
  'SPII',
  'RECITATION',
])
const contextEnds: ReadonlySet<string> = new Set(['model_context_window_exceeded'])

/** Returns why a response or an event with status 200 leads to another provider; undefined if it does not. */
function reasonInBody(
  { onContextExceeded, onContentFilter }: FailoverRules,
  parse: () => unknown,
): FailoverReason | undefined {
  const body = onContextExceeded || onContentFilter ? parse() : undefined
  if (!isObject(body)) return undefined
  const ends = endsOf(body)
  if (onContextExceeded && ends.some((end) => contextEnds.has(end))) return 'context exceeded'
  const isBlocked = stringAt(objectAt(body, 'promptFeedback'), 'blockReason') !== undefined
  const isFiltered = isBlocked || ends.some((end) => filterEnds.has(end))
  return onContentFilter && isFiltered ? 'content filter' : undefined
}

/** The reasons for which an answer has ended, in the formats of all providers. */
function endsOf(body: object): readonly string[] {
  const choices = [field(body, 'choices'), field(body, 'candidates')].flatMap((list) =>
    Array.isArray(list) ? list : [],
  )
  const found = [
    ...choices.flatMap((choice) => [
      stringAt(choice, 'finish_reason'),
      stringAt(choice, 'finishReason'),
    ]),
    stringAt(body, 'stop_reason'),
    stringAt(body, 'stopReason'),
    stringAt(objectAt(body, 'incomplete_details'), 'reason'),
  ]
  return found.filter((end) => end !== undefined)
}
