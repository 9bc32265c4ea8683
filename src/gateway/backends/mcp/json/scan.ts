/**
 * A JSON scanner that reports positions instead of values, so that messages are forwarded byte for
 * byte except for the values that change. JSON that parsers may read in different ways, such as
 * objects with duplicate keys, is refused.
 */

import { KeyStack } from '../../../../engines/json/open-names.ts'
import type { JsonNode, JsonType } from './node.ts'
import type { Outline } from './outline.ts'

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

/**
 * Like `scanJson`. If the value is an object, `outline` then has its members; otherwise it is empty.
 * @throws JsonRefusal
 */
export function scanObject(text: string, limits: ScanLimits, outline: Outline): JsonNode {
  outline.reset(text)
  return scanner.all(text, limits, outline)
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

  all(text: string, limits: ScanLimits, outline?: Outline): JsonNode {
    this.#begin(text, limits, 0, 0)
    const node = outline === undefined ? this.#value(0) : this.#outlined(outline)
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

  /** Reads a value and adds its members to the outline instead of making their nodes. */
  #outlined(outline: Outline): JsonNode {
    if (this.#peek() !== openObject) return this.#value(0)
    const start = this.#at
    this.#object(0, outline)
    return this.#node('object', start, 0)
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
    return this.#node(type, start, depth)
  }

  /** Makes the node of a value that ends here. */
  #node(type: JsonType, start: number, depth: number): JsonNode {
    const end = this.#at
    const isDeep = depth < this.#limits.keptDepth && (type === 'object' || type === 'array')
    return isDeep
      ? new DeepNode(type, start, end, this.#text, this.#limits, depth)
      : { type, start, end }
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

  /**
   * Reads an object and leaves its keys in `#keys`. If it is `made`, its values are in `#values`; if that is an
   * outline, they are there.
   */
  #object(depth: number, made: boolean | Outline): void {
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
        if (typeof made === 'boolean') this.#element(depth, made)
        else this.#outline(depth, made)
        isMore = this.#isMore(0x7d)
      }
    }
  }

  #outline(depth: number, outline: Outline): void {
    const key = this.#keys.last
    this.#space()
    const start = this.#at
    const type = this.#skip(depth + 1)
    const end = this.#at
    const isDeep = type === 'object' || type === 'array'
    const node = isDeep ? this.#node(type, start, depth + 1) : undefined
    outline.add(key, type, start, end, node)
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
