import * as abi from '../../../src/engines/core/abi.ts'
import { CoreInstance } from '../../../src/engines/core/instance.ts'

export type Pair = readonly [start: number, end: number]

/** The engine as any host sees it: bytes in, byte spans out, codes as they are. */
export class RawRegex {
  readonly core = new CoreInstance()
  readonly #text: number
  readonly #out: number
  readonly #room: number

  constructor(room = 1 << 16) {
    this.#room = room
    this.#text = this.core.allocate(room + 16)
    this.#out = this.core.allocate(room * 8 + 16)
  }

  #put(bytes: Uint8Array): void {
    if (bytes.length > this.#room) throw new Error(`${bytes.length} bytes are too many`)
    this.core.bytes.set(bytes, this.#text)
  }

  compile(pattern: Uint8Array, flags = 0): number {
    this.#put(pattern)
    return this.core.run('regex_compile', (exports) =>
      exports.regex_compile(this.#text, pattern.length, flags),
    )
  }

  free(handle: number): void {
    this.core.exports.regex_free(handle)
  }

  spans(handle: number, text: Uint8Array): Pair[] {
    this.#put(text)
    const count = this.core.run('regex_find_all', (exports) =>
      exports.regex_find_all(handle, this.#text, text.length, 0, this.#out, this.#room),
    )
    if (count < 0) throw new Error(`regex_find_all: ${count}`)
    const words = this.core.words.subarray(this.#out >> 2, (this.#out >> 2) + count * 2)
    return Array.from({ length: count }, (_, i) => [words[2 * i] ?? -1, words[2 * i + 1] ?? -1])
  }

  isMatch(handle: number, text: Uint8Array): boolean {
    this.#put(text)
    return this.core.exports.regex_is_match(handle, this.#text, text.length) === 1
  }

  fullMatch(handle: number, text: Uint8Array): boolean {
    this.#put(text)
    return this.core.exports.regex_full_match(handle, this.#text, text.length) === 1
  }

  /** Work units since the instance started. */
  work(): number {
    return this.core.exports.regex_work()
  }
}

/** The abi's number of a code or flag by its name. */
export function codeOf(name: string): number {
  const value = Object.entries(abi).find(([key]) => key === name)?.[1]
  if (typeof value !== 'number') throw new Error(`the abi has no ${name}`)
  return value
}
