/** What a response of a provider is, by its head. */
import type { ServerExchange } from '../../../../engines/http/contracts/requests.ts'
import type { ResponseContext } from '../../../../engines/messages/chat.ts'
import type { ChatFormat, ClientFormat } from '../../../../engines/messages/format.ts'
import type { JsonObject } from '../../../../engines/messages/json/json.ts'
import { LlmError } from '../../../../engines/messages/llm-error.ts'
import type { OutgoingRequest } from '../../../../engines/messages/request/outgoing.ts'
import type { ResponseHead } from '../../../../ground/exchange/exchange.ts'
import type { ModelCall } from './model-call.ts'
import { newId } from './prepare.ts'

const streamTypes = /^(text\/event-stream|application\/vnd\.amazon\.eventstream)\s*(;|$)/i

/** Whether a response is a stream of events of a conversation. */
export function isStream(
  { status, headers }: ResponseHead,
  format: ChatFormat | undefined,
): boolean {
  if (status >= 300 || format === undefined) return false
  return streamTypes.test(headers.get('content-type') ?? '')
}

const jsonType = /^application\/(?:[\w.-]+\+)?json\s*(;|$)/i
const sound = /^audio\//i

/** Whether a response is sound, or a stream of events that the gateway does not read. */
export function isOther(
  { status, headers }: ResponseHead,
  format: ClientFormat,
  isProtected: boolean,
): boolean {
  if (format.operation === 'chat' || format.relaysOthers !== true || status >= 300) return false
  const type = headers.get('content-type') ?? ''
  // Guards refuse what might be a text.
  return isProtected ? sound.test(type) : !jsonType.test(type)
}

export const isCoded = (coding: string | undefined): boolean =>
  coding !== undefined && coding !== '' && coding.toLowerCase() !== 'identity'

/** Returns a response that is no conversation without the texts of the model, which guards do not read there. */
export function withoutTexts({ format }: OutgoingRequest, body: JsonObject): JsonObject {
  const other: ClientFormat = format
  return other.operation === 'chat' ? body : (other.withoutTexts?.(body) ?? body)
}

/** Headers that describe the bytes of a response, which are removed if the bytes are replaced. */
export const replacedHeaders = ['etag', 'content-md5', 'digest', 'content-digest', 'content-range']

/** Maximum size of a response that is read as a whole, unless the buffer limit is larger. */
const minResponseLimit = 32 * 1024 * 1024

export const responseLimitOf = ({ bufferLimit }: ServerExchange): number =>
  Math.max(bufferLimit, minResponseLimit)

/** @throws LlmError 502 for a redirect: SDKs would follow it with the credentials that the gateway got. */
export function needNoRedirect(status: number): void {
  if (status < 300 || status >= 400 || status === 304) return
  throw new LlmError(502, `the provider answered ${status}, a redirect; check its host and path`)
}

/** Returns the properties that writers of responses need. */
export const contextOf = ({ clientBody, outgoing }: ModelCall): ResponseContext => ({
  created: Math.floor(Date.now() / 1_000),
  newId,
  // Requests that are translated have been parsed.
  request: (outgoing?.translation === undefined ? clientBody?.fields : clientBody?.whole) ?? {},
})
