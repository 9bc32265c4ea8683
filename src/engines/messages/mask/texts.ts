/**
 * Maps the texts of requests and responses that guards read, in the format of the client. It works on
 * parsed JSON, so that escapes cannot hide text. `text-fields.ts` says which strings are texts. Everything
 * else is kept; if no text changes, the result is the same object.
 */
import { isObject, type JsonObject, mapList } from '../json/json.ts'
import { decoded, encoded, encodedText } from './encoded-texts.ts'
import { mapOptIn } from './opt-in-texts.ts'
import {
  optInPlaces,
  type Place,
  placeOfDocument,
  placeOfMember,
  placeOfMessage,
  placeOfObject,
  placeOfSetting,
} from './places.ts'
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
import { mapEntries, mapEvery, mapNames, mapOne, type TextsMap } from './texts-map.ts'

/** How texts are mapped, and where they are. */
export interface Reading {
  readonly map: TextsMap
  readonly scope: TextScope
  /** Where the texts are; `Messages` if omitted. */
  readonly place?: Place
}

/** The reading of a member of an object. Places matter only to guards with a scope. */
function readingOf(holder: JsonObject, name: string, reading: Reading): Reading {
  const { map, scope, place = 'Messages' } = reading
  if (map.optIn === undefined) return reading
  const inside = placeOfMember(holder, name, place, scope.own)
  return inside === place ? reading : { map, scope, place: inside }
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
  outer: Reading,
): unknown {
  if (value === null) return value
  const reading = readingOf(holder, name, outer)
  if (isSkipped(holder, key, name, reading.scope)) {
    return mapSkipped(holder, name, value, reading)
  }
  const rule = ruleOf(reading.scope, name)
  if (rule === 'data') return mapData(value, reading)
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

/** Maps a member that guards skip, unless it is at an opt-in place that the scope names. */
function mapSkipped(
  holder: JsonObject,
  name: string,
  value: unknown,
  { map: { optIn }, scope, place = 'Messages' }: Reading,
): unknown {
  return optIn !== undefined && optInPlaces.has(place) && optIn.has(place)
    ? mapOptIn(holder, name, value, place, optIn, scope)
    : value
}

function mapString(
  holder: JsonObject,
  name: string,
  value: string,
  { map, scope, place = 'Messages' }: Reading,
): string {
  const data = encodedText(holder, name, scope)
  if (data === 'notText') return value
  if (data !== undefined) {
    const text = decoded(data)
    const mapped = mapOne(text, map, false, placeOfDocument(place))
    return mapped === text ? value : encoded(data, mapped)
  }
  return isLabel(holder, name, scope) ? value : mapOne(value, map, contentFields.has(name), place)
}

/** Maps data of a tool, whose names are texts, too. @throws LlmError 400 if it is nested too deeply. */
function mapData(value: unknown, { map, place }: Reading): unknown {
  const atPlace: TextsMap = (texts, isContent) => map(texts, isContent, place ?? 'Messages')
  return mapNames(mapEvery(value, atPlace, 400), atPlace)
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
  for (const [at, part] of parts.entries()) {
    const text = textOfPart(part, scope)
    if (text !== undefined && !texts.has(at)) mapRun(parts, at, reading, areOneText, texts)
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
  { map, scope, place: outer = 'Messages' }: Reading,
  areOneText: boolean,
  texts: Map<number, string>,
): void {
  const placeAt = (at: number): Place =>
    map.optIn === undefined ? outer : placeOfObject(parts[at], outer, scope.own)
  const place = placeAt(from)
  const indexes: number[] = []
  const run: string[] = []
  for (let at = from; at < parts.length; at++) {
    const text = textOfPart(parts[at], scope)
    // Numbers and null are no parts, so that they end no text.
    if (isPart(parts[at]) && text === undefined && !areOneText) break
    if (text === undefined) continue
    if (placeAt(at) !== place) {
      if (areOneText) continue
      break
    }
    indexes.push(at)
    run.push(text)
  }
  const mapped = map(run, true, place)
  for (const [index, at] of indexes.entries()) texts.set(at, mapped[index] ?? '')
}

/** Maps what a part contains besides its text. */
export function mapRest(part: unknown, key: string | undefined, reading: Reading): unknown {
  if (Array.isArray(part)) return mapParts(part, key, reading, otherRules)
  return isObject(part) ? mapObject(part, key, reading, textField(part, reading.scope)) : part
}

/** Maps a content: a text, a list of parts, or a single part. */
export function mapContent(content: unknown, reading: Reading, rules = contentRules): unknown {
  if (typeof content === 'string')
    return mapOne(content, reading.map, true, reading.place ?? 'Messages')
  if (isObject(content)) return mapObject(content, undefined, reading)
  return Array.isArray(content) ? mapParts(content, undefined, reading, rules) : content
}

/** Maps a message. A string in place of a message is an input of embeddings. */
function mapMessage(message: unknown, { map, scope }: Reading): unknown {
  if (typeof message === 'string') return mapOne(message, map, true, 'Messages')
  if (!isObject(message)) return message
  const place = placeOfMessage(message)
  return mapObject(message, undefined, { map, scope: scopeOf(message, scope), place })
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
  const reading = { map, scope: requestScopeOf(own) }
  if (isSetting(name, value)) {
    return mapSkipped(body, name, value, { ...reading, place: placeOfSetting(name) })
  }
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
    place: placeOfMessage(message),
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
