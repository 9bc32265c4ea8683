/** Objects with more names use a set to find one that occurs twice. */
const fewNames = 16
/** Maximum number of spans that are kept for the next document. */
const maxKeptSpans = 4_096
const noBytes = Buffer.alloc(0)

/** The names of the objects around a position of a document. Most are only compared, and never become texts. */
export class OpenNames {
  #bytes: Buffer = noBytes
  #text: string | undefined
  /** Start and end of each name, without its quotes. Those of inner objects come last. */
  #spans = new Int32Array(64)
  /** The texts of names with escapes or with bytes beyond ASCII, by index. */
  #texts: (string | undefined)[] | undefined
  /** By depth, the index of the object's first name. */
  readonly #first: Int32Array
  /** By depth, the names of an object that has many. */
  readonly #known: (Set<string> | undefined)[] = []
  count = 0

  constructor(maxDepth: number) {
    this.#first = new Int32Array(maxDepth + 1)
  }

  /** Begins another document; without one, releases the last. `text` is set if the bytes are its units. */
  reset(bytes: Buffer = noBytes, text?: string): void {
    this.#bytes = bytes
    this.#text = text
    this.#texts = undefined
    this.#known.length = 0
    this.count = 0
    if (this.#spans.length > maxKeptSpans) this.#spans = new Int32Array(64)
  }

  open(depth: number): void {
    this.#first[depth] = this.count
    if (depth < this.#known.length) this.#known[depth] = undefined
  }

  close(depth: number): void {
    this.count = this.#first[depth] ?? 0
  }

  /** Adds the name of which `start` is the first quote. Returns false if the object has it already. */
  add(depth: number, start: number, end: number, isPlain: boolean): boolean {
    const index = this.count++
    if (2 * index >= this.#spans.length) this.#grow()
    this.#spans[2 * index] = start + 1
    this.#spans[2 * index + 1] = end - 1
    if (!isPlain) this.#addText(index, start, end)
    else if (this.#texts !== undefined) this.#texts[index] = undefined
    return this.#isNew(depth, index)
  }

  #grow(): void {
    const larger = new Int32Array(2 * this.#spans.length)
    larger.set(this.#spans)
    this.#spans = larger
  }

  #addText(index: number, start: number, end: number): void {
    const raw = this.#text?.slice(start, end) ?? this.#bytes.toString('utf8', start, end)
    this.#texts ??= []
    this.#texts[index] = JSON.parse(raw) as string
  }

  #isNew(depth: number, last: number): boolean {
    const first = this.#first[depth] ?? 0
    if (last - first < fewNames) {
      for (let at = first; at < last; at++) if (this.#isEqual(at, last)) return false
      return true
    }
    let known = this.#known[depth]
    if (known === undefined) {
      known = new Set()
      for (let at = first; at < last; at++) known.add(this.textAt(at))
      this.#known[depth] = known
    }
    return known.size < known.add(this.textAt(last)).size
  }

  #isEqual(one: number, other: number): boolean {
    // A name with escapes can be equal to one without.
    if (this.#texts !== undefined) return this.textAt(one) === this.textAt(other)
    const spans = this.#spans
    const start = spans[2 * one] ?? 0
    const length = (spans[2 * one + 1] ?? 0) - start
    const otherStart = spans[2 * other] ?? 0
    if ((spans[2 * other + 1] ?? 0) - otherStart !== length) return false
    const bytes = this.#bytes
    for (let at = 0; at < length; at++) {
      if (bytes[start + at] !== bytes[otherStart + at]) return false
    }
    return true
  }

  /** The text of the last name. */
  get last(): string {
    return this.textAt(this.count - 1)
  }

  textAt(index: number): string {
    const start = this.#spans[2 * index]
    return this.#texts?.[index] ?? this.#bytes.toString('latin1', start, this.#spans[2 * index + 1])
  }
}
