/** Frequent keys by their length, so that their text is not copied. */
const frequentKeys: readonly (readonly string[])[] = byLength([
  'id',
  'uri',
  'name',
  'text',
  'type',
  '_meta',
  'error',
  'method',
  'params',
  'result',
  'content',
  'jsonrpc',
  'arguments',
  'resultType',
  'progressToken',
  'structuredContent',
  'io.modelcontextprotocol/clientInfo',
  'io.modelcontextprotocol/protocolVersion',
  'io.modelcontextprotocol/clientCapabilities',
])

function byLength(texts: readonly string[]): string[][] {
  const all: string[][] = []
  for (const text of texts) {
    all[text.length] ??= []
    all[text.length]?.push(text)
  }
  return all
}

/** Objects with more keys use a set to find duplicates. */
const fewKeys = 8
/** Maximum number of spans that are kept for the next text. */
const maxKeptSpans = 4_096
const none: readonly string[] = []

/** The keys of the objects around a position of a text. Most are only compared, and never become texts. */
export class KeyStack {
  #text = ''
  /** Start and end of each key, without its quotes. */
  #spans = new Int32Array(64)
  /** The texts of keys with escapes, by index. */
  #escaped: (string | undefined)[] | undefined
  /** Number of keys; those of inner objects come last. */
  count = 0

  /** Begins another text; `''` releases the last one. */
  reset(text: string): void {
    this.#text = text
    this.#escaped = undefined
    this.count = 0
    if (this.#spans.length > maxKeptSpans) this.#spans = new Int32Array(64)
  }

  /** Adds the key at [start, end), which includes its quotes. */
  push(start: number, end: number, hasEscapes: boolean): void {
    const index = this.count++
    if (2 * index >= this.#spans.length) this.#grow()
    this.#spans[2 * index] = start + 1
    this.#spans[2 * index + 1] = end - 1
    if (hasEscapes) {
      this.#escaped ??= []
      this.#escaped[index] = JSON.parse(this.#text.slice(start, end)) as string
    } else if (this.#escaped !== undefined) this.#escaped[index] = undefined
  }

  #grow(): void {
    const larger = new Int32Array(2 * this.#spans.length)
    larger.set(this.#spans)
    this.#spans = larger
  }

  /** The text of the last key. */
  get last(): string {
    return this.#textAt(this.count - 1)
  }

  /**
   * Is the last key one of those since `from`? `known` has these if they are many; `setFor` makes it.
   */
  isRepeated(from: number, known: Set<string> | undefined): boolean {
    if (known !== undefined) return known.has(this.last)
    for (let at = from; at < this.count - 1; at++) if (this.#isLast(at)) return true
    return false
  }

  /** Returns a set of the keys since `from`, without the last one, if they are many. */
  setFor(from: number): Set<string> | undefined {
    const end = this.count - 1
    return end - from < fewKeys ? undefined : new Set(this.#texts(from, end))
  }

  /** Removes and returns the keys since `from`. */
  take(from: number): readonly string[] {
    const taken = this.#texts(from, this.count)
    this.count = from
    return taken
  }

  #texts(from: number, end: number): readonly string[] {
    if (from === end) return none
    const texts: string[] = new Array(end - from)
    for (let at = from; at < end; at++) texts[at - from] = this.#textAt(at)
    return texts
  }

  /** Is a key equal to the last one? */
  #isLast(index: number): boolean {
    // A key with escapes can be equal to one without.
    if (this.#escaped !== undefined) return this.#textAt(index) === this.last
    const spans = this.#spans
    const start = spans[2 * index] ?? 0
    const length = (spans[2 * index + 1] ?? 0) - start
    const last = 2 * (this.count - 1)
    const lastStart = spans[last] ?? 0
    if ((spans[last + 1] ?? 0) - lastStart !== length) return false
    const text = this.#text
    for (let at = 0; at < length; at++) {
      if (text.charCodeAt(start + at) !== text.charCodeAt(lastStart + at)) return false
    }
    return true
  }

  #textAt(index: number): string {
    const escaped = this.#escaped?.[index]
    if (escaped !== undefined) return escaped
    const start = this.#spans[2 * index] ?? 0
    const end = this.#spans[2 * index + 1] ?? 0
    for (const frequent of frequentKeys[end - start] ?? none) {
      if (this.#text.startsWith(frequent, start)) return frequent
    }
    return this.#text.slice(start, end)
  }
}
