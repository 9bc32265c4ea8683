/** Header fields and bodies that are in memory from the start. */

import { bufferOf, isInParts, type WholeBody } from '../base/buffers.ts'
import type { Body, BodyTransform, BodyWatcher, BufferedBody, HeaderFields } from './exchange.ts'
import { isSameName } from './field-case.ts'

export class FieldPairs implements HeaderFields {
  /** Replaced by each change, so that others may have the list as well. */
  pairs: readonly (readonly [string, string])[]

  /** A list is not copied, so it must not be changed afterwards. */
  constructor(pairs: Iterable<readonly [string, string]>) {
    this.pairs = Array.isArray(pairs) ? pairs : [...pairs]
  }

  get(name: string): string | undefined {
    const at = this.#find(name, 0)
    return this.pairs[at]?.[1]
  }

  getAll(name: string): string[] {
    return this.pairs.filter(([key]) => isSameName(key, name)).map(([, value]) => value)
  }

  lines(name: string): string | readonly string[] | undefined {
    const at = this.#find(name, 0)
    return this.#find(name, at + 1) < this.pairs.length ? this.getAll(name) : this.pairs[at]?.[1]
  }

  /** Returns the index of the first field with the name from an index on; the number of fields if there is none. */
  #find(name: string, from: number): number {
    for (let at = from; at < this.pairs.length; at++) {
      if (isSameName(this.pairs[at]?.[0] ?? '', name)) return at
    }
    return this.pairs.length
  }

  has(name: string): boolean {
    return this.get(name) !== undefined
  }

  set(name: string, value: string): void {
    this.remove(name)
    this.add(name, value)
  }

  add(name: string, value: string): void {
    this.pairs = [...this.pairs, [name, value]]
  }

  remove(name: string): void {
    this.pairs = this.pairs.filter(([key]) => !isSameName(key, name))
  }

  entries(): Iterable<readonly [string, string]> {
    return this.pairs
  }
}

export class MemoryBody implements Body {
  readonly trailers = ''
  content: string | Uint8Array | undefined

  constructor(content: WholeBody | undefined) {
    this.content = isInParts(content) ? Buffer.concat(content) : content
  }

  get length(): number {
    return this.#bytes.length
  }

  get known(): BufferedBody {
    return { complete: true, bytes: this.#bytes }
  }

  get #bytes(): Uint8Array {
    return typeof this.content === 'string'
      ? Buffer.from(this.content)
      : (this.content ?? new Uint8Array())
  }

  async buffer(maxBytes: number): Promise<BufferedBody> {
    return this.read(maxBytes)
  }

  read(maxBytes: number, watcher?: BodyWatcher): BufferedBody {
    const bytes = this.#bytes
    watcher?.watch(bufferOf(bytes), 0, bytes.length)
    return bytes.length > maxBytes
      ? { complete: false, prefix: bytes.subarray(0, maxBytes) }
      : { complete: true, bytes }
  }

  replace(bytes: Uint8Array): void {
    this.content = bytes
  }

  through(transform: BodyTransform): void {
    const parts: Uint8Array[] = []
    const emit = (bytes: Uint8Array) => parts.push(bytes)
    transform.push(this.#bytes, emit)
    transform.end(emit)
    this.content = Buffer.concat(parts)
  }

  record(): void {
    // Nothing to do: the body stays in memory.
  }
}
