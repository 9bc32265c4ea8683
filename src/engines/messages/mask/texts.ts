/**
 * Maps the texts of requests and responses that guards read, in the format of the client. It works on
 * parsed JSON, so that escapes cannot hide text. `text-fields.ts` says which strings are texts. Everything
 * else is kept; if no text changes, the result is the same object.
 */
import { isObject, type JsonObject, mapList } from '../json/json.ts'
import { LlmError } from '../llm-error.ts'
import { decoded, encoded, encodedText } from './encoded-texts.ts'
import {
  contentFields,
  isLabel,
  isSetting,
  isSkipped,
  type OwnTexts,
  putText,
  requestScopeOf,
  responseScopeOf,
  ruleOf,
  scopeOf,
  type TextScope,
  textField,
  textOfPart,
} from './text-fields.ts'

/**
 * Maps the parts of one text, which guards read as a whole. Most texts have a single part. `isContent` is true
 * if the parts are contents of messages.
 */
export type TextsMap = (texts: readonly string[], isContent?: boolean) => readonly string[]

const mapOne = (text: string, map: TextsMap, isContent = false): string =>
  map([text], isContent)[0] ?? ''

/** How texts are mapped, and where they are. */
export interface Reading {
  readonly map: TextsMap
  readonly scope: TextScope
}

/** How the text parts of a list are read. */
interface ListRules {
  /** All text parts are one text; otherwise adjacent ones are. */
  readonly areOneText?: boolean
  /** Parts whose text becomes empty are removed, because vendors reject empty parts. */
  readonly removesEmpty?: boolean
}

const contentRules: ListRules = { removesEmpty: true }
export const responseRules: ListRules = { removesEmpty: true, areOneText: true }
const otherRules: ListRules = {}

/** Maps the values of an object; returns the same object if nothing changes. */
export function mapEntries(
  object: JsonObject,
  map: (name: string, value: unknown) => unknown,
): JsonObject {
  let changed: Record<string, unknown> | undefined
  for (const name of Object.keys(object)) {
    const mapped = map(name, object[name])
    if (mapped === object[name]) continue
    changed ??= { ...object }
    changed[name] = mapped
  }
  return changed ?? object
}

/** Maps the texts of an object except those in the field `skipped`. `key` is the field that contains it. */
export function mapObject(
  object: JsonObject,
  key: string | undefined,
  reading: Reading,
  skipped?: string,
): JsonObject {
  return mapEntries(object, (name, value) =>
    name === skipped ? value : mapMember(object, key, name, value, reading),
  )
}

/** Maps the texts of a field of an object. */
export function mapMember(
  holder: JsonObject,
  key: string | undefined,
  name: string,
  value: unknown,
  reading: Reading,
): unknown {
  if (value === null || isSkipped(holder, key, name, reading.scope)) return value
  const rule = ruleOf(reading.scope, name)
  if (rule === 'data') return mapData(value, reading.map)
  if (typeof rule === 'function' && isObject(value)) return rule(value, reading)
  if (typeof value === 'string') return mapString(holder, name, value, reading)
  if (Array.isArray(value)) {
    if (contentFields.has(name) || rule === 'content') {
      return mapParts(value, name, reading, contentRules)
    }
    if (!isLabel(holder, name, reading.scope)) return mapParts(value, name, reading, otherRules)
    return mapList(value, (item) => (isObject(item) ? mapObject(item, name, reading) : item))
  }
  if (!isObject(value)) return value
  if (name !== 'variables') return mapObject(value, name, reading)
  // Variables of a template have names of their own.
  return mapEntries(value, (_name, variable) => mapContent(variable, reading))
}

function mapString(
  holder: JsonObject,
  name: string,
  value: string,
  { map, scope }: Reading,
): string {
  const data = encodedText(holder, name, scope)
  if (data === 'notText') return value
  if (data !== undefined) {
    const text = decoded(data)
    const mapped = mapOne(text, map)
    return mapped === text ? value : encoded(data, mapped)
  }
  return isLabel(holder, name, scope) ? value : mapOne(value, map, contentFields.has(name))
}

/** Maps data of a tool, whose names are texts, too. @throws LlmError 400 if it is nested too deeply. */
function mapData(value: unknown, map: TextsMap): unknown {
  const mapped = mapEvery(value, map, 400)
  return mapNames(mapped, map)
}

function mapNames(value: unknown, map: TextsMap): unknown {
  if (Array.isArray(value)) return mapList(value, (item) => mapNames(item, map))
  if (!isObject(value)) return value
  let isSame = true
  const entries = Object.entries(value).map(([name, item]) => {
    const entry = [mapOne(name, map), mapNames(item, map)] as const
    isSame &&= entry[0] === name && entry[1] === item
    return entry
  })
  return isSame ? value : Object.fromEntries(entries)
}

const maxDepth = 100

/** Maps every text of a value. @throws LlmError of the status if it is nested too deeply. */
export function mapEvery(value: unknown, map: TextsMap, status: number, depth = 0): unknown {
  if (typeof value === 'string') return mapOne(value, map)
  if (depth > maxDepth) {
    throw new LlmError(status, `a value deeper than ${maxDepth} cannot be guarded`)
  }
  const mapItem = (item: unknown) => mapEvery(item, map, status, depth + 1)
  if (Array.isArray(value)) return mapList(value, mapItem)
  return isObject(value) ? mapEntries(value, (_, item) => mapItem(item)) : value
}

/** Maps the texts of a list: of its text parts, and of everything else in them. */
export function mapParts(
  parts: readonly unknown[],
  key: string | undefined,
  reading: Reading,
  { areOneText = false, removesEmpty = false }: ListRules,
): readonly unknown[] {
  const { scope } = reading
  const texts = new Map<number, string>()
  const changed: unknown[] = []
  let isSame = true
  let isMapped = false
  for (const [at, part] of parts.entries()) {
    const text = textOfPart(part, scope)
    const isNext = areOneText ? isMapped : texts.has(at)
    if (text !== undefined && !isNext) {
      mapRun(parts, at, reading, areOneText, texts)
      isMapped = true
    }
    const mapped = text === undefined ? undefined : (texts.get(at) ?? '')
    if (removesEmpty && mapped === '' && text !== '') {
      isSame = false
      continue
    }
    const put = mapped === undefined ? part : putText(part, mapped, scope)
    const whole = mapRest(put, key, reading)
    isSame &&= whole === part
    changed.push(whole)
  }
  return isSame ? parts : changed
}

const isPart = (value: unknown): boolean => isObject(value) || Array.isArray(value)

/** Maps the text that begins at a part. */
function mapRun(
  parts: readonly unknown[],
  from: number,
  { map, scope }: Reading,
  areOneText: boolean,
  texts: Map<number, string>,
): void {
  const places: number[] = []
  const run: string[] = []
  for (let at = from; at < parts.length; at++) {
    const text = textOfPart(parts[at], scope)
    // Numbers and null are no parts, so that they end no text.
    if (isPart(parts[at]) && text === undefined && !areOneText) break
    if (text === undefined) continue
    places.push(at)
    run.push(text)
  }
  const mapped = map(run, true)
  for (const [index, at] of places.entries()) texts.set(at, mapped[index] ?? '')
}

/** Maps what a part contains besides its text. */
export function mapRest(part: unknown, key: string | undefined, reading: Reading): unknown {
  if (Array.isArray(part)) return mapParts(part, key, reading, otherRules)
  return isObject(part) ? mapObject(part, key, reading, textField(part, reading.scope)) : part
}

/** Maps a content: a text, a list of parts, or a single part. */
export function mapContent(content: unknown, reading: Reading, rules = contentRules): unknown {
  if (typeof content === 'string') return mapOne(content, reading.map, true)
  if (isObject(content)) return mapObject(content, undefined, reading)
  return Array.isArray(content) ? mapParts(content, undefined, reading, rules) : content
}

/** Maps a message. A string in place of a message is an input of embeddings. */
function mapMessage(message: unknown, { map, scope }: Reading): unknown {
  if (typeof message === 'string') return mapOne(message, map, true)
  if (!isObject(message)) return message
  return mapObject(message, undefined, { map, scope: scopeOf(message, scope) })
}

/** Fields of requests that contain messages. */
const messageFields: ReadonlySet<string> = new Set(['messages', 'input'])

export const isMessageField = (name: string, own: OwnTexts | undefined): boolean =>
  messageFields.has(name) || name === own?.messages

/** Maps a top-level field of a request. */
export function mapRequestField(
  body: JsonObject,
  name: string,
  map: TextsMap,
  own?: OwnTexts,
): unknown {
  const value = body[name]
  if (isSetting(name, value)) return value
  const reading = { map, scope: requestScopeOf(own) }
  if (isMessageField(name, own)) {
    return Array.isArray(value)
      ? mapList(value, (message) => mapMessage(message, reading))
      : mapContent(value, reading)
  }
  return mapMember(body, undefined, name, value, reading)
}

/** Maps a field of a message of a request. */
export const mapMessageField = (
  message: JsonObject,
  name: string,
  map: TextsMap,
  own?: OwnTexts,
): unknown =>
  mapMember(message, undefined, name, message[name], {
    map,
    scope: scopeOf(message, requestScopeOf(own)),
  })

/** Maps a variable of a template, whatever its name is. */
export const mapVariable = (variables: JsonObject, name: string, map: TextsMap): unknown =>
  mapContent(variables[name], { map, scope: requestScopeOf(undefined) })

/** Maps a field of an object in a response. */
export const mapResponseField = (
  holder: JsonObject,
  name: string,
  map: TextsMap,
  own?: OwnTexts,
): unknown => mapMember(holder, undefined, name, holder[name], { map, scope: responseScopeOf(own) })

export function mapRequestTexts(body: JsonObject, map: TextsMap, own?: OwnTexts): JsonObject {
  return mapEntries(body, (name) => mapRequestField(body, name, map, own))
}

/** Where whole responses of a format have the texts of the model. */
export interface ResponseTexts {
  readonly field: string
  /** Maps the value of the field: all texts of a message or choice are one text. */
  map(value: unknown, reading: Reading): unknown
}

/** Maps the texts of a whole response. */
export function mapResponseTexts(
  body: JsonObject,
  texts: ResponseTexts,
  map: TextsMap,
  own?: OwnTexts,
): JsonObject {
  const reading = { map, scope: responseScopeOf(own) }
  return mapEntries(body, (name, value) => {
    if (isSetting(name, value)) return value
    return name === texts.field ? texts.map(value, reading) : mapResponseField(body, name, map, own)
  })
}

/** Maps an object of a response, or a block of it, as an item without parts. */
export function mapBlock(block: JsonObject, map: TextsMap): JsonObject {
  return mapObject(block, undefined, { map, scope: responseScopeOf(undefined) })
}
