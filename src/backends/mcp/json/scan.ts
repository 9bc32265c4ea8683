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

/** Thrown if the text is not JSON or is ambiguous. */
export class JsonRefusal extends Error {
  override readonly name = 'JsonRefusal'
}

/** @throws JsonRefusal */
export function scanJson(text: string, limits: ScanLimits): JsonNode {
  return new Scanner(text, limits).all()
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
const backslash = 0x5c
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
/** Objects with more keys use a set to find duplicates. */
const fewKeys = 8

class Scanner {
  readonly #text: string
  readonly #limits: ScanLimits
  #at = 0

  constructor(text: string, limits: ScanLimits) {
    this.#text = text
    this.#limits = limits
  }

  all(): JsonNode {
    const node = this.#value(0)
    this.#space()
    if (this.#at < this.#text.length) this.#refuse('something follows the value')
    return node
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

  #value(depth: number): JsonNode {
    const code = this.#peek()
    const start = this.#at
    switch (code) {
      case 0x7b:
        return this.#object(start, depth)
      case 0x5b:
        return this.#array(start, depth)
      case quote:
        this.#string()
        return { type: 'string', start, end: this.#at }
      case 0x74:
        return this.#word('true', 'boolean')
      case 0x66:
        return this.#word('false', 'boolean')
      case 0x6e:
        return this.#word('null', 'null')
      default:
        return this.#number(start)
    }
  }

  #word(word: string, type: JsonType): JsonNode {
    const start = this.#at
    if (!this.#text.startsWith(word, start)) this.#refuse('this is no JSON')
    this.#at += word.length
    return { type, start, end: this.#at }
  }

  #number(start: number): JsonNode {
    number.lastIndex = start
    if (!number.test(this.#text)) this.#refuse('this is no JSON')
    this.#at = number.lastIndex
    return { type: 'number', start, end: this.#at }
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

  #object(start: number, depth: number): JsonNode {
    this.#enter(depth)
    const keys: string[] = []
    const values: JsonNode[] = []
    const isKept = depth < this.#limits.keptDepth
    let known: Set<string> | undefined
    if (this.#peek() === 0x7d) this.#at++
    else {
      for (let isMore = true; isMore; ) {
        const key = this.#key()
        if (keys.length >= fewKeys) known ??= new Set(keys)
        if (known === undefined ? keys.includes(key) : known.has(key)) {
          this.#refuse(`the key ${JSON.stringify(key)} is there twice`)
        }
        known?.add(key)
        keys.push(key)
        const value = this.#value(depth + 1)
        if (isKept) values.push(value)
        isMore = this.#isMore(0x7d)
      }
    }
    const end = this.#at
    return isKept ? { type: 'object', start, end, keys, values } : { type: 'object', start, end }
  }

  #key(): string {
    if (this.#peek() !== quote) this.#refuse('a key is missing')
    const start = this.#at
    this.#string()
    const node = { type: 'string', start, end: this.#at } as const
    if (this.#peek() !== 0x3a) this.#refuse('a colon is missing')
    this.#at++
    return textOf(this.#text, node) ?? ''
  }

  #array(start: number, depth: number): JsonNode {
    this.#enter(depth)
    const values: JsonNode[] = []
    const isKept = depth < this.#limits.keptDepth
    if (this.#peek() === 0x5d) this.#at++
    else {
      for (let isMore = true; isMore; ) {
        const value = this.#value(depth + 1)
        if (isKept) values.push(value)
        isMore = this.#isMore(0x5d)
      }
    }
    const end = this.#at
    return isKept ? { type: 'array', start, end, values } : { type: 'array', start, end }
  }

  /** Skips a comma or the closing character; returns true after a comma. */
  #isMore(close: number): boolean {
    const code = this.#peek()
    if (code !== close && code !== 0x2c) this.#refuse('a comma or the end is missing')
    this.#at++
    return code === 0x2c
  }
}
