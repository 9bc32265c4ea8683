/**
 * Requests and responses as webhooks and moderation see them: one flat text for each message. A slot
 * contains the location of its text, so that a changed text can be put back there.
 */
import type { ChatFormat, ClientFormat } from '../format.ts'
import { isObject, type JsonObject, listAt, objectAt, parseJson } from '../json/json.ts'
import { hasText, type MapField, otherSlots, type RoleText, type Slot, slotOf } from './slot.ts'
import { isSetting, type OwnTexts } from './text-fields.ts'
import {
  isMessageField,
  mapMessageField,
  mapRequestField,
  mapVariable,
  type TextsMap,
} from './texts.ts'

/** Returns all texts of a request; a separate system prompt comes first. */
export function requestTexts(body: JsonObject, own?: OwnTexts): RoleText[] {
  return requestSlots(body, own).map(({ role, content }) => ({ role, content }))
}

/**
 * Returns the texts of a response: one for each choice, content or message, depending on the format, and then
 * one for each other field with a text.
 */
export function responseTexts(body: JsonObject, format: ChatFormat): RoleText[] {
  return responseSlots(body, format).map(({ role, content }) => ({ role, content }))
}

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
): JsonObject | undefined {
  const slots = requestSlots(body, format.ownTexts)
  const isSame =
    slots.length === texts.length &&
    slots.every(({ role }, at) => texts[at]?.role === role || texts[at]?.role === '')
  if (isSame) return withSlots(body, (copy) => requestSlots(copy, format.ownTexts), texts)
  return rebuildRequest(body, format, texts)
}

/** Returns the response with other texts; undefined if the number of texts differs. */
export function withResponseTexts(
  body: JsonObject,
  format: ChatFormat,
  texts: readonly RoleText[],
): JsonObject | undefined {
  if (responseSlots(body, format).length !== texts.length) return undefined
  return withSlots(body, (copy) => responseSlots(copy, format), texts)
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

function requestSlots(body: JsonObject, own: OwnTexts | undefined): Slot[] {
  const first = own === undefined ? firstFields : [...own.system, ...firstFields]
  const others = Object.keys(body).filter((name) => !first.includes(name))
  const names = [...first.filter((name) => Object.hasOwn(body, name)), ...others]
  return names.flatMap((name) => slotsOfField(body, name, own)).filter(hasText)
}

function slotsOfField(body: JsonObject, name: string, own: OwnTexts | undefined): Slot[] {
  const value = body[name]
  if (name === 'prompt' && isObject(value)) return promptSlots(value)
  if (!isMessageField(name, own) || !Array.isArray(value)) {
    const isSystem = name === 'system' || name === 'instructions' || own?.system.includes(name)
    const role = isSystem === true ? 'system' : 'user'
    return [slotOf(body, name, role, (holder, at, map) => mapRequestField(holder, at, map, own))]
  }
  return value.flatMap((message: unknown, at): Slot[] => {
    if (!isObject(message)) {
      const mapItem: MapField = (list, index, map) =>
        mapRequestField({ input: Reflect.get(list, index) }, 'input', map)
      return [slotOf(value as unknown as JsonObject, `${at}`, 'user', mapItem)]
    }
    const role = roleOf(message, own)
    const mapField: MapField = (holder, key, map) => mapMessageField(holder, key, map, own)
    return Object.keys(message).map((key) => slotOf(message, key, role, mapField))
  })
}

function roleOf({ role }: JsonObject, own: OwnTexts | undefined): string {
  if (typeof role !== 'string') return 'tool'
  return own !== undefined && role === 'model' ? 'assistant' : role
}

/** Returns the slots of a template that the vendor stores: one for each variable, and the other fields. */
function promptSlots(prompt: JsonObject): Slot[] {
  const variables = objectAt(prompt, 'variables') ?? {}
  const others = Object.keys(prompt).filter((name) => name !== 'variables')
  return [
    ...Object.keys(variables).map((name) => slotOf(variables, name, 'user', mapVariable)),
    ...others.map((name) => slotOf(prompt, name, 'user', mapMessageField)),
  ]
}

const responseSlots = (body: JsonObject, format: ChatFormat): Slot[] => [
  ...format.slots.messages(body),
  ...slotsBesideMessages(body, format),
]

/** Returns the slots of all other fields with a text. */
function slotsBesideMessages(body: JsonObject, { texts, slots, ownTexts }: ChatFormat): Slot[] {
  const settings = Object.keys(body).filter((name) => isSetting(name, body[name]))
  const { besideMessage } = slots
  return [
    ...(besideMessage === undefined ? [] : listAt(body, texts.field).flatMap(besideMessage)),
    ...otherSlots(body, [texts.field, ...settings], ownTexts),
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
