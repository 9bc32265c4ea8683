import { hexDigest } from '../../ground/base/digest.ts'

/**
 * The sum of 64-bit hashes of all entries (key and content). It does not depend on their order. Entries
 * that changed are hashed when the digest is read, so content that is replaced before costs nothing.
 */
export class SumDigest<Content> {
  /** Returns what is hashed of an entry: the same only for equal keys and content. */
  readonly #entryOf: (key: string, content: Content) => string | Uint8Array
  readonly #parts = new Map<string, bigint>()
  /** Content that changed since the digest was read; undefined for removed keys. */
  readonly #changed = new Map<string, Content | undefined>()
  #sum = 0n
  #text: string | undefined
  #changes = 0

  constructor(entryOf: (key: string, content: Content) => string | Uint8Array) {
    this.#entryOf = entryOf
  }

  /** How often content was set or removed. */
  get changes(): number {
    return this.#changes
  }

  /** Sets the content of a key; undefined removes it. */
  set(key: string, content: Content | undefined): void {
    this.#changes++
    this.#text = undefined
    if (content === undefined && !this.#parts.has(key)) this.#changed.delete(key)
    else this.#changed.set(key, content)
  }

  /** The digest as 16 hex digits. Returns the same text until something changes. */
  toString(): string {
    if (this.#text === undefined) {
      for (const [key, content] of this.#changed) this.#add(key, content)
      this.#changed.clear()
      this.#text = this.#sum.toString(16).padStart(16, '0')
    }
    return this.#text
  }

  #add(key: string, content: Content | undefined): void {
    const before = this.#parts.get(key) ?? 0n
    const part = content === undefined ? 0n : partOf(this.#entryOf(key, content))
    if (content === undefined) this.#parts.delete(key)
    else this.#parts.set(key, part)
    this.#sum = BigInt.asUintN(64, this.#sum + part - before)
  }
}

const partOf = (entry: string | Uint8Array) =>
  BigInt(`0x${hexDigest('sha256', entry).slice(0, 16)}`)
