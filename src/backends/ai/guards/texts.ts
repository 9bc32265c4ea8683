/**
 * Maps the texts of requests and answers that guards read, in the format of the client. It works on
 * parsed JSON, so that escapes cannot hide text. Everything else is kept; if no text changes, the
 * result is the same object.
 */
import type { ChatFormat } from '../client-formats.ts'
import { isObject, type JsonObject, listAt, mapField, mapList, withFields } from '../json.ts'
import type { ReadRouteType } from '../providers/provider.ts'

/** Maps the parts of one text, which guards read as a whole. Most texts have a single part. */
export type TextsMap = (texts: readonly string[]) => readonly string[]

const mapOne = (text: string, map: TextsMap): string => map([text])[0] ?? ''

/** Guards do not read reasoning, because it may be signed. */
const reasoningTypes = new Set<unknown>(['reasoning_text', 'summary_text'])

/**
 * Returns the name of the field with the text of a part; undefined if the part has no text. In a part of
 * an unknown type, `text` counts as its text, because the provider may read it.
 */
function textField(part: unknown): 'text' | 'refusal' | 'transcript' | undefined {
  if (!isObject(part)) return undefined
  if (typeof part.text === 'string' && !reasoningTypes.has(part.type)) return 'text'
  if (part.type === 'output_audio' && typeof part.transcript === 'string') return 'transcript'
  return part.type === 'refusal' && typeof part.refusal === 'string' ? 'refusal' : undefined
}

/** Returns the text of a part; undefined if the part has no text. */
export function textOfPart(part: unknown): string | undefined {
  if (typeof part === 'string') return part
  const name = textField(part)
  return isObject(part) && name !== undefined ? String(part[name]) : undefined
}

/** Returns the part with another text; the same object if the text is the same. */
export function putText(part: unknown, text: string): unknown {
  if (typeof part === 'string') return text
  const name = textField(part)
  return isObject(part) && name !== undefined && part[name] !== text
    ? { ...part, [name]: text }
    : part
}

/** Returns the positions of the parts of each text. If `areOneText`, all text parts are one text. */
function runsOf(parts: readonly unknown[], areOneText: boolean): number[][] {
  const runs: number[][] = []
  let isOpen = false
  for (const [at, part] of parts.entries()) {
    const isText = textOfPart(part) !== undefined
    if (isText && isOpen) runs.at(-1)?.push(at)
    else if (isText) runs.push([at])
    isOpen = isText || (isOpen && areOneText)
  }
  return runs
}

/**
 * Maps the text parts of a content. Adjacent text parts are one text; in answers (`areOneText`), all text
 * parts are. Parts whose text becomes empty are removed, because vendors reject empty parts.
 */
function mapParts(
  parts: readonly unknown[],
  map: TextsMap,
  areOneText = false,
): readonly unknown[] {
  const texts = new Map<number, string>()
  for (const run of runsOf(parts, areOneText)) {
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

/** Fields of messages and parts that contain texts or parts. */
export const nestedFields = ['content', 'output', 'outputs', 'results'] as const
/** Fields of parts that contain plain text, in documents and in the output of commands. */
export const plainFields = ['title', 'context', 'stdout', 'stderr', 'logs'] as const

/** Maps the texts inside a part: tool results, documents, search results. */
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

/** Returns the text of a document that is sent as plain text. */
export function sourceText(part: unknown): string | undefined {
  const source = isObject(part) ? part.source : undefined
  const isText = isObject(source) && source.type !== 'base64'
  return isText && typeof source.data === 'string' ? source.data : undefined
}

/** Returns the content of a document that consists of parts or of a text. */
export function sourceContent(part: unknown): unknown {
  const source = isObject(part) ? part.source : undefined
  return isObject(source) ? source.content : undefined
}

/** Returns the source of a document with `fields` replaced. */
export function putSource(part: JsonObject, fields: JsonObject): { readonly source: unknown } {
  return { source: isObject(part.source) ? withFields(part.source, fields) : part.source }
}

/** Maps a content: a text, a list of parts, or a single part. */
function mapContent(content: unknown, map: TextsMap, areOneText = false): unknown {
  if (typeof content === 'string') return mapOne(content, map)
  if (isObject(content)) return mapParts([content], map)[0]
  return Array.isArray(content) ? mapParts(content, map, areOneText) : content
}

/** Maps a message. A string in place of a message is an input of embeddings. */
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

/** Fields of a request whose texts guards read, by its format. */
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
  const isContent = name === 'system' || name === 'instructions' || typeof value === 'string'
  return isContent ? mapContent(value, map) : mapMessages(value, map)
}

/** Maps the variables of a template that the vendor stores. */
function mapVariables(prompt: unknown, map: TextsMap): unknown {
  if (!isObject(prompt) || !isObject(prompt.variables)) return prompt
  const { variables } = prompt
  const mapped = Object.entries(variables).map(([name, value]) => [name, mapContent(value, map)])
  return withFields(prompt, { variables: withFields(variables, Object.fromEntries(mapped)) })
}

/** Maps the texts of a whole answer: all texts of a message or choice are one text. */
export function mapAnswerTexts(body: JsonObject, format: ChatFormat, map: TextsMap): JsonObject {
  switch (format) {
    case 'Completions':
      return mapFieldIn(body, 'choices', (choice) =>
        mapText(
          mapFieldIn(choice, 'message', (message) => mapChoice(message, map)),
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

/** Maps a field that is a text. */
const mapText = (value: unknown, name: string, map: TextsMap): JsonObject =>
  mapFieldIn(value, name, (text) => (typeof text === 'string' ? mapOne(text, map) : text))

function mapChoice(whole: unknown, map: TextsMap): unknown {
  const message = mapFieldIn(whole, 'audio', (audio) => mapText(audio, 'transcript', map))
  if (!isObject(message) || !Array.isArray(message.content)) return mapMessage(message, map)
  const { content, ...rest } = message
  const mapped = mapMessage(rest, map)
  return withFields(message, {
    ...(isObject(mapped) && mapped),
    content: mapParts(content, map, true),
  })
}

/** Maps the text parts of all items as one text. Keeps empty parts, because events refer to positions. */
function mapOutput(body: JsonObject, map: TextsMap): JsonObject {
  const output = listAt(body, 'output')
  const partsOf = (item: unknown) => listAt(item, 'content')
  const texts = output.flatMap((item) => partsOf(item).flatMap((part) => textOfPart(part) ?? []))
  const mapped = texts.length === 0 ? [] : map(texts)
  let next = 0
  const mapPart = (part: unknown) =>
    textOfPart(part) === undefined ? mapNested(part, map) : putText(part, mapped[next++] ?? '')
  return mapFieldIn(body, 'output', (item) => {
    if (!isObject(item) || !Array.isArray(item.content)) return mapMessage(item, map)
    const { content, ...rest } = item
    const mappedFields = mapMessage(rest, map)
    return withFields(item, {
      ...(isObject(mappedFields) && mappedFields),
      content: mapList(content, mapPart),
    })
  })
}

/** Maps a field of a value that may be no object. */
function mapFieldIn(value: unknown, name: string, map: (item: unknown) => unknown): JsonObject {
  return isObject(value) ? mapField(value, name, map) : (value as JsonObject)
}
