/**
 * Requests and answers as webhooks and moderation see them: one flat text for each message. A slot
 * contains the location of its text, so that a changed text can be put back there.
 */
import type { ChatFormat } from '../client-formats.ts'
import { field, isObject, type JsonObject, listAt, objectAt, parseJson } from '../json.ts'
import type { ReadRouteType } from '../providers/provider.ts'
import {
  nestedFields,
  plainFields,
  putSource,
  putText,
  requestFields,
  sourceContent,
  sourceText,
  textOfPart,
} from './texts.ts'

/** A text with the role of its author. */
export interface RoleText {
  readonly role: string
  readonly content: string
}

/** The location of a text: a field of an object, or an index of a list. */
interface Slot extends RoleText {
  readonly holder: object
  readonly key: string | number
}

/** Returns all texts of a request; a separate system prompt comes first. */
export function requestTexts(body: JsonObject, route: ReadRouteType): RoleText[] {
  return requestSlots(body, route).map(({ role, content }) => ({ role, content }))
}

/** Returns the texts of an answer: one for each choice, content or message, depending on the format. */
export function answerTexts(body: JsonObject, format: ChatFormat): RoleText[] {
  return answerSlots(body, format).map(({ role, content }) => ({ role, content }))
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
  const slots = requestSlots(body, route)
  const isSame =
    slots.length === texts.length &&
    slots.every(({ role }, at) => texts[at]?.role === role || texts[at]?.role === '')
  if (isSame) return withSlots(body, (copy) => requestSlots(copy, route), texts)
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
  for (const [at, { holder, key, content }] of slotsOf(copy).entries()) {
    const text = texts[at]?.content ?? ''
    if (text === content) continue
    Reflect.set(holder, key, withText(Reflect.get(holder, key), text))
  }
  return copy
}

function requestSlots(body: JsonObject, route: ReadRouteType): Slot[] {
  return requestFields[route].flatMap((name): Slot[] => {
    const value = body[name]
    if (name === 'system' || name === 'instructions') return slotAt(body, name, 'system')
    if (name === 'prompt') {
      const variables = objectAt(body.prompt, 'variables') ?? {}
      return Object.keys(variables).flatMap((key) => slotAt(variables, key, 'user'))
    }
    if (!Array.isArray(value)) return slotAt(body, name, 'user')
    return value.flatMap((message: unknown, at) => {
      if (!isObject(message)) return slotAt(value, at, 'user')
      const role = typeof message.role === 'string' ? message.role : 'tool'
      return [...nestedFields, 'refusal'].flatMap((key) => slotAt(message, key, role))
    })
  })
}

function slotAt(holder: object, key: string | number, role: string): Slot[] {
  const content = flatText(Reflect.get(holder, key))
  return content === '' ? [] : [{ role, content, holder, key }]
}

function answerSlots(body: JsonObject, format: ChatFormat): Slot[] {
  const slot = (holder: object, key: string): Slot => {
    const content = flatText(Reflect.get(holder, key))
    return { role: 'assistant', content, holder, key }
  }
  switch (format) {
    case 'Completions':
      return listAt(body, 'choices').map((choice) => choiceSlot(choice, slot))
    case 'Messages':
      return [slot(body, 'content')]
    case 'Responses':
      return listAt(body, 'output')
        .filter((item) => field(item, 'type') === 'message')
        .map((item) => slot(item as JsonObject, 'content'))
  }
}

/** Returns the slot of a choice: its content, otherwise its refusal or the transcript of its audio. */
function choiceSlot(choice: unknown, slot: (holder: object, key: string) => Slot): Slot {
  const message = objectAt(choice, 'message')
  if (isObject(choice) && message === undefined) return slot(choice, 'text')
  if (message?.content != null) return slot(message, 'content')
  const audio = objectAt(message, 'audio')
  if (audio !== undefined && message?.refusal == null) return slot(audio, 'transcript')
  return slot(message ?? {}, 'refusal')
}

function flatText(content: unknown): string {
  return leavesOf(content)
    .filter((text) => text !== '')
    .join(' ')
}

/** Returns all texts of a content, including those of documents and nested parts. */
function leavesOf(content: unknown): string[] {
  if (typeof content === 'string') return [content]
  if (isObject(content)) return leavesOf([content])
  if (!Array.isArray(content)) return []
  return content.flatMap((part) => {
    const text = textOfPart(part)
    return text === undefined ? leavesBelow(part) : [text]
  })
}

/** Returns the texts inside a part that is not a text part. */
function leavesBelow(part: unknown): string[] {
  const plain = plainFields.map((name) => field(part, name)).filter(isText)
  const nested = nestedFields.flatMap((name) => leavesOf(field(part, name)))
  const data = sourceText(part)
  const parts = leavesOf(sourceContent(part))
  return [...plain, ...nested, ...parts, ...(data === undefined ? [] : [data])]
}

const isText = (value: unknown): value is string => typeof value === 'string'

/** Replaces all texts of a content by one: the last text part gets it, and other text parts are removed. */
function withText(content: unknown, text: string): unknown {
  const last = leavesOf(content).length - 1
  let at = -1
  const isLast = () => ++at === last
  const changePart = (part: unknown): unknown[] => {
    if (textOfPart(part) !== undefined) return isLast() ? [putText(part, text)] : []
    return isObject(part) ? changeBelow(part) : [part]
  }
  const changeFields = (part: JsonObject): JsonObject => {
    const plain = plainFields.filter((name) => isText(part[name]))
    const nested = nestedFields.filter((name) => Object.hasOwn(part, name))
    return Object.fromEntries([
      ...plain.map((name) => [name, isLast() ? text : '']),
      ...nested.map((name) => [name, change(part[name])]),
    ])
  }
  const changeBelow = (part: JsonObject): unknown[] => {
    const changed = { ...part, ...changeFields(part) }
    const inner = sourceContent(part)
    if (inner !== undefined) Object.assign(changed, putSource(part, { content: change(inner) }))
    if (sourceText(part) === undefined) return [changed]
    return isLast() ? [{ ...changed, ...putSource(part, { data: text }) }] : []
  }
  const change = (value: unknown): unknown => {
    if (typeof value === 'string') return isLast() ? text : ''
    if (isObject(value)) return changePart(value)[0]
    return Array.isArray(value) ? value.flatMap(changePart) : value
  }
  return last < 0 ? content : change(content)
}

const plainRoles = new Set(['system', 'developer', 'user', 'assistant'])

const plainMessage = ({ role, content }: RoleText): RoleText => ({
  role: plainRoles.has(role) ? role : 'user',
  content,
})

const isSystem = ({ role }: RoleText): boolean => role === 'system' || role === 'developer'

function rebuildRequest(
  body: JsonObject,
  route: ReadRouteType,
  texts: readonly RoleText[],
): JsonObject | undefined {
  const messages = texts.map(plainMessage)
  switch (route) {
    case 'Completions': {
      const { prediction: _prediction, ...rest } = body
      return { ...rest, messages }
    }
    case 'Responses': {
      const { instructions: _instructions, prompt: _prompt, ...rest } = body
      return { ...rest, input: messages }
    }
    case 'Messages':
    case 'VendorCTokenCount': {
      const { system: _system, ...rest } = body
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
