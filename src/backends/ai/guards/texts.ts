/**
 * The texts of requests and answers that guards look at, in the format of the client: found in the
 * parsed JSON, so that no escape hides anything, and put back where they were. Everything else stays
 * as it is; an unchanged body is the same object.
 */
import type { ChatFormat } from '../client-formats.ts'
import { isObject, type JsonObject, listAt } from '../json.ts'
import type { ReadRouteType } from '../providers/provider.ts'

/**
 * The parts of one text -> what becomes of each. A text may be spread over several parts, which models
 * and people read as one; most texts have a single part.
 */
export type TextsMap = (texts: readonly string[]) => readonly string[]

const mapOne = (text: string, map: TextsMap): string => map([text])[0] ?? ''

/** Replaces fields whose value has changed; the same object where none has. */
function withFields(object: JsonObject, fields: Readonly<Record<string, unknown>>): JsonObject {
  const isChanged = Object.entries(fields).some(([name, value]) => object[name] !== value)
  return isChanged ? { ...object, ...fields } : object
}

function mapList(list: readonly unknown[], map: (item: unknown) => unknown): readonly unknown[] {
  const mapped = list.map(map)
  return mapped.every((item, at) => item === list[at]) ? list : mapped
}

/** Nobody looks at reasoning: it may be signed. */
const reasoningTypes = new Set<unknown>(['reasoning_text', 'summary_text'])

/**
 * The field of a part that holds its text; undefined for parts of other kinds. Of a type that nobody
 * knows a text is taken for one: a provider may read it where this does not.
 */
function textField(part: unknown): 'text' | 'refusal' | 'transcript' | undefined {
  if (!isObject(part)) return undefined
  if (typeof part.text === 'string' && !reasoningTypes.has(part.type)) return 'text'
  if (part.type === 'output_audio' && typeof part.transcript === 'string') return 'transcript'
  return part.type === 'refusal' && typeof part.refusal === 'string' ? 'refusal' : undefined
}

/** The text of a part, and undefined for parts of other kinds. */
export function textOfPart(part: unknown): string | undefined {
  if (typeof part === 'string') return part
  const name = textField(part)
  return isObject(part) && name !== undefined ? String(part[name]) : undefined
}

/** The part with another text; the same object where that is the same text. */
export function putText(part: unknown, text: string): unknown {
  if (typeof part === 'string') return text
  const name = textField(part)
  return isObject(part) && name !== undefined && part[name] !== text
    ? { ...part, [name]: text }
    : part
}

/** Positions of the parts that make one text each. */
function runsOf(parts: readonly unknown[], areOne: boolean): number[][] {
  const runs: number[][] = []
  let isOpen = false
  for (const [at, part] of parts.entries()) {
    const isText = textOfPart(part) !== undefined
    if (isText && isOpen) runs.at(-1)?.push(at)
    else if (isText) runs.push([at])
    isOpen = isText || (isOpen && areOne)
  }
  return runs
}

/**
 * Neighbouring text parts are one text; in answers (`areOne`) all of them are, whatever stands between.
 * Parts that are left without a text go: vendors refuse empty ones.
 */
function mapParts(parts: readonly unknown[], map: TextsMap, areOne = false): readonly unknown[] {
  const texts = new Map<number, string>()
  for (const run of runsOf(parts, areOne)) {
    const mapped = map(run.map((at) => textOfPart(parts[at]) ?? ''))
    for (const [index, at] of run.entries()) texts.set(at, mapped[index] ?? '')
  }
  const changed = parts.flatMap((part, at) => {
    const text = texts.get(at)
    if (text === undefined) return [mapNested(part, map)]
    return text === '' && textOfPart(part) !== '' ? [] : [putText(part, text)]
  })
  const isSame = changed.length === parts.length && changed.every((part, at) => part === parts[at])
  return isSame ? parts : changed
}

/** Fields of messages and parts that hold texts or parts of their own. */
export const nestedFields = ['content', 'output', 'outputs', 'results'] as const
/** Fields of parts that are a text each: of documents, and of what commands have written. */
export const plainFields = ['title', 'context', 'stdout', 'stderr', 'logs'] as const

/** Parts with a content of their own: results of tools, documents, search results. */
export function mapNested(part: unknown, map: TextsMap): unknown {
  if (!isObject(part)) return part
  const data = sourceText(part)
  const inner = sourceContent(part)
  const plain = plainFields.flatMap((name) => {
    const text = part[name]
    return typeof text === 'string' ? [[name, mapOne(text, map)]] : []
  })
  return withFields(part, {
    ...Object.fromEntries(plain),
    ...mapFields(part, map),
    ...(data !== undefined && putSource(part, { data: mapOne(data, map) })),
    ...(inner !== undefined && putSource(part, { content: mapContent(inner, map) })),
  })
}

function mapFields(holder: JsonObject, map: TextsMap): JsonObject {
  const present = nestedFields.filter((name) => Object.hasOwn(holder, name))
  return Object.fromEntries(present.map((name) => [name, mapContent(holder[name], map)]))
}

/** The text of a document that is sent as it is. */
export function sourceText(part: unknown): string | undefined {
  const source = isObject(part) ? part.source : undefined
  const isText = isObject(source) && source.type !== 'base64'
  return isText && typeof source.data === 'string' ? source.data : undefined
}

/** The parts, or the text, that a document is made of. */
export function sourceContent(part: unknown): unknown {
  const source = isObject(part) ? part.source : undefined
  return isObject(source) ? source.content : undefined
}

/** The source of such a document with other fields. */
export function putSource(part: JsonObject, fields: JsonObject): { readonly source: unknown } {
  return { source: isObject(part.source) ? withFields(part.source, fields) : part.source }
}

/** A text, a list of parts, or one part that stands alone. */
function mapContent(content: unknown, map: TextsMap, areOne = false): unknown {
  if (typeof content === 'string') return mapOne(content, map)
  if (isObject(content)) return mapParts([content], map)[0]
  return Array.isArray(content) ? mapParts(content, map, areOne) : content
}

/** A string in the place of a message is a text of its own: an input of embeddings. */
function mapMessage(message: unknown, map: TextsMap): unknown {
  if (typeof message === 'string') return mapOne(message, map)
  if (!isObject(message)) return message
  return withFields(message, {
    ...mapFields(message, map),
    ...(typeof message.refusal === 'string' && { refusal: mapOne(message.refusal, map) }),
  })
}

const mapMessages = (list: unknown, map: TextsMap): unknown =>
  Array.isArray(list) ? mapList(list, (message) => mapMessage(message, map)) : mapContent(list, map)

/** Fields of a request whose texts are looked at, by its format. */
export const requestFields: Readonly<Record<ReadRouteType, readonly string[]>> = {
  Completions: ['messages', 'prediction'],
  Messages: ['system', 'messages'],
  VendorCTokenCount: ['system', 'messages'],
  Responses: ['instructions', 'prompt', 'input'],
  Embeddings: ['input'],
}

export function mapRequestTexts(body: JsonObject, route: ReadRouteType, map: TextsMap): JsonObject {
  const fields = requestFields[route]
    .filter((name) => Object.hasOwn(body, name))
    .map((name) => [name, mapRequestField(name, body[name], map)])
  return withFields(body, Object.fromEntries(fields))
}

function mapRequestField(name: string, value: unknown, map: TextsMap): unknown {
  if (name === 'prompt') return mapVariables(value, map)
  const isPlain = name === 'system' || name === 'instructions'
  return isPlain || isListOfTexts(value) ? mapContent(value, map) : mapMessages(value, map)
}

/** What a template that the vendor keeps is filled with. */
function mapVariables(prompt: unknown, map: TextsMap): unknown {
  if (!isObject(prompt) || !isObject(prompt.variables)) return prompt
  const { variables } = prompt
  const mapped = Object.entries(variables).map(([name, value]) => [name, mapContent(value, map)])
  return withFields(prompt, { variables: withFields(variables, Object.fromEntries(mapped)) })
}

/** Inputs of embeddings: each text stands for itself, so they are no parts of one text. */
const isListOfTexts = (value: unknown): boolean => typeof value === 'string'

/** Texts of a whole answer, in the client's format: all texts of a message or choice are one. */
export function mapAnswerTexts(body: JsonObject, format: ChatFormat, map: TextsMap): JsonObject {
  switch (format) {
    case 'Completions':
      return mapField(body, 'choices', (choice) =>
        mapText(
          mapField(choice, 'message', (message) => mapChoice(message, map)),
          'text',
          map,
        ),
      )
    case 'Messages':
      return withFields(body, { content: mapContent(body.content, map, true) })
    case 'Responses':
      return mapOutput(body, map)
  }
}

/** A field that is a text of its own. */
const mapText = (value: unknown, name: string, map: TextsMap): JsonObject =>
  mapField(value, name, (text) => (typeof text === 'string' ? mapOne(text, map) : text))

function mapChoice(whole: unknown, map: TextsMap): unknown {
  const message = mapField(whole, 'audio', (audio) => mapText(audio, 'transcript', map))
  if (!isObject(message) || !Array.isArray(message.content)) return mapMessage(message, map)
  const { content, ...rest } = message
  const mapped = mapMessage(rest, map)
  return withFields(message, {
    ...(isObject(mapped) && mapped),
    content: mapParts(content, map, true),
  })
}

/** The text parts of all items are one text; parts and items stay, since events count them. */
function mapOutput(body: JsonObject, map: TextsMap): JsonObject {
  const output = listAt(body, 'output')
  const partsOf = (item: unknown) => listAt(item, 'content')
  const texts = output.flatMap((item) => partsOf(item).flatMap((part) => textOfPart(part) ?? []))
  const mapped = texts.length === 0 ? [] : map(texts)
  let next = 0
  const mapPart = (part: unknown) =>
    textOfPart(part) === undefined ? mapNested(part, map) : putText(part, mapped[next++] ?? '')
  return mapField(body, 'output', (item) => {
    if (!isObject(item) || !Array.isArray(item.content)) return mapMessage(item, map)
    const { content, ...rest } = item
    const others = mapMessage(rest, map)
    return withFields(item, {
      ...(isObject(others) && others),
      content: mapList(content, mapPart),
    })
  })
}

function mapField(value: unknown, name: string, map: (item: unknown) => unknown): JsonObject {
  if (!isObject(value) || !Object.hasOwn(value, name)) return value as JsonObject
  const part = value[name]
  return withFields(value, { [name]: Array.isArray(part) ? mapList(part, map) : map(part) })
}
