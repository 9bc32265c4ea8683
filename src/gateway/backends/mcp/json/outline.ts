import type { JsonNode, JsonType } from './node.ts'

const noKeys: string[] = []

/**
 * Where the values of an object are that have one of the given keys. It is filled for one object after the other,
 * so that reading an object makes nodes only of its objects and arrays.
 */
export class Outline {
  readonly #keys: readonly string[]
  /** By the index of the key; undefined if the object does not have it. */
  readonly #types: (JsonType | undefined)[]
  readonly #starts: Int32Array
  readonly #ends: Int32Array
  readonly #nodes: (JsonNode | undefined)[]
  #text = ''
  /** The other keys of the object. */
  others = noKeys

  constructor(keys: readonly string[]) {
    this.#keys = keys
    this.#types = keys.map(() => undefined)
    this.#starts = new Int32Array(keys.length)
    this.#ends = new Int32Array(keys.length)
    this.#nodes = keys.map(() => undefined)
  }

  /** Begins an object of another text; without one, releases the last. */
  reset(text = ''): void {
    this.#types.fill(undefined)
    this.#nodes.fill(undefined)
    this.#text = text
    this.others = noKeys
  }

  /** Adds the value at [start, end). `node` is set if it is an object or array. */
  add(key: string, type: JsonType, start: number, end: number, node: JsonNode | undefined): void {
    const index = this.#keys.indexOf(key)
    if (index < 0) {
      if (this.others === noKeys) this.others = [key]
      else this.others.push(key)
      return
    }
    this.#types[index] = type
    this.#starts[index] = start
    this.#ends[index] = end
    this.#nodes[index] = node
  }

  typeOf(key: string): JsonType | undefined {
    return this.#types[this.#keys.indexOf(key)]
  }

  /** Returns the value as JSON text; empty if there is none. */
  rawOf(key: string): string {
    const index = this.#keys.indexOf(key)
    if (this.#types[index] === undefined) return ''
    return this.#text.slice(this.#starts[index], this.#ends[index])
  }

  /** Returns the value of a string; undefined if there is none. */
  textOf(key: string): string | undefined {
    const raw = this.typeOf(key) === 'string' ? this.rawOf(key) : undefined
    return raw?.includes('\\') ? (JSON.parse(raw) as string) : raw?.slice(1, -1)
  }

  node(key: string): JsonNode | undefined {
    const index = this.#keys.indexOf(key)
    const type = this.#types[index]
    const start = this.#starts[index] ?? 0
    const end = this.#ends[index] ?? 0
    return this.#nodes[index] ?? (type && { type, start, end })
  }
}
