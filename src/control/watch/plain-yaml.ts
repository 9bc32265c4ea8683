/**
 * Reads the YAML that people write for Kubernetes, about ten times as fast as a complete parser: maps and
 * lists in block style, scalars on one line, flow collections on one line, literal texts and comments.
 * Everything else is left to the complete parser, including every error, so this reader refuses a text as
 * soon as it meets something that it does not know. It must agree with the complete parser on all that it
 * reads; a test compares both.
 */

export interface PlainDocument {
  readonly value: Readonly<Record<string, unknown>>
  /** Offset of the first field in the text. */
  readonly start: number
}

/** Deeper texts are left to the complete parser. */
const maxDepth = 64
/** Tabs, other control characters, and spaces and line ends that only some rules of YAML know. */
const unusualCharacters = /[^\n\x20-\x7e\xa1-\u2027\u202a-\ufefe\uff00-\ufffd]/
/** YAML allows 1,024 characters. */
const maxKeyLength = 1_000
const plainKey = /[A-Za-z_][\w./-]*(?=:(?:[ \n]|$))/y
/** A plain scalar begins with none of YAML's indicators. */
const plainStart = /[^\s,[\]{}#&*!|>'"%@`?:-]|-(?=\d)/y
const flowIndicators = new Set([...',[]{}:'].map((character) => character.charCodeAt(0)))
const lineEnd = / *(?: #[^\n]*)?(?:\n|$)/y
const literalHeader = /\|(-?) *(?: #[^\n]*)?\n/y
const documentStart = /---(?= *(?: #[^\n]*)?(?:\n|$))/y

const plainNumber = /^-?\d{1,15}(?:\.\d{1,15})?$/
/** Scalars that are not strings in YAML 1.2. */
const notString =
  /^(?:~|[Nn]ull|NULL|[Tt]rue|TRUE|[Ff]alse|FALSE|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)|[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?)$/

/** Whether a character is a space or ends a line or the text. */
const isBlank = (code: number) => code === 0x20 || code === 0x0a || Number.isNaN(code)

/** Thrown if the text is left to the complete parser. */
const notPlain = new Error('not plain YAML')

function refuse(): never {
  throw notPlain
}

/** The offsets of the fields of each map, and of the items of each list that begin on the line of their dash. */
export type PlainOffsets = Map<unknown, Map<string | number, number>>

/**
 * Returns the documents that are maps, without empty documents; undefined if the text is not plain. Fills
 * `offsets`, if it is given.
 */
export function readPlainYaml(text: string, offsets?: PlainOffsets): PlainDocument[] | undefined {
  if (unusualCharacters.test(text)) return undefined
  try {
    return new PlainYamlReader(text, offsets).documents()
  } catch (error) {
    if (error === notPlain) return undefined
    throw error
  }
}

class PlainYamlReader {
  readonly #text: string
  /** Offset of the next character to read. */
  #at = 0
  /** Offset of the current line, and the number of spaces before its content; -1 at the end of a document. */
  #line = 0
  #indent = 0
  #depth = 0
  readonly #offsets: PlainOffsets | undefined

  constructor(text: string, offsets: PlainOffsets | undefined) {
    this.#text = text
    this.#offsets = offsets
  }

  /** Remembers where a field or an item of a collection begins. */
  #note(collection: object, step: string | number, offset: number): void {
    if (this.#offsets === undefined) return
    const known = this.#offsets.get(collection) ?? new Map<string | number, number>()
    this.#offsets.set(collection, known.set(step, offset))
  }

  documents(): PlainDocument[] {
    const found: PlainDocument[] = []
    this.#nextLine()
    while (this.#at < this.#text.length) {
      if (this.#indent < 0) {
        this.#at += 3
        this.#endLine()
        continue
      }
      found.push({ start: this.#at, value: this.#root() })
      if (this.#indent >= 0) refuse()
    }
    return found
  }

  #root(): Record<string, unknown> {
    if (this.#code() !== 0x7b) return this.#map(this.#indent)
    const value = this.#flowMap(-1)
    this.#endLine()
    return value
  }

  /** The next character; NaN at the end of the text. */
  #code(): number {
    return this.#text.charCodeAt(this.#at)
  }

  /** Goes to the next line with content, at its first character that is not a space. */
  #nextLine(): void {
    const text = this.#text
    let at = this.#at
    for (;;) {
      this.#line = at
      while (text.charCodeAt(at) === 0x20) at++
      const code = text.charCodeAt(at)
      if (code === 0x23) {
        const end = text.indexOf('\n', at)
        at = end < 0 ? text.length : end
      } else if (code !== 0x0a) break
      if (at >= text.length) break
      at++
    }
    this.#at = at
    this.#indent = at - this.#line
    if (at >= text.length) this.#indent = -1
    else if (this.#indent === 0) this.#readMarker()
  }

  #readMarker(): void {
    const code = this.#code()
    if (code === 0x25 || this.#text.startsWith('...', this.#at)) refuse()
    if (code !== 0x2d || !this.#text.startsWith('---', this.#at)) return
    documentStart.lastIndex = this.#at
    if (!documentStart.test(this.#text)) refuse()
    this.#indent = -1
  }

  /** Reads the rest of a line, which may be a comment, and goes to the next one. */
  #endLine(): void {
    if (this.#match(lineEnd) === undefined) refuse()
    this.#nextLine()
  }

  #match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at
    const found = pattern.exec(this.#text)
    if (found === null) return undefined
    this.#at = pattern.lastIndex
    return found
  }

  #isListItem(): boolean {
    if (this.#code() !== 0x2d) return false
    return isBlank(this.#text.charCodeAt(this.#at + 1))
  }

  #isLineEnd(): boolean {
    lineEnd.lastIndex = this.#at
    return lineEnd.test(this.#text)
  }

  #block(column: number): unknown {
    return this.#isListItem() ? this.#list(column) : this.#map(column)
  }

  #map(column: number): Record<string, unknown> {
    if (++this.#depth > maxDepth) refuse()
    const map: Record<string, unknown> = {}
    do {
      const key = this.#newKey(map)
      map[key] = this.#value(column, true)
    } while (this.#indent === column)
    if (this.#indent > column) refuse()
    this.#depth--
    return map
  }

  /** Reads the key of a field that the map does not have yet, and its colon. */
  #newKey(map: object, isFlow = false): string {
    const start = this.#at
    const key = this.#key(isFlow)
    if (key === '__proto__' || Object.hasOwn(map, key)) refuse()
    this.#note(map, key, start)
    this.#at++
    return key
  }

  /** Reads the key of a field. Quoted keys in flow collections need no space after the colon. */
  #key(isFlow: boolean): string {
    const plain = this.#match(plainKey)?.[0]
    const key = plain ?? this.#quoted() ?? refuse()
    if (key.length > maxKeyLength) refuse()
    if (plain !== undefined) return notString.test(plain) ? refuse() : plain
    const isKey = this.#code() === 0x3a && (isFlow || isBlank(this.#text.charCodeAt(this.#at + 1)))
    return isKey ? key : refuse()
  }

  #list(column: number): unknown[] {
    if (++this.#depth > maxDepth) refuse()
    const list: unknown[] = []
    do {
      this.#at++
      list.push(this.#item(column, list))
    } while (this.#indent === column && this.#isListItem())
    if (this.#indent > column) refuse()
    this.#depth--
    return list
  }

  #item(column: number, list: readonly unknown[]): unknown {
    if (this.#isLineEnd()) return this.#value(column, false)
    this.#skipSpaces()
    const start = this.#at
    this.#note(list, list.length, start)
    if (this.#isListItem()) return this.#list(start - this.#line)
    const isMap = this.#match(plainKey) !== undefined || this.#isQuotedKey()
    this.#at = start
    return isMap ? this.#map(start - this.#line) : this.#value(column, false)
  }

  #isQuotedKey(): boolean {
    return this.#quoted() !== undefined && this.#code() === 0x3a
  }

  /** Reads the value of a map's field or a list's item, which begin at the column. */
  #value(column: number, mayBeListHere: boolean): unknown {
    if (this.#isLineEnd()) {
      this.#endLine()
      const isDeeper = this.#indent > column
      if (isDeeper && this.#code() !== 0x7b && this.#code() !== 0x5b)
        return this.#block(this.#indent)
      const isList = mayBeListHere && this.#indent === column && this.#isListItem()
      if (!isDeeper) return isList ? this.#list(column) : null
    } else {
      this.#skipSpaces()
      if (this.#code() === 0x7c) return this.#literal(column)
    }
    const value = this.#inline(column, false)
    this.#endLine()
    // A deeper line would continue the scalar.
    if (this.#indent > column) refuse()
    return value
  }

  /** Reads a scalar, or a flow collection whose lines are deeper than the column. */
  #inline(column: number, isFlow: boolean): unknown {
    const code = this.#code()
    if (code === 0x7b) return this.#flowMap(column)
    if (code === 0x5b) return this.#flowList(column)
    const quoted = this.#quoted()
    if (quoted !== undefined) return quoted
    const text = this.#plain(isFlow)
    if (text === 'true') return true
    if (text === 'false') return false
    if (text === 'null') return null
    if (!notString.test(text)) return text
    return plainNumber.test(text) ? Number(text) : refuse()
  }

  /** Reads up to the end of the line, a comment or a colon; in flow collections, also up to an indicator. */
  #plain(isFlow: boolean): string {
    const text = this.#text
    const start = this.#at
    if (this.#match(plainStart) === undefined) refuse()
    let end = this.#at
    for (let at = end; ; at++) {
      const code = text.charCodeAt(at)
      if (code === 0x20) continue
      if (code === 0x0a || Number.isNaN(code) || (isFlow && flowIndicators.has(code))) break
      if (code === 0x23 && at > end) break
      if (code === 0x3a && isBlank(text.charCodeAt(at + 1))) break
      end = at + 1
    }
    this.#at = end
    return text.slice(start, end)
  }

  /** Reads a quoted scalar on one line; undefined if there is none. */
  #quoted(): string | undefined {
    const code = this.#code()
    if (code !== 0x22 && code !== 0x27) return undefined
    const start = this.#at
    const end = code === 0x22 ? this.#endOfDouble() : this.#endOfSingle()
    const content = this.#text.slice(start + 1, end)
    if (content.includes('\n')) refuse()
    this.#at = end + 1
    if (code === 0x27) return content.includes("'") ? content.replaceAll("''", "'") : content
    if (!content.includes('\\')) return content
    // All escapes of JSON but those of code units have the same meaning in YAML.
    if (content.includes('\\u')) refuse()
    try {
      return JSON.parse(`"${content}"`)
    } catch {
      return refuse()
    }
  }

  #endOfDouble(): number {
    const text = this.#text
    for (let end = text.indexOf('"', this.#at + 1); end > 0; end = text.indexOf('"', end + 1)) {
      let first = end
      while (text.charCodeAt(first - 1) === 0x5c) first--
      if ((end - first) % 2 === 0) return end
    }
    return refuse()
  }

  #endOfSingle(): number {
    const text = this.#text
    for (let end = text.indexOf("'", this.#at + 1); end > 0; end = text.indexOf("'", end + 2)) {
      if (text.charCodeAt(end + 1) !== 0x27) return end
    }
    return refuse()
  }

  #flowList(column: number): unknown[] {
    const list: unknown[] = []
    this.#flowItems(0x5d, column, () => {
      this.#note(list, list.length, this.#at)
      list.push(this.#inline(column, true))
    })
    return list
  }

  #flowMap(column: number): Record<string, unknown> {
    const map: Record<string, unknown> = {}
    this.#flowItems(0x7d, column, () => {
      const key = this.#newKey(map, true)
      this.#skipFlow(column)
      map[key] = this.#inline(column, true)
    })
    return map
  }

  /** Reads items between brackets, with a comma after each, which may be omitted after the last one. */
  #flowItems(close: number, column: number, readItem: () => void): void {
    if (++this.#depth > maxDepth) refuse()
    this.#at++
    this.#skipFlow(column)
    while (this.#code() !== close) {
      readItem()
      this.#skipFlow(column)
      if (this.#code() === close) break
      if (this.#code() !== 0x2c) refuse()
      this.#at++
      this.#skipFlow(column)
    }
    this.#at++
    this.#depth--
  }

  #skipSpaces(): void {
    while (this.#code() === 0x20) this.#at++
  }

  /** Skips spaces, comments and line ends in a flow collection. */
  #skipFlow(column: number): void {
    if (this.#isLineEnd()) {
      this.#endLine()
      if (this.#indent <= column) refuse()
    } else this.#skipSpaces()
  }

  /** Reads a text after `|`, whose lines are deeper than the column. */
  #literal(column: number): string {
    const [, chomp] = this.#match(literalHeader) ?? refuse()
    const lines: string[] = []
    const indent = this.#countSpaces()
    if (indent <= column) refuse()
    for (;;) {
      const spaces = this.#countSpaces()
      const code = this.#text.charCodeAt(this.#at + spaces)
      const isEmpty = code === 0x0a
      // Spaces beyond the indentation would be content, and lines before the first one may be.
      if (isEmpty && (spaces > indent || lines.length === 0)) refuse()
      if (!isEmpty && spaces < indent) break
      lines.push(this.#literalLine(isEmpty ? spaces : indent))
    }
    while (lines.at(-1) === '') lines.pop()
    this.#nextLine()
    if (this.#indent > column) refuse()
    return lines.join('\n') + (chomp === '-' ? '' : '\n')
  }

  #countSpaces(): number {
    let end = this.#at
    while (this.#text.charCodeAt(end) === 0x20) end++
    return end - this.#at
  }

  #literalLine(indent: number): string {
    const end = this.#text.indexOf('\n', this.#at)
    if (end < 0) refuse()
    const line = this.#text.slice(this.#at + indent, end)
    this.#at = end + 1
    return line
  }
}
