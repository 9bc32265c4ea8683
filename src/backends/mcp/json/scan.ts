/**
 * A JSON scanner that reports positions instead of values, so that messages are forwarded byte for
 * byte except for the values that change. JSON that parsers may read in different ways, such as
 * objects with duplicate keys, is refused.
 */

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

/** Depth up to which nodes are made at once. Deeper ones are made when they are read, which few are. */
const madeDepth = 2

/** Thrown if the text is not JSON or is ambiguous. */
export class JsonRefusal extends Error {
  override readonly name = 'JsonRefusal'
}

/** @throws JsonRefusal */
export function scanJson(text: string, limits: ScanLimits): JsonNode {
  return new Scanner(text, limits, madeDepth).all()
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
/** Objects with more keys use a set to find duplicates. */
const fewKeys = 8

/** An object or array whose members are scanned again, once, if they are read. */
class DeepNode implements JsonNode {
  readonly type: JsonType
  readonly start: number
  readonly end: number
  readonly #text: string
  readonly #limits: ScanLimits
  #made: JsonNode | undefined

  constructor(type: JsonType, start: number, end: number, text: string, limits: ScanLimits) {
    this.type = type
    this.start = start
    this.end = end
    this.#text = text
    this.#limits = limits
  }

  get keys(): readonly string[] | undefined {
    return this.#whole.keys
  }

  get values(): readonly JsonNode[] | undefined {
    return this.#whole.values
  }

  get #whole(): JsonNode {
    this.#made ??= new Scanner(this.#text, this.#limits, this.#limits.keptDepth, this.start).part()
    return this.#made
  }
}

class Scanner {
  readonly #text: string
  readonly #limits: ScanLimits
  readonly #madeDepth: number
  #at: number
  /** The keys of the objects around the position; valid up to `#keyCount`. */
  readonly #keys: string[] = []
  #keyCount = 0

  constructor(text: string, limits: ScanLimits, made: number, from = 0) {
    this.#text = text
    this.#limits = limits
    this.#madeDepth = Math.min(made, limits.keptDepth)
    this.#at = from
  }

  all(): JsonNode {
    const node = this.part()
    this.#space()
    if (this.#at < this.#text.length) this.#refuse('something follows the value')
    return node
  }

  /** Reads one value. Other text may follow. */
  part(): JsonNode {
    return this.#value(0)
  }

  #refuse(why: string): never {
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
      const values: JsonNode[] = []
      if (code === openArray) {
        this.#array(depth, values)
        return { type: 'array', start, end: this.#at, values }
      }
      const from = this.#keyCount
      const count = this.#object(depth, values)
      const keys = this.#keys.slice(from, from + count)
      return { type: 'object', start, end: this.#at, keys, values }
    }
    const type = this.#skip(depth)
    const { keptDepth, maxDepth } = this.#limits
    if (depth >= keptDepth || (code !== openObject && code !== openArray)) {
      return { type, start, end: this.#at }
    }
    const limits = { keptDepth: keptDepth - depth, maxDepth }
    return new DeepNode(type, start, this.#at, this.#text, limits)
  }

  /** Checks a value and makes no nodes. */
  #skip(depth: number): JsonType {
    const code = this.#peek()
    switch (code) {
      case openObject:
        this.#object(depth, undefined)
        return 'object'
      case openArray:
        this.#array(depth, undefined)
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

  /** Skips a string, including its quotes. */
  #string(): void {
    const text = this.#text
    let at = this.#at + 1
    for (;;) {
      const code = text.charCodeAt(at)
      if (code === quote) break
      if (code === backslash) at = this.#escape(at)
      else if (code >= 0x20) at++
      else {
        this.#at = at
        this.#refuse(at >= text.length ? 'a string has no end' : 'a string has a control character')
      }
      if (at > text.length) this.#refuse('a string has no end')
    }
    this.#at = at + 1
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
   * Reads an object and returns the number of its keys, which follow the first `#keyCount` keys. Its values are
   * added to `values`, if that is set.
   */
  #object(depth: number, values: JsonNode[] | undefined): number {
    this.#enter(depth)
    const from = this.#keyCount
    let known: Set<string> | undefined
    if (this.#peek() === 0x7d) this.#at++
    else {
      for (let isMore = true; isMore; ) {
        const key = this.#key()
        if (this.#keyCount - from >= fewKeys) {
          known ??= new Set(this.#keys.slice(from, this.#keyCount))
        }
        if (known === undefined ? this.#hasKey(key, from) : known.has(key)) {
          this.#refuse(`the key ${JSON.stringify(key)} is there twice`)
        }
        known?.add(key)
        this.#keys[this.#keyCount++] = key
        this.#element(depth, values)
        isMore = this.#isMore(0x7d)
      }
    }
    const count = this.#keyCount - from
    this.#keyCount = from
    return count
  }

  #hasKey(key: string, from: number): boolean {
    for (let at = from; at < this.#keyCount; at++) if (this.#keys[at] === key) return true
    return false
  }

  #element(depth: number, values: JsonNode[] | undefined): void {
    if (values === undefined) this.#skip(depth + 1)
    else values.push(this.#value(depth + 1))
  }

  #key(): string {
    if (this.#peek() !== quote) this.#refuse('a key is missing')
    const start = this.#at
    this.#string()
    const raw = this.#text.slice(start + 1, this.#at - 1)
    const key = raw.includes('\\') ? (JSON.parse(`"${raw}"`) as string) : raw
    if (this.#peek() !== 0x3a) this.#refuse('a colon is missing')
    this.#at++
    return key
  }

  #array(depth: number, values: JsonNode[] | undefined): void {
    this.#enter(depth)
    if (this.#peek() === 0x5d) this.#at++
    else {
      for (let isMore = true; isMore; ) {
        this.#element(depth, values)
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
