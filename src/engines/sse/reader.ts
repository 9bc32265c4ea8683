/**
 * Reads server-sent events (WHATWG HTML, 9.2.6) from bytes in pieces of any size. Reading takes linear time,
 * and every byte that is received for an event counts towards its size limit.
 */
import { GrowingBytes } from '../../ground/base/growing-bytes.ts'

/** A block of lines that ends with an empty line and has at least one known field. */
export interface SseEvent {
  /** Type of the event; empty if the block does not name one. */
  readonly type: string
  /** Undefined if the block has no data. Such a block is not an event; only its `id` and `retry` count. */
  readonly data: string | undefined
  /** Undefined if the block has no id, so that the previous id still applies. */
  readonly id: string | undefined
  /** Reconnection time in milliseconds. */
  readonly retry: number | undefined
}

/** Whether an event needs not be read. Its data is bytes [start, end) of the chunk; `type` may be empty. */
export type IsKnownEvent = (bytes: Buffer, start: number, end: number, type: string) => boolean

/** Thrown if a block exceeds the size limit. */
export class SseEventTooLarge extends Error {
  override readonly name = 'SseEventTooLarge'
}

const byteOrderMark = [0xef, 0xbb, 0xbf]
const lineFeed = 0x0a
const carriageReturn = 0x0d
const colon = 0x3a
const space = 0x20
const digits = /^[0-9]+$/

export class SseReader {
  readonly #limit: number
  readonly #skips: boolean
  /** The part of an unfinished line that has arrived. */
  readonly #line = new GrowingBytes()
  readonly #data = new GrowingBytes()
  /** The chunk that contains the first data of the block, until `#copyData` copies that data. */
  #span: Buffer | undefined
  #spanStart = 0
  #spanEnd = 0
  #hasData = false
  #type = ''
  #id: string | undefined
  #retry: number | undefined
  /** Number of bytes of the block so far. */
  #size = 0
  #isInLine = false
  #hasFields = false
  #isSkipping = false
  #isAfterReturn = false
  #settled = 0
  #blockStart = 0
  #blockEnd = 0
  readonly #isKnown: IsKnownEvent | undefined
  /** Number of bytes of the byte order mark that were read; 3 once the reader is past the mark. */
  #markBytes = 0

  /**
   * `limit` is the maximum size of a block in bytes, including comments and line ends. A larger block makes
   * `push` throw if `tooLarge` is `fail`, and is left out if it is `skip`. `isKnown` is asked before an event is
   * read; if it returns true, `onEvent` is not called for that event.
   */
  constructor(limit: number, tooLarge: 'fail' | 'skip', isKnown?: IsKnownEvent) {
    this.#isKnown = isKnown
    this.#limit = limit
    this.#skips = tooLarge === 'skip'
  }

  /** True if a block has begun but has not ended. If the stream ends now, the block is dropped. */
  get isInside(): boolean {
    return this.#isInLine || this.#hasFields
  }

  /** True if the end of a line has not arrived. */
  get isInLine(): boolean {
    return this.#isInLine
  }

  /** The data that the unfinished block has so far; undefined if there is none, or if the block is too large. */
  get unfinishedData(): string | undefined {
    if (!this.isInside || this.#isSkipping) return undefined
    const line = this.#line.content
    const start = this.#isInLine ? startOfValue(line, 0, line.length, 'data') : -1
    const last = start < 0 ? [] : [line.toString('utf8', start)]
    const lines = this.#hasData ? [this.#text(), ...last] : last
    return lines.length === 0 ? undefined : lines.join('\n')
  }

  /** True if nothing of the next event has arrived, and nothing of the last one is still expected. */
  get isBetweenEvents(): boolean {
    const isPastMark = this.#markBytes === byteOrderMark.length
    return isPastMark && !this.isInside && this.#size === 0 && !this.#isAfterReturn
  }

  /** Number of bytes of the last chunk that precede an unfinished event; all bytes if there is none. */
  get settledBytes(): number {
    return this.#settled
  }

  /** Valid during `onEvent`: where the event's block starts in the chunk; 0 if it started earlier. */
  get blockStart(): number {
    return this.#blockStart
  }

  /**
   * Valid during `onEvent`: where the event's block ends in the chunk. If that is a carriage return at the
   * end of the chunk, a line feed at the start of the next chunk also belongs to the block.
   */
  get blockEnd(): number {
    return this.#blockEnd
  }

  /**
   * Reads a chunk, and calls `onEvent` for every event that it completes, in order. The chunk may be
   * overwritten afterwards.
   * @throws SseEventTooLarge after the events that precede the large one
   */
  push(chunk: Uint8Array, onEvent: (event: SseEvent) => void): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
    const end = bytes.length
    let at = this.#markBytes < byteOrderMark.length ? this.#skipMark(bytes) : 0
    let nextFeed = -1
    let nextReturn = -1
    this.#settled = this.isInside ? 0 : at
    this.#blockStart = 0
    while (at < end) {
      if (this.#isAfterReturn && bytes[at] === lineFeed) at = this.#skipFeed(at)
      this.#isAfterReturn = false
      if (at === end) break
      // Each search starts again only after its last match, so that no byte is searched twice.
      if (nextFeed < at) nextFeed = indexOf(bytes, lineFeed, at)
      if (nextReturn < at) nextReturn = indexOf(bytes, carriageReturn, at)
      const stop = Math.min(nextFeed, nextReturn)
      this.#count(Math.min(stop + 1, end) - at)
      if (stop === end) this.#keep(bytes, at)
      else this.#endLine(bytes, at, stop, onEvent)
      this.#isAfterReturn = stop === nextReturn && stop < end
      at = stop + 1
    }
    this.#copyData()
  }

  /** Skips the line feed of CR LF; returns the start of the next line. */
  #skipFeed(at: number): number {
    if (this.#size > 0) this.#count(1)
    if (!this.#hasFields) this.#settled = at + 1
    return at + 1
  }

  #skipMark(bytes: Buffer): number {
    let at = 0
    while (at < bytes.length && bytes[at] === byteOrderMark[this.#markBytes]) {
      at++
      if (++this.#markBytes === byteOrderMark.length) return at
    }
    if (at === bytes.length) return at
    const begun = Buffer.from(byteOrderMark.slice(0, this.#markBytes))
    this.#markBytes = byteOrderMark.length
    if (begun.length > 0) this.#keep(begun, 0)
    return at
  }

  #count(length: number): void {
    this.#size += length
    if (this.#size <= this.#limit || this.#isSkipping) return
    if (!this.#skips) throw new SseEventTooLarge('an event is larger than its bound')
    this.#isSkipping = true
    this.#line.clear()
    this.#forget()
  }

  /** Stores the beginning of a line that continues in the next chunk. */
  #keep(bytes: Buffer, start: number): void {
    this.#isInLine = true
    if (!this.#isSkipping) this.#line.add(bytes, start, bytes.length)
  }

  #endLine(bytes: Buffer, start: number, stop: number, onEvent: (event: SseEvent) => void): void {
    const isWhole = !this.#isInLine
    this.#isInLine = false
    if (isWhole && start === stop) {
      const isPair = bytes[stop] === carriageReturn && bytes[stop + 1] === lineFeed
      this.#blockEnd = isPair ? stop + 2 : stop + 1
      this.#endBlock(onEvent)
      this.#blockStart = this.#blockEnd
    } else if (this.#isSkipping) this.#hasFields = true
    else if (isWhole) this.#field(bytes, start, stop)
    else {
      this.#line.add(bytes, start, stop)
      this.#field(this.#line.content, 0, this.#line.length)
      // The buffer is overwritten by the next line, so the data is copied first.
      this.#copyData()
      this.#line.clear()
    }
    if (!this.#hasFields) this.#settled = stop + 1
  }

  #endBlock(onEvent: (event: SseEvent) => void): void {
    if (this.#isKnownBlock()) {
      this.#forget()
      this.#size = 0
      this.#hasFields = false
      return
    }
    const type = this.#type
    const data = this.#hasData ? this.#text() : undefined
    const id = this.#id
    const retry = this.#retry
    this.#forget()
    this.#size = 0
    this.#isSkipping = false
    this.#hasFields = false
    if (data === undefined && id === undefined && retry === undefined) return
    onEvent({ type, data, id, retry })
  }

  /** Only blocks whose data is one line of the current chunk can be known. */
  #isKnownBlock(): boolean {
    const span = this.#span
    if (this.#isKnown === undefined || span === undefined || this.#isSkipping) return false
    if (this.#id !== undefined || this.#retry !== undefined) return false
    return this.#isKnown(span, this.#spanStart, this.#spanEnd, this.#type)
  }

  #text(): string {
    if (this.#span === undefined) return this.#data.content.toString('utf8')
    return this.#span.toString('utf8', this.#spanStart, this.#spanEnd)
  }

  #forget(): void {
    this.#type = ''
    this.#id = undefined
    this.#retry = undefined
    this.#hasData = false
    this.#span = undefined
    this.#data.clear()
  }

  #field(bytes: Buffer, start: number, stop: number): void {
    if (bytes[start] === colon) return
    this.#hasFields = true
    const data = startOfValue(bytes, start, stop, 'data')
    if (data >= 0) {
      this.#addData(bytes, data, stop)
      return
    }
    const type = startOfValue(bytes, start, stop, 'event')
    if (type >= 0) this.#type = bytes.toString('utf8', type, stop)
    const id = startOfValue(bytes, start, stop, 'id')
    if (id >= 0 && !bytes.subarray(id, stop).includes(0)) {
      this.#id = bytes.toString('utf8', id, stop)
    }
    const retry = startOfValue(bytes, start, stop, 'retry')
    if (retry >= 0) this.#setRetry(bytes.toString('latin1', retry, stop))
  }

  #setRetry(text: string): void {
    if (digits.test(text)) this.#retry = Math.min(Number(text), Number.MAX_SAFE_INTEGER)
  }

  #addData(bytes: Buffer, start: number, stop: number): void {
    if (!this.#hasData) {
      this.#hasData = true
      this.#span = bytes
      this.#spanStart = start
      this.#spanEnd = stop
      return
    }
    this.#copyData()
    this.#data.addByte(lineFeed)
    this.#data.add(bytes, start, stop)
  }

  /** Copies data out of the chunk, which may be overwritten. */
  #copyData(): void {
    if (this.#span === undefined) return
    this.#data.add(this.#span, this.#spanStart, this.#spanEnd)
    this.#span = undefined
  }
}

/** Like `Buffer.indexOf`, but returns the length if the byte is not found. */
function indexOf(bytes: Buffer, byte: number, from: number): number {
  const found = bytes.indexOf(byte, from)
  return found < 0 ? bytes.length : found
}

/** Returns where the value of the field `name` starts, or -1 if the line has another field. */
function startOfValue(bytes: Buffer, start: number, stop: number, name: string): number {
  const end = start + name.length
  if (end > stop) return -1
  for (let at = 0; at < name.length; at++) {
    if (bytes[start + at] !== name.charCodeAt(at)) return -1
  }
  if (end === stop) return stop
  if (bytes[end] !== colon) return -1
  return end + 1 < stop && bytes[end + 1] === space ? end + 2 : end + 1
}
