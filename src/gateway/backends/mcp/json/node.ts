/** Nodes of a JSON text that a scan has accepted, and edits of their texts. */
import { endOfString } from '../../../../engines/json/parse.ts'
import {
  closeBrace,
  closeBracket,
  comma,
  isSpace,
  openBrace,
  openBracket,
  quote,
} from '../../../../engines/json/syntax.ts'

type JsonType = 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null'

/** A value at [start, end) of the text. */
export interface JsonNode {
  readonly type: JsonType
  readonly start: number
  readonly end: number
  /** The keys of an object in order; undefined below the kept depth. */
  readonly keys?: readonly string[] | undefined
  /** The values of an object or array; undefined below the kept depth. */
  readonly values?: readonly JsonNode[] | undefined
}

/** A text to put at [start, end). */
export interface Edit extends Pick<JsonNode, 'start' | 'end'> {
  readonly text: string
}

/** Depth up to which members are read, which includes URIs in the content of results of tools in `inputRequests`. */
const keptDepth = 12

/** An object or array whose members are read, once, if they are needed. */
class Container implements JsonNode {
  readonly type: 'object' | 'array'
  readonly start: number
  readonly end: number
  readonly #text: string
  readonly #depth: number
  #keys: string[] | undefined
  #values: JsonNode[] | undefined

  constructor(type: 'object' | 'array', text: string, start: number, end: number, depth: number) {
    this.type = type
    this.start = start
    this.end = end
    this.#text = text
    this.#depth = depth
  }

  get keys(): readonly string[] | undefined {
    if (this.#values === undefined) this.#read()
    return this.#keys
  }

  get values(): readonly JsonNode[] | undefined {
    if (this.#values === undefined) this.#read()
    return this.#values
  }

  #read(): void {
    const text = this.#text
    const isObject = this.type === 'object'
    let count = 0
    let at = afterSpace(text, this.start + 1)
    while (at < this.end - 1) {
      if (isObject) {
        const end = endOfString(text, at) + 1
        readKeys[count] = stringIn(text, at, end)
        // A colon is next.
        at = afterSpace(text, afterSpace(text, end) + 1)
      }
      const end = endOfValue(text, at)
      readValues[count++] = nodeAt(text, at, end, this.#depth + 1)
      at = afterSpace(text, end)
      if (text.charCodeAt(at) === comma) at = afterSpace(text, at + 1)
    }
    this.#keys = isObject ? take(readKeys, count) : undefined
    this.#values = take(readValues, count)
  }
}

/** Members that are being read. An array that grows would have room for more than most objects have. */
const readKeys: (string | undefined)[] = []
const readValues: (JsonNode | undefined)[] = []
/** Maximum number of places that are kept for other members. */
const maxKept = 1_024

function take<T>(from: (T | undefined)[], count: number): T[] {
  const taken = from.slice(0, count) as T[]
  if (count > maxKept) from.length = 0
  else from.fill(undefined, 0, count)
  return taken
}

/** Returns the code of the first character of the value. */
export const firstCode = (text: string): number => text.charCodeAt(afterSpace(text, 0))

/** Returns the node of the whole text. */
export const rootOf = (text: string): JsonNode =>
  nodeAt(text, afterSpace(text, 0), text.trimEnd().length, 0)

/** Returns the node of the value at [start, end), which is inside as many others as `depth`. */
export function nodeAt(text: string, start: number, end: number, depth: number): JsonNode {
  switch (text.charCodeAt(start)) {
    case openBrace:
      if (depth < keptDepth) return new Container('object', text, start, end, depth)
      return { type: 'object', start, end }
    case openBracket:
      if (depth < keptDepth) return new Container('array', text, start, end, depth)
      return { type: 'array', start, end }
    case quote:
      return { type: 'string', start, end }
    case 0x74:
    case 0x66:
      return { type: 'boolean', start, end }
    case 0x6e:
      return { type: 'null', start, end }
    default:
      return { type: 'number', start, end }
  }
}

function afterSpace(text: string, from: number): number {
  let at = from
  while (isSpace(text.charCodeAt(at))) at++
  return at
}

/** Returns the end of the value at `from`. */
function endOfValue(text: string, from: number): number {
  let depth = 0
  let at = from
  do {
    switch (text.charCodeAt(at)) {
      case quote:
        at = endOfString(text, at)
        break
      case openBrace:
      case openBracket:
        depth++
        break
      case closeBrace:
      case closeBracket:
        depth--
        break
      default:
        if (depth === 0) return endOfWord(text, at)
    }
    at++
  } while (depth > 0)
  return at
}

/** Returns the end of the number or literal at `from`. */
function endOfWord(text: string, from: number): number {
  let at = from
  for (;;) {
    const code = text.charCodeAt(at)
    if (code === comma || code === closeBrace || code === closeBracket || !(code > 0x20)) return at
    at++
  }
}

/** Returns the member of an object; undefined if there is none, or if the node is not an object. */
export function member(node: JsonNode | undefined, key: string): JsonNode | undefined {
  const at = node?.keys?.indexOf(key) ?? -1
  return at < 0 ? undefined : node?.values?.[at]
}

/** Returns the members of an object as JSON, without those with the given keys. */
export function membersOf(
  text: string,
  node: JsonNode | undefined,
  without: readonly string[],
): string[] {
  return (node?.keys ?? []).flatMap((key, at) => {
    const value = node?.values?.[at]
    if (value === undefined || without.includes(key)) return []
    return [`${JSON.stringify(key)}:${rawOf(text, value)}`]
  })
}

/** Returns the value of a string; undefined if the node is not a string. */
export function textOf(source: string, node: JsonNode | undefined): string | undefined {
  return node?.type === 'string' ? stringIn(source, node.start, node.end) : undefined
}

/** Returns the value of the string at [start, end), which includes its quotes. */
export function stringIn(text: string, start: number, end: number): string {
  const raw = text.slice(start + 1, end - 1)
  return raw.includes('\\') ? (JSON.parse(text.slice(start, end)) as string) : raw
}

/** The JSON text of a value. */
export function rawOf(source: string, { start, end }: JsonNode): string {
  return source.slice(start, end)
}

/** The parsed value. */
export function jsonValue(source: string, node: JsonNode): unknown {
  return JSON.parse(rawOf(source, node))
}

/** Replaces the text of one value. */
export function replace(source: string, { start, end }: JsonNode, text: string): string {
  return source.slice(0, start) + text + source.slice(end)
}

/** Replaces the texts of several values. Edits must be in order and must not overlap. */
export function splice(source: string, edits: readonly Edit[]): string {
  return edits.length === 0 ? source : spliceIn(source, { start: 0, end: source.length }, edits)
}

/** Returns the JSON text of a value with the texts of values in it replaced, as `splice` does. */
export function spliceIn(
  source: string,
  { start: from, end: to }: Pick<JsonNode, 'start' | 'end'>,
  edits: readonly Edit[],
): string {
  let out = ''
  let at = from
  for (const { start, end, text } of edits) {
    out += source.slice(at, start) + text
    at = end
  }
  return out + source.slice(at, to)
}
