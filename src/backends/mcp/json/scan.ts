/**
 * A JSON scanner that reports positions instead of values, so that messages are forwarded byte for
 * byte except for the values that change. JSON that parsers may read in different ways, such as
 * objects with duplicate keys, is refused.
 */

import { KeyStack } from './key-stack.ts'

type JsonType = 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null'

/** A value at [start, end) of the text. */
export interface JsonNode {
  readonly type: JsonType
  readonly start: number
  readonly end: number
  /** The keys of an object in order, without duplicates; undefined below the kept depth. */
  readonly keys?: readonly string[]
  /** The values of an object or array; undefined below the kept depth. */
  readonly values?: readonly JsonNode[]
}

/** A text to put at [start, end). */
export interface Edit extends Pick<JsonNode, 'start' | 'end'> {
  readonly text: string
}

interface ScanLimits {
  /** Maximum nesting depth. */
  readonly maxDepth: number
  /** Depth up to which keys and values are kept. Deeper values are only checked. */
  readonly keptDepth: number
}

/** Thrown if the text is not JSON or is ambiguous. */
export class JsonRefusal extends Error {
  override readonly name = 'JsonRefusal'
}

/** @throws JsonRefusal */
export function scanJson(text: string, limits: ScanLimits): JsonNode {
  return scanner.all(text, limits)
}

/** Returns the member of an object; undefined if there is none, or if the node is not an object. */
export function member(node: JsonNode | undefined, key: string): JsonNode | undefined {
  const at = node?.keys?.indexOf(key) ?? -1
  return at < 0 ? undefined : node?.values?.[at]
}

/** Returns the value of a string; undefined if the node is not a string. */
export function textOf(source: string, node: JsonNode | undefined): string | undefined {
  if (node?.type !== 'string') return undefined
  const raw = source.slice(node.start + 1, node.end - 1)
  return raw.includes('\\') ? (JSON.parse(source.slice(node.start, node.end)) as string) : raw
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
  let out = ''
  let at = 0
  for (const { start, end, text } of edits) {
    out += source.slice(at, start) + text
    at = end
  }
  return at === 0 ? source : out + source.slice(at)
}

const quote = 0x22
const openObject = 0x7b
const openArray = 0x5b
const backslash = 0x5c
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
/** Maximum number of places for values that are kept for the next text. */
const maxKeptValues = 1_024

/** How many levels of nodes are made at once. Few of those below the params or the result are read. */
const levelsAt = (depth: number): number => (depth < 2 ? 1 : 2)

/** An object or array whose members are scanned again, once, if they are read. */
class DeepNode implements JsonNode {
  readonly type: JsonType
  readonly start: number
  readonly end: number
  readonly #text: string
  readonly #limits: ScanLimits
  readonly #depth: number
  #made: JsonNode | undefined

  constructor(
    type: JsonType,
    start: number,
    end: number,
    text: string,
    limits: ScanLimits,
    depth: number,
  ) {
    this.type = type
    this.start = start
    this.end = end
    this.#text = text
    this.#limits = limits
    this.#depth = depth
  }

  get keys(): readonly string[] | undefined {
    return this.#whole.keys
  }

  get values(): readonly JsonNode[] | undefined {
    return this.#whole.values
  }

  get #whole(): JsonNode {
    this.#made ??= scanner.part(this.#text, this.#limits, this.start, this.#depth)
    return this.#made
  }
}

/** Reads one text after the other. */
class Scanner {
  #text = ''
  #limits: ScanLimits = { maxDepth: 0, keptDepth: 0 }
  #madeDepth = 0
  #at = 0
  readonly #keys = new KeyStack()
  /** Values of the objects and arrays around the position whose nodes are being made. */
  #values: (JsonNode | undefined)[] = []
  #valueCount = 0

  all(text: string, limits: ScanLimits): JsonNode {
    this.#begin(text, limits, 0, 0)
    const node = this.#value(0)
    this.#space()
    if (this.#at < text.length) this.#refuse('something follows the value')
    this.#end()
    return node
  }

  /** Reads one value at a depth. Other text may follow. */
  part(text: string, limits: ScanLimits, from: number, depth: number): JsonNode {
    this.#begin(text, limits, from, depth)
    const node = this.#value(depth)
    this.#end()
    return node
  }

  #begin(text: string, limits: ScanLimits, from: number, depth: number): void {
    this.#text = text
    this.#limits = limits
    this.#madeDepth = Math.min(depth + levelsAt(depth), limits.keptDepth)
    this.#at = from
    this.#keys.reset(text)
    this.#valueCount = 0
  }

  /** Releases the text and everything that was read of it. */
  #end(): void {
    this.#text = ''
    this.#keys.reset('')
    this.#takeValues(0)
    if (this.#values.length > maxKeptValues) this.#values = []
  }

  #refuse(why: string): never {
    this.#end()
    throw new JsonRefusal(`${why}, at offset ${this.#at}`)
  }

  #space(): void {
    const text = this.#text
    for (;;) {
      const code = text.charCodeAt(this.#at)
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return
      this.#at++
    }
  }

  /** Skips white space and returns the code of the next character; NaN at the end. */
  #peek(): number {
    this.#space()
    return this.#text.charCodeAt(this.#at)
  }

  /** Reads a value whose node is kept. */
  #value(depth: number): JsonNode {
    const code = this.#peek()
    const start = this.#at
    if (depth < this.#madeDepth && (code === openObject || code === openArray)) {
      const from = this.#valueCount
      if (code === openArray) {
        this.#array(depth, true)
        return { type: 'array', start, end: this.#at, values: this.#takeValues(from) }
      }
      const firstKey = this.#keys.count
      this.#object(depth, true)
      const keys = this.#keys.take(firstKey)
      return { type: 'object', start, end: this.#at, keys, values: this.#takeValues(from) }
    }
    const type = this.#skip(depth)
    if (depth >= this.#limits.keptDepth || (code !== openObject && code !== openArray)) {
      return { type, start, end: this.#at }
    }
    return new DeepNode(type, start, this.#at, this.#text, this.#limits, depth)
  }

  /** Removes and returns the values from an index on. */
  #takeValues(from: number): JsonNode[] {
    const taken = this.#values.slice(from, this.#valueCount) as JsonNode[]
    this.#values.fill(undefined, from, this.#valueCount)
    this.#valueCount = from
    return taken
  }

  /** Checks a value and makes no nodes. */
  #skip(depth: number): JsonType {
    const code = this.#peek()
    switch (code) {
      case openObject: {
        const firstKey = this.#keys.count
        this.#object(depth, false)
        this.#keys.count = firstKey
        return 'object'
      }
      case openArray:
        this.#array(depth, false)
        return 'array'
      case quote:
        this.#string()
        return 'string'
      case 0x74:
        return this.#word('true', 'boolean')
      case 0x66:
        return this.#word('false', 'boolean')
      case 0x6e:
        return this.#word('null', 'null')
      default:
        return this.#number()
    }
  }

  #word(word: string, type: JsonType): JsonType {
    if (!this.#text.startsWith(word, this.#at)) this.#refuse('this is no JSON')
    this.#at += word.length
    return type
  }

  #number(): JsonType {
    number.lastIndex = this.#at
    if (!number.test(this.#text)) this.#refuse('this is no JSON')
    this.#at = number.lastIndex
    return 'number'
  }

  /** Skips a string, including its quotes. Returns whether it has escapes. */
  #string(): boolean {
    const text = this.#text
    let hasEscapes = false
    let at = this.#at + 1
    for (;;) {
      const code = text.charCodeAt(at)
      if (code === quote) break
      if (code === backslash) {
        at = this.#escape(at)
        hasEscapes = true
      } else if (code >= 0x20) at++
      else {
        this.#at = at
        this.#refuse(at >= text.length ? 'a string has no end' : 'a string has a control character')
      }
      if (at > text.length) this.#refuse('a string has no end')
    }
    this.#at = at + 1
    return hasEscapes
  }

  #escape(at: number): number {
    const next = this.#text.charAt(at + 1)
    if (next === 'u') {
      if (/^[0-9a-fA-F]{4}$/.test(this.#text.slice(at + 2, at + 6))) return at + 6
    } else if (next !== '' && '"\\/bfnrt'.includes(next)) return at + 2
    this.#at = at
    return this.#refuse('a string has a bad escape')
  }

  #enter(depth: number): void {
    if (depth >= this.#limits.maxDepth) this.#refuse('values lie too deep in each other')
    this.#at++
  }

  /** Reads an object and leaves its keys in `#keys`; if it is `made`, also its values in `#values`. */
  #object(depth: number, made: boolean): void {
    this.#enter(depth)
    const keys = this.#keys
    const from = keys.count
    let known: Set<string> | undefined
    if (this.#peek() === 0x7d) this.#at++
    else {
      for (let isMore = true; isMore; ) {
        this.#key()
        known ??= keys.setFor(from)
        if (keys.isRepeated(from, known)) {
          this.#refuse(`the key ${JSON.stringify(keys.last)} is there twice`)
        }
        known?.add(keys.last)
        this.#element(depth, made)
        isMore = this.#isMore(0x7d)
      }
    }
  }

  #element(depth: number, made: boolean): void {
    if (made) {
      const value = this.#value(depth + 1)
      this.#values[this.#valueCount++] = value
    } else this.#skip(depth + 1)
  }

  /** Reads a key and its colon. */
  #key(): void {
    if (this.#peek() !== quote) this.#refuse('a key is missing')
    const start = this.#at
    const hasEscapes = this.#string()
    this.#keys.push(start, this.#at, hasEscapes)
    if (this.#peek() !== 0x3a) this.#refuse('a colon is missing')
    this.#at++
  }

  #array(depth: number, made: boolean): void {
    this.#enter(depth)
    if (this.#peek() === 0x5d) this.#at++
    else {
      for (let isMore = true; isMore; ) {
        this.#element(depth, made)
        isMore = this.#isMore(0x5d)
      }
    }
  }

  /** Skips a comma or the closing character; returns true after a comma. */
  #isMore(close: number): boolean {
    const code = this.#peek()
    if (code !== close && code !== 0x2c) this.#refuse('a comma or the end is missing')
    this.#at++
    return code === 0x2c
  }
}

/** Scans are never nested, so one scanner is enough. */
const scanner = new Scanner()
