/**
 * Encodes a block of decisions (proto/decisions.proto) into a preallocated buffer, field by field. It
 * allocates no objects for a decision.
 */
import { latin1Text } from '../../ground/base/latin1.ts'

/** Space that must be free before a decision is written. Long texts are cut so that a decision fits. */
export const mostDecisionBytes = 64 * 1024
/** Maximum size of a text in UTF-8; longer texts are cut. */
const maxTextBytes = 8 * 1024
/** Part of the space that is kept for what is not text. */
const numberBytes = 8 * 1024
/** Size of a length that is filled in later. Its varint is padded to this size. */
const lengthBytes = 3

const varint = 0
const fixed64 = 1
const lengthDelimited = 2

export class BlockWriter {
  readonly bytes: Buffer
  /** Incremented by `clear`. The numbers of shared texts are valid within one generation of a block. */
  generation = 0
  /** Whether a text of the current decision was cut, because it or all of them are too long. */
  isCut = false
  readonly #start: number
  #used: number
  /** Texts of the current decision end before this offset. */
  #textLimit = 0
  readonly #texts = new Map<string, number>()
  readonly #cutTexts = new Set<string>()
  readonly #plans = new Map<object, number>()
  #commons = 0

  /** The block begins at offset `start` of the buffer. */
  constructor(size: number, start: number) {
    this.bytes = Buffer.allocUnsafeSlow(size)
    this.#start = start
    this.#used = start
    this.beginDecision()
  }

  /** Called before the shared texts of a decision are written. */
  beginDecision(): void {
    this.isCut = false
    this.#textLimit = this.#used + mostDecisionBytes - numberBytes
  }

  /** Offset after the last byte of the block. */
  get used(): number {
    return this.#used
  }

  get isEmpty(): boolean {
    return this.#used === this.#start
  }

  get hasRoom(): boolean {
    return this.bytes.length - this.#used >= mostDecisionBytes
  }

  /** Makes the writer empty for the next block. */
  clear(): void {
    this.#used = this.#start
    this.generation++
    this.#texts.clear()
    this.#cutTexts.clear()
    this.#plans.clear()
    this.#commons = 0
    this.beginDecision()
  }

  /** Returns the number of a text that decisions share, and writes the text unless the block has it. */
  shared(field: number, text: string | undefined): number {
    if (text === undefined || text === '') return 0
    let number = this.#texts.get(text)
    if (number === undefined) {
      number = this.#texts.size + 1
      this.#texts.set(text, number)
      const wasCut = this.isCut
      this.isCut = false
      this.text(field, text)
      if (this.isCut) this.#cutTexts.add(text)
      else this.isCut = wasCut
    } else if (this.#cutTexts.size > 0 && this.#cutTexts.has(text)) this.isCut = true
    return number
  }

  /** Returns the number of a plan that decisions share; 0 if the block does not have the plan yet. */
  planNumber(plan: object): number {
    return this.#plans.get(plan) ?? 0
  }

  /** Assigns the next number to a plan that was just written, and returns it. */
  addPlan(plan: object): number {
    this.#plans.set(plan, this.#plans.size + 1)
    return this.#plans.size
  }

  /** Returns the number of the common part that is written next. */
  addCommon(): number {
    return ++this.#commons
  }

  /** Writes an integer that is not negative; 0 is the default and takes no bytes. */
  uint(field: number, value: number): void {
    if (value <= 0) return
    this.#varint((field << 3) | varint)
    this.#varint(value)
  }

  sint(field: number, value: number): void {
    this.uint(field, value < 0 ? -value * 2 - 1 : value * 2)
  }

  flag(field: number, value: boolean): void {
    if (value) this.uint(field, 1)
  }

  double(field: number, value: number): void {
    this.#varint((field << 3) | fixed64)
    this.#used = this.bytes.writeDoubleLE(value, this.#used)
  }

  /** Writes a text. It is cut if it, or all texts of the decision together, are longer than the maximum. */
  text(field: number, text: string): void {
    this.#varint((field << 3) | lengthDelimited)
    const from = this.#used + lengthBytes
    const length = this.#writeText(text, from)
    this.#setLength(this.#used, length)
    this.#used = from + length
  }

  /** Writes the Latin-1 text at [start, end) of the bytes, without allocating a string if it is ASCII. */
  latin1(field: number, source: Buffer, start: number, end: number): void {
    const { bytes } = this
    const size = end - start
    this.#varint((field << 3) | lengthDelimited)
    const from = this.#used + lengthBytes
    let at = size <= this.#roomFrom(from) ? 0 : size + 1
    for (; at < size; at++) {
      const code = source[start + at] ?? 0
      if (code > 0x7f) break
      bytes[from + at] = code
    }
    const length = at === size ? size : this.#writeText(latin1Text(source, start, end), from)
    this.#setLength(this.#used, length)
    this.#used = from + length
  }

  /** Writes ASCII byte by byte, which is faster than a call for short texts, and other texts as UTF-8. */
  #writeText(text: string, from: number): number {
    const { bytes } = this
    const room = this.#roomFrom(from)
    const length = Math.min(text.length, room)
    for (let at = 0; at < length; at++) {
      const code = text.charCodeAt(at)
      if (code > 0x7f) return this.#writeUtf8(text, from, room)
      bytes[from + at] = code
    }
    if (length < text.length) this.isCut = true
    return length
  }

  /** Maximum size of a text that begins at an offset. */
  #roomFrom(from: number): number {
    return Math.max(0, Math.min(maxTextBytes, this.#textLimit - from))
  }

  /** `Buffer.write` never cuts inside a character. */
  #writeUtf8(text: string, from: number, room: number): number {
    const length = this.bytes.write(text, from, room, 'utf8')
    if (length < Buffer.byteLength(text)) this.isCut = true
    return length
  }

  /** Begins a nested message or packed list. Pass the returned offset to `end`. */
  begin(field: number): number {
    this.#varint((field << 3) | lengthDelimited)
    const at = this.#used
    this.#used += lengthBytes
    return at
  }

  end(at: number): void {
    this.#setLength(at, this.#used - at - lengthBytes)
  }

  /** Writes one number of a packed list, between `begin` and `end`. */
  packed(value: number): void {
    this.#varint(value)
  }

  /** Copies bytes, between `begin` and `end`. */
  raw(source: Uint8Array, start: number, end: number): void {
    // Bytes are copied one by one, because a view for `set` would be an object.
    const { bytes } = this
    let to = this.#used
    for (let at = start; at < end; at++) bytes[to++] = source[at] ?? 0
    this.#used = to
  }

  #setLength(at: number, length: number): void {
    this.bytes[at] = (length & 0x7f) | 0x80
    this.bytes[at + 1] = ((length >>> 7) & 0x7f) | 0x80
    this.bytes[at + 2] = length >>> 14
  }

  #varint(value: number): void {
    const { bytes } = this
    let rest = value
    let at = this.#used
    while (rest > 0x7f) {
      bytes[at++] = (rest % 128) | 0x80
      rest = rest > 0x7fff_ffff ? Math.floor(rest / 128) : rest >>> 7
    }
    bytes[at++] = rest
    this.#used = at
  }
}
