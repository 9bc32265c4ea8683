/**
 * Requests and answers as webhooks and moderation see them: one flat text for each message. A slot
 * contains the location of its text, so that a changed text can be put back there.
 */
import type { ChatFormat } from '../client-formats.ts'
import { isObject, type JsonObject, listAt, objectAt, parseJson } from '../json/json.ts'
import type { ReadRouteType } from '../route-type.ts'
import { isSetting } from './text-fields.ts'
import {
  answerFields,
  mapAnswerField,
  mapMessageField,
  mapRequestField,
  mapVariable,
  messageFields,
  type TextsMap,
} from './texts.ts'

/** A text with the role of its author. */
export interface RoleText {
  readonly role: string
  readonly content: string
}

/** The texts of a field. */
interface Slot extends RoleText {
  /** Index of the text that gets a changed content: the last text of a message, otherwise the last one. */
  readonly last: number
  /** Maps the texts in place. */
  put(map: TextsMap): void
}

/** Returns all texts of a request; a separate system prompt comes first. */
export function requestTexts(body: JsonObject): RoleText[] {
  return requestSlots(body).map(({ role, content }) => ({ role, content }))
}

/**
 * Returns the texts of an answer: one for each choice, content or message, depending on the format, and then
 * one for each other field with a text.
 */
export function answerTexts(body: JsonObject, format: ChatFormat): RoleText[] {
  return answerSlots(body, format).map(({ role, content }) => ({ role, content }))
}

/** Returns the texts of the messages of an answer: one for each choice, content or message. */
export function messageTexts(body: JsonObject, format: ChatFormat): string[] {
  return messageSlots(body, format).map(({ content }) => content)
}

/**
 * Returns the request with other texts. If the number and roles of the texts are the original ones, each
 * message gets its new text and keeps its images and tool calls. Otherwise the texts replace the whole
 * conversation. Returns undefined if the format does not support that.
 */
export function withRequestTexts(
  body: JsonObject,
  route: ReadRouteType,
  texts: readonly RoleText[],
): JsonObject | undefined {
  const slots = requestSlots(body)
  const isSame =
    slots.length === texts.length &&
    slots.every(({ role }, at) => texts[at]?.role === role || texts[at]?.role === '')
  if (isSame) return withSlots(body, requestSlots, texts)
  return rebuildRequest(body, route, texts)
}

/** Returns the answer with other texts; undefined if the number of texts differs. */
export function withAnswerTexts(
  body: JsonObject,
  format: ChatFormat,
  texts: readonly RoleText[],
): JsonObject | undefined {
  if (answerSlots(body, format).length !== texts.length) return undefined
  return withSlots(body, (copy) => answerSlots(copy, format), texts)
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

type MapField = (holder: JsonObject, name: string, map: TextsMap) => unknown

function slotOf(holder: JsonObject, name: string, role: string, mapField: MapField): Slot {
  const texts: string[] = []
  let last = -1
  mapField(holder, name, (parts, isContent) => {
    texts.push(...parts)
    if (isContent === true) last = texts.length - 1
    return parts
  })
  return {
    role,
    content: texts.filter((text) => text !== '').join(' '),
    last: last < 0 ? texts.length - 1 : last,
    put: (map) => void Reflect.set(holder, name, mapField(holder, name, map)),
  }
}

const hasText = ({ content }: Slot): boolean => content !== ''

/** Fields that come first, in this order; the first two are system prompts. */
const firstFields = ['system', 'instructions', 'prompt']

function requestSlots(body: JsonObject): Slot[] {
  const others = Object.keys(body).filter((name) => !firstFields.includes(name))
  const names = [...firstFields.filter((name) => Object.hasOwn(body, name)), ...others]
  return names.flatMap((name) => slotsOfField(body, name)).filter(hasText)
}

function slotsOfField(body: JsonObject, name: string): Slot[] {
  const value = body[name]
  if (name === 'prompt' && isObject(value)) return promptSlots(value)
  if (!messageFields.has(name) || !Array.isArray(value)) {
    const isSystem = name === 'system' || name === 'instructions'
    return [slotOf(body, name, isSystem ? 'system' : 'user', mapRequestField)]
  }
  return value.flatMap((message: unknown, at): Slot[] => {
    if (!isObject(message)) {
      const mapItem: MapField = (list, index, map) =>
        mapRequestField({ input: Reflect.get(list, index) }, 'input', map)
      return [slotOf(value as unknown as JsonObject, `${at}`, 'user', mapItem)]
    }
    const role = typeof message.role === 'string' ? message.role : 'tool'
    return Object.keys(message).map((key) => slotOf(message, key, role, mapMessageField))
  })
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

/** Returns the slots of the fields of an object in an answer, except those in `skipped`. */
function otherSlots(holder: unknown, ...skipped: readonly string[]): Slot[] {
  if (!isObject(holder)) return []
  return (
    Object.keys(holder)
      // Webhooks see errors apart.
      .filter((name) => name !== 'error' && !skipped.includes(name))
      .map((name) => slotOf(holder, name, 'assistant', mapAnswerField))
      .filter(hasText)
  )
}

const answerSlot = (holder: JsonObject, name: string): Slot =>
  slotOf(holder, name, 'assistant', mapAnswerField)

const answerSlots = (body: JsonObject, format: ChatFormat): Slot[] => [
  ...messageSlots(body, format),
  ...slotsBesideMessages(body, format),
]

const isMessage = ({ type }: JsonObject): boolean => type === 'message'

/** Returns one slot for each choice, content or message, also if it has no text. */
function messageSlots(body: JsonObject, format: ChatFormat): Slot[] {
  switch (format) {
    case 'Completions':
      return listAt(body, 'choices').map(choiceSlot)
    case 'Messages':
      return [answerSlot(body, 'content')]
    case 'Responses':
      return listAt(body, 'output')
        .filter(isObject)
        .filter(isMessage)
        .map((item) => answerSlot(item, 'content'))
  }
}

/** Returns the slots of all other fields with a text. */
function slotsBesideMessages(body: JsonObject, format: ChatFormat): Slot[] {
  const settings = Object.keys(body).filter((name) => isSetting(name, body[name]))
  const rest = otherSlots(body, answerFields[format], ...settings)
  if (format === 'Messages') return rest
  const items = listAt(body, answerFields[format])
  const ofItems =
    format === 'Completions'
      ? items.flatMap(otherSlotsOfChoice)
      : items
          .filter(isObject)
          .flatMap((item) => (isMessage(item) ? otherSlots(item, 'content') : otherSlots(item)))
  return [...ofItems, ...rest]
}

/** Finds the text of a choice: its content, otherwise its refusal or the transcript of its audio. */
function placeOfChoice(choice: unknown): { readonly holder: JsonObject; readonly name: string } {
  const message = objectAt(choice, 'message')
  if (isObject(choice) && message === undefined) return { holder: choice, name: 'text' }
  if (message?.content != null) return { holder: message, name: 'content' }
  if (objectAt(message, 'audio') !== undefined && message?.refusal == null) {
    return { holder: message ?? {}, name: 'audio' }
  }
  return { holder: message ?? {}, name: 'refusal' }
}

function choiceSlot(choice: unknown): Slot {
  const { holder, name } = placeOfChoice(choice)
  return answerSlot(holder, name)
}

function otherSlotsOfChoice(choice: unknown): Slot[] {
  const { holder, name } = placeOfChoice(choice)
  if (holder === choice) return otherSlots(choice, name)
  return [...otherSlots(holder, name), ...otherSlots(choice, 'message')]
}

const plainRoles = new Set(['system', 'developer', 'user', 'assistant'])

const plainMessage = ({ role, content }: RoleText): RoleText => ({
  role: plainRoles.has(role) ? role : 'user',
  content,
})

const isSystem = ({ role }: RoleText): boolean => role === 'system' || role === 'developer'

/** Returns the settings of a request, without any text. */
function settingsOf(body: JsonObject): JsonObject {
  const kept = Object.keys(body).filter((name) => !slotsOfField(body, name).some(hasText))
  return Object.fromEntries(kept.map((name) => [name, body[name]]))
}

function rebuildRequest(
  body: JsonObject,
  route: ReadRouteType,
  texts: readonly RoleText[],
): JsonObject | undefined {
  const messages = texts.map(plainMessage)
  const rest = settingsOf(body)
  switch (route) {
    case 'Completions':
      return { ...rest, messages }
    case 'Responses':
      return { ...rest, input: messages }
    case 'Messages':
    case 'VendorCTokenCount': {
      const system = messages
        .filter(isSystem)
        .map(({ content }) => content)
        .join('\n')
      const conversation = messages.filter((message) => !isSystem(message))
      return { ...rest, ...(system !== '' && { system }), messages: conversation }
    }
    case 'Embeddings':
      return undefined
  }
}
