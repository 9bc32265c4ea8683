/**
 * Which objects are messages of a format. Guards read the members that a format has; another object may have its
 * texts anywhere, so guards refuse it. The core has the same rules in assembly/texts/forms.ts.
 */
import { field, isObject, type JsonObject, objectAt, stringAt } from '../json/json.ts'
import { LlmError } from '../llm-error.ts'
import type { ReadRouteType } from '../route-type.ts'

/** Texts of requests in any format, in lower case. */
const textMembers = new Set([
  ...['messages', 'message', 'system', 'input', 'inputs', 'instructions', 'contents', 'content'],
  ...['prompt', 'documents', 'instances', 'systeminstruction', 'system_instruction'],
  ...['chat_history', 'preamble', 'query', 'queries', 'texts'],
])

/** The members with texts that requests of a type have. */
const ownMembers: Readonly<Record<ReadRouteType, readonly string[]>> = {
  Completions: ['messages'],
  Messages: ['messages', 'system'],
  VendorCTokenCount: ['messages', 'system'],
  Responses: ['instructions', 'prompt', 'input'],
  Embeddings: ['input'],
}

const setting = 'set spec.policies.ai.routes'

/**
 * Refuses what can be no conversation, so that it is not sent as one. `path` is the path of the request.
 * @throws LlmError 400
 */
export function needConversation(body: JsonObject, route: ReadRouteType, path: string): void {
  if (!ownMembers[route].includes('messages') || Array.isArray(field(body, 'messages'))) return
  const hint = `If ${path} has another format than ${route}, ${setting}`
  throw new LlmError(400, `messages must be an array. ${hint}`)
}

/** Refuses texts that only other formats have, because neither guards nor translations read them. @throws LlmError 400 */
export function needOwnTexts(body: JsonObject, route: ReadRouteType, path: string): void {
  const own = ownMembers[route]
  for (const name of Object.keys(body)) {
    // Both conversions are needed: some letters become ASCII letters in only one of the two cases.
    const plain = name.toUpperCase().toLowerCase()
    if (!textMembers.has(plain) || own.includes(plain) || body[name] == null) continue
    throw new LlmError(400, `${route} requests have no field ${name}. ${otherFormat(path, route)}`)
  }
  if (route === 'Responses' && typeof body.prompt === 'string') {
    throw new LlmError(400, `prompt must be an object. ${otherFormat(path, route)}`)
  }
  if (route === 'Embeddings' && body.input === undefined) {
    throw new LlmError(400, `input must be text. ${otherFormat(path, route)}`)
  }
}

const otherFormat = (path: string, route: ReadRouteType): string =>
  `If ${path} has another format than ${route}, ${setting}`

// --- answers -------------------------------------------------------------------------------------

const isObjects = (value: unknown): boolean => Array.isArray(value) && value.every(isObject)

/** Returns true if an object has the member with the answer of a type. */
export function hasAnswerForm(body: JsonObject, route: ReadRouteType): boolean {
  switch (route) {
    case 'Completions':
      return isObjects(body.choices) || isObject(body.choices)
    case 'Messages':
      return Array.isArray(body.content) || typeof body.content === 'string'
    case 'Responses':
      return Array.isArray(body.output)
    case 'VendorCTokenCount':
      return typeof body.input_tokens === 'number'
    case 'Embeddings':
      return Array.isArray(body.data)
  }
}

/** Returns true for `{error}`, `{type: "error"}`, `{message}`, `{Message}` and `{detail}`. */
function hasErrorForm(body: JsonObject): boolean {
  if (body.error != null || body.type === 'error' || body.detail !== undefined) return true
  return typeof body.message === 'string' || typeof body.Message === 'string'
}

const messagesEvents = new Set<unknown>([
  'content_block_delta',
  'content_block_start',
  'message_start',
  'message_delta',
])

function hasEventForm(event: JsonObject, route: ReadRouteType): boolean {
  if (route === 'Completions') return isObjects(event.choices)
  const type = stringAt(event, 'type')
  if (route === 'Messages') return messagesEvents.has(type)
  return type === undefined ? objectAt(event, 'response') !== undefined : /^response\../.test(type)
}

const plainMembers = new Set([
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
export function needEventForm(event: JsonObject, route: ReadRouteType): 'event' | 'error' {
  if (hasEventForm(event, route) || isBare(event)) return 'event'
  if (hasErrorForm(event)) return 'error'
  throw new LlmError(502, otherAnswer)
}

export const otherAnswer = 'the answer of the provider has another format than expected'
