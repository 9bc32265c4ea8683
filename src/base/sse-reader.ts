/**
 * Server-sent events (WHATWG HTML, 9.2.6), read from bytes however they are cut. Every byte is looked
 * at a fixed number of times, and the bound of an event counts every byte that is received for it.
 */
import { GrowingBytes } from './growing-bytes.ts'

/** A block of lines that an empty line has ended, if it has a field that counts. */
export interface SseEvent {
  /** Empty if the block does not name one. */
  readonly type: string
  /** Undefined if the block has no data: then it is no event, and only `id` and `retry` count. */
  readonly data: string | undefined
  /** Undefined if the block has none; the last one before it stays in force. */
  readonly id: string | undefined
  /** Milliseconds. */
  readonly retry: number | undefined
}

/** A block grew beyond the bound. */
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
  /** The beginning of a line whose end has not arrived. */
  readonly #line = new GrowingBytes()
  readonly #data = new GrowingBytes()
  /** The first data of a block lies in the bytes that are being read. */
  #span: Buffer | undefined
  #spanStart = 0
  #spanEnd = 0
  #hasData = false
  #type = ''
  #id: string | undefined
  #retry: number | undefined
  /** Bytes of the block so far. */
  #size = 0
  #isInLine = false
  #hasFields = false
  #isSkipping = false
  #isAfterReturn = false
  #settled = 0
  #blockStart = 0
  #blockEnd = 0
  /** Bytes of the mark that have arrived; all of them once it is known whether there is one. */
  #markBytes = 0

  /**
   * `limit`: bytes that a block may have, comments and line ends included. `tooLarge`: `fail` throws,
   * `skip` leaves the block out and goes on behind it.
   */
  constructor(limit: number, tooLarge: 'fail' | 'skip') {
    this.#limit = limit
    this.#skips = tooLarge === 'skip'
  }

  /** An event has begun and its empty line has not arrived; at the end of a stream it is dropped. */
  get isInside(): boolean {
    return this.#isInLine || this.#hasFields
  }

  /** How many of the bytes that were read last lie before the event that has begun; all if none has. */
  get settledBytes(): number {
    return this.#settled
  }

  /** While an event is given: where its block begins among the bytes that are read; 0 if before them. */
  get blockStart(): number {
    return this.#blockStart
  }

  /**
   * While an event is given: where its block ends among the bytes that are read. A line feed that
   * comes later, behind a carriage return that ended the block, belongs to the block too.
   */
  get blockEnd(): number {
    return this.#blockEnd
  }

  /**
   * Reads bytes; they may be overwritten afterwards. Gives every event that they complete, in order.
   * @throws SseEventTooLarge behind the events before it
   */
  push(chunk: Uint8Array, onEvent: (event: SseEvent) => void): void {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length)
    const end = bytes.length
    let at = this.#markBytes < byteOrderMark.length ? this.#skipMark(bytes) : 0
    let feed = -1
    let back = -1
    this.#settled = this.isInside ? 0 : at
    this.#blockStart = 0
    while (at < end) {
      if (this.#isAfterReturn && bytes[at] === lineFeed) at = this.#skipFeed(at)
      this.#isAfterReturn = false
      if (at === end) break
      // Neither search goes over bytes that it has seen.
      if (feed < at) feed = indexOf(bytes, lineFeed, at)
      if (back < at) back = indexOf(bytes, carriageReturn, at)
      const stop = Math.min(feed, back)
      this.#count(Math.min(stop + 1, end) - at)
      if (stop === end) this.#keep(bytes, at)
      else this.#endLine(bytes, at, stop, onEvent)
      this.#isAfterReturn = stop === back && stop < end
      at = stop + 1
    }
    this.#copyData()
  }

  /** The second half of CR LF; gives where the next line begins. */
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

  /** The line goes on in the next bytes. */
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
      // The line lies in memory that the next one takes.
      this.#copyData()
      this.#line.clear()
    }
    if (!this.#hasFields) this.#settled = stop + 1
  }

  #endBlock(onEvent: (event: SseEvent) => void): void {
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

  /** Copies data out of bytes that will be overwritten. */
  #copyData(): void {
    if (this.#span === undefined) return
    this.#data.add(this.#span, this.#spanStart, this.#spanEnd)
    this.#span = undefined
  }
}

/** The length of the bytes if the byte is not among them. */
function indexOf(bytes: Buffer, byte: number, from: number): number {
  const found = bytes.indexOf(byte, from)
  return found < 0 ? bytes.length : found
}

/** Where the value of a field with this name begins; negative if the line has another name. */
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
