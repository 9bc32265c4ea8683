/**
 * Requests and responses as webhooks and moderation see them: one flat text for each message. A slot
 * contains the location of its text, so that a changed text can be put back there.
 */
import type { ChatFormat, ClientFormat } from '../format.ts'
import { isObject, type JsonObject, listAt, objectAt, parseJson } from '../json/json.ts'
import type { Places } from './places.ts'
import { optInMap } from './scoped-texts.ts'
import { hasText, type MapField, otherSlots, type RoleText, type Slot, slotOf } from './slot.ts'
import { isSetting, type OwnTexts } from './text-fields.ts'
import {
  isMessageField,
  mapMessageField,
  mapRequestField,
  mapRequestTexts,
  mapResponseTexts,
  mapVariable,
} from './texts.ts'
import type { OptInTexts, TextsMap } from './texts-map.ts'

/** Returns all texts of a request, or those in `scope`; a separate system prompt comes first. */
export function requestTexts(body: JsonObject, own?: OwnTexts, scope?: Places): RoleText[] {
  return [
    ...requestSlots(body, own, scope).map(({ role, content }) => ({ role, content })),
    ...optInTexts(scope, (map) => mapRequestTexts(body, map, own)),
  ]
}

/** Returns the opt-in texts in scope. Those of tools are JSON. */
function optInTexts(scope: Places | undefined, mapAll: (map: TextsMap) => unknown): RoleText[] {
  const found: RoleText[] = []
  if (scope === undefined) return found
  const collect: OptInTexts['map'] = (text, place) => {
    if (text !== '')
      found.push({ role: place === 'ToolDefinition' ? 'system' : 'assistant', content: text })
    return text
  }
  mapAll(optInMap(collect, scope))
  return found
}

/** Puts texts back in the order of `optInTexts`. */
function putOptIn<Value>(
  scope: Places | undefined,
  texts: readonly RoleText[],
  mapAll: (map: TextsMap) => Value,
): Value {
  let at = 0
  const put: OptInTexts['map'] = (text) => (text === '' ? text : (texts[at++]?.content ?? ''))
  return mapAll(optInMap(put, scope ?? new Set()))
}

/**
 * Returns the texts of a response: one for each choice, content or message, depending on the format, and then
 * one for each other field with a text.
 */
export function responseTexts(body: JsonObject, format: ChatFormat, scope?: Places): RoleText[] {
  return [
    ...responseSlots(body, format, scope).map(({ role, content }) => ({ role, content })),
    ...optInTexts(scope, mapResponse(body, format)),
  ]
}

const mapResponse =
  (body: JsonObject, { texts, ownTexts }: ChatFormat) =>
  (map: TextsMap): JsonObject =>
    mapResponseTexts(body, texts, map, ownTexts)

/** Returns the texts of the messages of a response: one for each choice, content or message. */
export function messageTexts(body: JsonObject, format: ChatFormat): string[] {
  return format.slots.messages(body).map(({ content }) => content)
}

/**
 * Returns the request with other texts. If the number and roles of the texts are the original ones, each
 * message gets its new text and keeps its images and tool calls. Otherwise the texts replace the whole
 * conversation. Returns undefined if the format does not support that.
 */
export function withRequestTexts(
  body: JsonObject,
  format: ClientFormat,
  texts: readonly RoleText[],
  scope?: Places,
): JsonObject | undefined {
  const own = format.ownTexts
  const shown = requestTexts(body, own, scope)
  const isSame =
    shown.length === texts.length &&
    shown.every(({ role }, at) => texts[at]?.role === role || texts[at]?.role === '')
  if (isSame) {
    const { length } = requestSlots(body, own, scope)
    const put = withSlots(body, (copy) => requestSlots(copy, own, scope), texts)
    return putOptIn(scope, texts.slice(length), (map) => mapRequestTexts(put, map, own))
  }
  // A guard that got only a part of the texts cannot replace the whole request.
  return scope === undefined ? rebuildRequest(body, format, texts) : undefined
}

/** Returns the response with other texts; undefined if the number of texts differs. */
export function withResponseTexts(
  body: JsonObject,
  format: ChatFormat,
  texts: readonly RoleText[],
  scope?: Places,
): JsonObject | undefined {
  if (responseTexts(body, format, scope).length !== texts.length) return undefined
  const { length } = responseSlots(body, format, scope)
  const put = withSlots(body, (copy) => responseSlots(copy, format, scope), texts)
  return putOptIn(scope, texts.slice(length), mapResponse(put, format))
}

function withSlots(
  body: JsonObject,
  slotsOf: (copy: JsonObject) => Slot[],
  texts: readonly RoleText[],
): JsonObject {
  const copy = parseJson(JSON.stringify(body)) as JsonObject
  for (const [at, slot] of slotsOf(copy).entries()) {
    const text = texts[at]?.content ?? ''
    if (text !== slot.content) slot.put(replaceAll(slot, text))
  }
  return copy
}

/** Replaces all texts of a slot by one; parts whose text becomes empty are removed. */
function replaceAll({ last }: Slot, text: string): TextsMap {
  let at = -1
  return (parts) => parts.map(() => (++at === last ? text : ''))
}

/** Fields that come first, in this order; the first two are system prompts. */
const firstFields = ['system', 'instructions', 'prompt']

function requestSlots(body: JsonObject, own: OwnTexts | undefined, scope?: Places): Slot[] {
  const first = own === undefined ? firstFields : [...own.system, ...firstFields]
  const others = Object.keys(body).filter((name) => !first.includes(name))
  const names = [...first.filter((name) => Object.hasOwn(body, name)), ...others]
  return names.flatMap((name) => slotsOfField(body, name, own, scope)).filter(hasText)
}

function slotsOfField(
  body: JsonObject,
  name: string,
  own: OwnTexts | undefined,
  scope?: Places,
): Slot[] {
  const value = body[name]
  if (name === 'prompt' && isObject(value)) return promptSlots(value, scope)
  if (!isMessageField(name, own) || !Array.isArray(value)) {
    const isSystem = name === 'system' || name === 'instructions' || own?.system.includes(name)
    const role = isSystem === true ? 'system' : 'user'
    return [
      slotOf(body, name, role, (holder, at, map) => mapRequestField(holder, at, map, own), scope),
    ]
  }
  return value.flatMap((message: unknown, at): Slot[] => {
    if (!isObject(message)) {
      const mapItem: MapField = (list, index, map) =>
        mapRequestField({ input: Reflect.get(list, index) }, 'input', map)
      return [slotOf(value as unknown as JsonObject, `${at}`, 'user', mapItem, scope)]
    }
    const role = roleOf(message, own)
    const mapField: MapField = (holder, key, map) => mapMessageField(holder, key, map, own)
    return Object.keys(message).map((key) => slotOf(message, key, role, mapField, scope))
  })
}

function roleOf({ role }: JsonObject, own: OwnTexts | undefined): string {
  if (typeof role !== 'string') return 'tool'
  return own !== undefined && role === 'model' ? 'assistant' : role
}

/** Returns the slots of a template that the vendor stores: one for each variable, and the other fields. */
function promptSlots(prompt: JsonObject, scope: Places | undefined): Slot[] {
  const variables = objectAt(prompt, 'variables') ?? {}
  const others = Object.keys(prompt).filter((name) => name !== 'variables')
  return [
    ...Object.keys(variables).map((name) => slotOf(variables, name, 'user', mapVariable, scope)),
    ...others.map((name) => slotOf(prompt, name, 'user', mapMessageField, scope)),
  ]
}

const responseSlots = (body: JsonObject, format: ChatFormat, scope?: Places): Slot[] => [
  ...format.slots.messages(body, scope),
  ...slotsBesideMessages(body, format, scope),
]

/** Returns the slots of all other fields with a text. */
function slotsBesideMessages(
  body: JsonObject,
  { texts, slots, ownTexts }: ChatFormat,
  scope: Places | undefined,
): Slot[] {
  const settings = Object.keys(body).filter((name) => isSetting(name, body[name]))
  const { besideMessage } = slots
  return [
    ...(besideMessage === undefined
      ? []
      : listAt(body, texts.field).flatMap((item) => besideMessage(item, scope))),
    ...otherSlots(body, [texts.field, ...settings], ownTexts, scope),
  ]
}

const plainRoles = new Set(['system', 'developer', 'user', 'assistant'])

const plainMessage = ({ role, content }: RoleText): RoleText => ({
  role: plainRoles.has(role) ? role : 'user',
  content,
})

/** Returns the settings of a request, without any text. */
function settingsOf(body: JsonObject, own: OwnTexts | undefined): JsonObject {
  const kept = Object.keys(body).filter((name) => !slotsOfField(body, name, own).some(hasText))
  return Object.fromEntries(kept.map((name) => [name, body[name]]))
}

function rebuildRequest(
  body: JsonObject,
  { withMessages, ownTexts }: ClientFormat,
  texts: readonly RoleText[],
): JsonObject | undefined {
  return withMessages?.(settingsOf(body, ownTexts), texts.map(plainMessage))
}
