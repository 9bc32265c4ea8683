/**
 * Refuses what is no message of a format. Guards read the members that a format has; another object may have its
 * texts anywhere. The core has the same rules in assembly/texts/forms.ts.
 */

import type { ChatFormat, ClientFormat } from '../format.ts'
import { clientFormats } from '../formats/index.ts'
import { field, isObject, type JsonObject } from '../json/json.ts'
import { asciiName } from '../json/names.ts'
import { LlmError } from '../llm-error.ts'

/** Texts of requests in formats that the core does not know, in lower case. */
const foreignTextMembers = [
  ...['message', 'inputs', 'contents', 'content', 'documents', 'instances', 'systeminstruction'],
  ...['system_instruction', 'chat_history', 'preamble', 'query', 'queries', 'texts'],
]
/** Texts of requests in any format, in lower case. */
export const anyTextMembers: ReadonlySet<string> = new Set([
  ...Object.values<ClientFormat>(clientFormats).flatMap(({ core, textMembers }) =>
    core === undefined ? [] : textMembers,
  ),
  ...foreignTextMembers,
])

const setting = 'set spec.policies.ai.routes'

/** Whether requests have a list of messages. */
export const hasMessages = ({ textMembers }: ClientFormat): boolean =>
  textMembers.includes('messages')

/**
 * Refuses what can be no conversation, so that it is not sent as one. `path` is the path of the request.
 * @throws LlmError 400
 */
export function needConversation(body: JsonObject, format: ClientFormat, path: string): void {
  if (!hasMessages(format) || Array.isArray(field(body, 'messages'))) return
  throw new LlmError(400, `messages must be an array. ${otherFormat(path, format)}`)
}

/** Refuses texts that only other formats have, because neither guards nor translations read them. @throws LlmError 400 */
export function needOwnTexts(body: JsonObject, format: ClientFormat, path: string): void {
  const { name: type, textMembers: own } = format
  for (const name of Object.keys(body)) {
    const plain = asciiName(name)
    if (!anyTextMembers.has(plain) || own.includes(plain) || body[name] == null) continue
    throw new LlmError(400, `${type} requests have no field ${name}. ${otherFormat(path, format)}`)
  }
  const problem = format.problemOf?.(body)
  if (problem !== undefined) {
    throw new LlmError(400, `${problem}. ${otherFormat(path, format)}`)
  }
}

const otherFormat = (path: string, { name }: ClientFormat): string =>
  `If ${path} has another format than ${name}, ${setting}`

// --- responses -------------------------------------------------------------------------------------

/** Returns true for `{error}`, `{type: "error"}`, `{message}`, `{Message}` and `{detail}`. */
function hasErrorForm(body: JsonObject): boolean {
  if (body.error != null || body.type === 'error' || body.detail !== undefined) return true
  return typeof body.message === 'string' || typeof body.Message === 'string'
}

export const plainMembers: ReadonlySet<string> = new Set([
  ...['id', 'object', 'model', 'type', 'system_fingerprint', 'service_tier', 'provider'],
])

/** Returns true if a value has no text, besides what describes a message. */
function isBare(value: unknown): boolean {
  if (typeof value === 'string') return false
  if (Array.isArray(value)) return value.every(isBare)
  if (!isObject(value)) return true
  return Object.entries(value).every(
    ([name, item]) => (typeof item === 'string' && plainMembers.has(name)) || isBare(item),
  )
}

/**
 * Returns what an event of a guarded stream is: an `error`, whose texts may be anywhere, or an `event` of the format.
 * @throws LlmError 502 if it is neither.
 */
export function needEventForm(event: JsonObject, format: ChatFormat): 'event' | 'error' {
  if (format.events.isEvent(event) || isBare(event)) return 'event'
  if (hasErrorForm(event)) return 'error'
  throw new LlmError(502, otherResponse)
}

export const otherResponse = 'the response of the provider has another format than expected'
