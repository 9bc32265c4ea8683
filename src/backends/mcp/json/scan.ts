/**
 * JSON with positions. Servers and clients parse what passes the gateway with parsers of their own;
 * what two parsers can read in two ways (a key that is there twice) is refused, and what is not
 * changed is passed on byte by byte. So values are found by where they stand, and only what is asked
 * for is made a value.
 */

type JsonType = 'object' | 'array' | 'string' | 'number' | 'boolean' | 'null'

/** A value and where it stands: [start, end) of the text. */
export interface JsonNode {
  readonly type: JsonType
  readonly start: number
  readonly end: number
  /** Of an object that was kept, in order; every key once. */
  readonly keys?: readonly string[]
  /** Of an object or array that was kept. */
  readonly values?: readonly JsonNode[]
}

interface ScanLimits {
  /** Values may lie so deep in each other. */
  readonly maxDepth: number
  /** Members of what lies deeper are checked and not kept. */
  readonly keptDepth: number
}

/** The text is no JSON, or JSON that can be read in two ways. */
export class JsonRefusal extends Error {
  override readonly name = 'JsonRefusal'
}

/** @throws JsonRefusal */
export function scanJson(text: string, limits: ScanLimits): JsonNode {
  return new Scanner(text, limits).all()
}

/** The member of an object; undefined where there is none, or the node is no object. */
export function member(node: JsonNode | undefined, key: string): JsonNode | undefined {
  const at = node?.keys?.indexOf(key) ?? -1
  return at < 0 ? undefined : node?.values?.[at]
}

/** The value of a string; undefined where the node is none. */
export function textOf(source: string, node: JsonNode | undefined): string | undefined {
  if (node?.type !== 'string') return undefined
  const raw = source.slice(node.start + 1, node.end - 1)
  return raw.includes('\\') ? (JSON.parse(source.slice(node.start, node.end)) as string) : raw
}

/** The JSON of a value, as it stands. */
export function rawOf(source: string, { start, end }: JsonNode): string {
  return source.slice(start, end)
}

/** The value itself, as JSON.parse gives it. */
export function jsonValue(source: string, node: JsonNode): unknown {
  return JSON.parse(rawOf(source, node))
}

/** Puts other text in the place of values. Edits do not overlap and come in order. */
export function splice(
  source: string,
  edits: readonly { readonly start: number; readonly end: number; readonly text: string }[],
): string {
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
/** More keys than this are compared by a set. */
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

  /** The next character that is no white space; NaN at the end. */
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

  /** From one quote to behind the other. */
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

  /** Behind a member: is there another one? */
  #isMore(close: number): boolean {
    const code = this.#peek()
    if (code !== close && code !== 0x2c) this.#refuse('a comma or the end is missing')
    this.#at++
    return code === 0x2c
  }
}
