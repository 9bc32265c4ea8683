/**
 * The texts of the parts of a stream. They are found by name, and by the whole text, because later events repeat it.
 * The hash of a text is updated with each piece, so that the work for a stream is linear in its length.
 */

/** The text of a part as the provider streamed it, and as the client gets it. */
export interface PartText {
  readonly original: string
  readonly current: string
}

interface TextHash {
  readonly length: number
  readonly value: number
}

const emptyHash: TextHash = { length: 0, value: 0 }
/** Random, so that providers cannot choose texts with equal hashes. */
const multiplier = Math.floor(Math.random() * 0x4000_0000) * 4 + 3

function withText({ length, value }: TextHash, text: string): TextHash {
  let next = value
  for (let at = 0; at < text.length; at++) {
    next = Math.imul(next ^ text.charCodeAt(at), multiplier)
    next ^= next >>> 15
  }
  return { length: length + text.length, value: next }
}

/** Names of parts by the hash of their texts. Texts with equal hashes may differ. */
class NamesByHash {
  readonly #names = new Map<string, Set<string>>()

  add(hash: TextHash, name: string): void {
    const names = this.#names.get(idOf(hash))
    if (names === undefined) this.#names.set(idOf(hash), new Set([name]))
    else names.add(name)
  }

  remove(hash: TextHash, name: string): void {
    const names = this.#names.get(idOf(hash))
    names?.delete(name)
    if (names?.size === 0) this.#names.delete(idOf(hash))
  }

  /** Returns names in the order in which they were added. */
  get(hash: TextHash): Iterable<string> {
    return this.#names.get(idOf(hash)) ?? []
  }
}

const idOf = ({ length, value }: TextHash): string => `${length} ${value}`

/** The texts that earlier windows of a stream have released. */
export class ReleasedTexts {
  readonly #parts = new Map<string, PartText & { readonly hash: TextHash }>()
  readonly #names = new NamesByHash()
  /** Whether guards have changed a text. */
  isChanged = false

  /** The text of a part so far. */
  get(name: string): PartText | undefined {
    return this.#parts.get(name)
  }

  /** Adds to the text of a part. */
  add(name: string, { original, current }: PartText): void {
    const before = this.#parts.get(name)
    if (before !== undefined) this.#names.remove(before.hash, name)
    const hash = withText(before?.hash ?? emptyHash, original)
    this.#names.add(hash, name)
    this.#parts.set(name, {
      original: (before?.original ?? '') + original,
      current: (before?.current ?? '') + current,
      hash,
    })
  }

  /** Returns a function that finds a part by its whole text: what was released of it, and then its entry in `texts`. */
  index(texts: ReadonlyMap<string, string>): (text: string) => string | undefined {
    const names = new NamesByHash()
    for (const [name, text] of texts) {
      names.add(withText(this.#parts.get(name)?.hash ?? emptyHash, text), name)
    }
    return (text) => {
      const hash = withText(emptyHash, text)
      for (const name of this.#names.get(hash)) {
        const isWhole = (texts.get(name) ?? '') === ''
        if (isWhole && this.#parts.get(name)?.original === text) return name
      }
      for (const name of names.get(hash)) {
        if ((this.#parts.get(name)?.original ?? '') + (texts.get(name) ?? '') === text) return name
      }
      return undefined
    }
  }
}
