/**
 * Reads heads and chunked bodies in the memory of the WASM core. Results are numbers in the core's
 * records; no strings are created here.
 */

import { latin1Text } from '../../../ground/base/latin1.ts'
import type { ChunkedBody, HeadRecord, IoCore } from '../../core/index.ts'
import {
  BODY_CONSUMED,
  BODY_FLAGS,
  BODY_HAS_TRAILERS,
  BODY_PHASE,
  BODY_SPAN_COUNT,
  BODY_SPANS,
  BODY_TRAILER,
  CHUNKS_AGAIN,
  CHUNKS_END,
  FIELD_SIZE,
  HEAD_AUTHORITY,
  HEAD_CONTENT_LENGTH,
  HEAD_END,
  HEAD_FIELD_COUNT,
  HEAD_FIELDS,
  HEAD_FLAGS,
  HEAD_METHOD_ID,
  HEAD_MINOR,
  HEAD_STATUS,
} from '../../core/index.ts'
import { HeadLoan } from './head-loan.ts'
import { dropUnderscores, hasFramingAlias } from './underscores.ts'

/** A set of known field names, one bit each, that selects fields to omit from a head. */
export type NameBits = number

/** Mask of a field's info for its known name. */
export const infoName = 255
/** Bit of a field's info that is set if the field is hop-by-hop (RFC 9110 7.6.1). */
export const infoHop = 256

/** Returns the bit of a known name. For 0, which means any other name, the result is 0. */
export function nameBit(name: number): NameBits {
  return name === 0 ? 0 : 1 << name
}

/** Receives the chunk data of a body that is read. */
export interface ChunkSink {
  onData(bytes: Buffer, start: number, end: number): void
}

/** Number of words of the body record that must be kept between calls. */
const stateWords = BODY_SPAN_COUNT / 4
const trailerLimit = 8 * 1024

/** The state of a chunked body between two reads. */
export class ChunkState {
  readonly words: Int32Array = new Int32Array(stateWords)
  /** Trailer field lines as received. */
  trailers = ''
  ended = false
}

/** Maximum number of digits of a chunk size that is read without the scanner. */
const maxDigits = 5

/** Returns the value of a lower-case digit, as we write sizes; -1 for anything else. */
function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  return byte >= 0x61 && byte <= 0x66 ? byte - 0x57 : -1
}

/** Whether these bytes contain an empty line. */
function hasEmptyLine(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start + 3; at < end; at++) {
    if (bytes[at] !== 0x0a || bytes[at - 2] !== 0x0a) continue
    if (bytes[at - 1] === 0x0d && bytes[at - 3] === 0x0d) return true
  }
  return false
}

/** Maximum number of bytes that are copied into the core's memory at once. */
const inputSize = 64 * 1024

/** Maximum number of interim responses to one request. */
export const interimLimit = 32

export class HeadReader {
  readonly #core: IoCore
  readonly #requestRecord: HeadRecord
  readonly #responseRecord: HeadRecord
  readonly #chunkedBody: ChunkedBody
  readonly #input: number
  /** The record that was read last, its index in the core's words, and the index of the body record. */
  #record: HeadRecord
  #head: number
  readonly #body: number
  /** Start address of the head that was read last. */
  #start = 0
  /** The loan of the core's memory to the head that was read last from text. */
  readonly textLoan: HeadLoan
  readonly #spans: number[] = []

  /** The data plane finds the head that was read last in `requestRecord`. */
  constructor(core: IoCore, requestRecord: HeadRecord) {
    this.#core = core
    this.#requestRecord = requestRecord
    this.#responseRecord = core.createHead({ maxFields: requestRecord.maxFields })
    this.#chunkedBody = core.createChunkedBody()
    this.#input = core.allocate(inputSize)
    this.textLoan = new HeadLoan(core.bytes)
    this.#record = requestRecord
    this.#head = requestRecord.address >> 2
    this.#body = this.#chunkedBody.address >> 2
  }

  /**
   * Reads a request head. Returns 0, INCOMPLETE or a refusal; after 0 the properties below describe
   * the head. `resume` is the property after the last INCOMPLETE read of the same head, or 0 at first.
   * Throws CoreTrap.
   */
  readRequest(bytes: Buffer, start: number, end: number, maxBytes: number, resume: number): number {
    return this.#read(this.#requestRecord, bytes, start, end, maxBytes, resume)
  }

  readResponse(
    bytes: Buffer,
    start: number,
    end: number,
    maxBytes: number,
    resume: number,
  ): number {
    return this.#read(this.#responseRecord, bytes, start, end, maxBytes, resume)
  }

  #read(
    record: HeadRecord,
    bytes: Buffer,
    start: number,
    end: number,
    maxBytes: number,
    resume: number,
  ): number {
    const length = Math.min(end - start, inputSize)
    const most = Math.min(maxBytes, inputSize - 1)
    const address = this.#placeHead(bytes, start, start + length, resume, most)
    this.#start = address
    this.#record = record
    this.#head = record.address >> 2
    return record === this.#requestRecord
      ? this.#core.parseRequestHead(record, address, address + length, resume, most)
      : this.#core.parseResponseHead(record, address, address + length, resume, most)
  }

  /** Like `readRequest`, for a complete head as text. */
  readRequestText(text: string, maxBytes: number): number {
    return this.readRequest(this.#core.bytes, this.#input, this.#placeText(text), maxBytes, 0)
  }

  readResponseText(text: string, maxBytes: number): number {
    return this.readResponse(this.#core.bytes, this.#input, this.#placeText(text), maxBytes, 0)
  }

  /** Returns 0 if these whole field lines may be trailers, otherwise a refusal. */
  checkTrailerText(text: string): number {
    const end = this.#placeText(text)
    return this.#core.parseTrailers(this.#responseRecord, this.#input, end)
  }

  /** The memory that contains a head that was read from text, until the next call of this reader. */
  get textBytes(): Buffer {
    return this.#core.bytes
  }

  get textStart(): number {
    return this.#input
  }

  #placeText(text: string): number {
    this.textLoan.end()
    return this.#input + this.#core.bytes.write(text, this.#input, inputSize, 'latin1')
  }

  /** After INCOMPLETE: the value for the next read of the same head, so that no byte is read twice. */
  get resume(): number {
    return this.#record.resume
  }

  /** Size of the head in bytes, including its empty line. */
  get headLength(): number {
    return this.word(HEAD_END) - this.#start
  }

  get fieldCount(): number {
    return this.word(HEAD_FIELD_COUNT)
  }

  get flags(): number {
    return this.word(HEAD_FLAGS)
  }

  get minor(): number {
    return this.word(HEAD_MINOR)
  }

  get methodId(): number {
    return this.word(HEAD_METHOD_ID)
  }

  get status(): number {
    return this.word(HEAD_STATUS)
  }

  /** Content-Length; -1 if there is none. */
  get contentLength(): number {
    return this.#core.floats[(this.#head * 4 + HEAD_CONTENT_LENGTH) >> 3] ?? -1
  }

  /** The authority of a request as latin1: its target or Host field; empty if there is none. */
  get authority(): string {
    const start = this.word(HEAD_AUTHORITY)
    return start < 0 ? '' : latin1Text(this.#core.bytes, start, this.word(HEAD_AUTHORITY + 4))
  }

  /** Returns the word at a byte offset of the record. */
  word(offset: number): number {
    return this.#core.words[this.#head + offset / 4] ?? 0
  }

  /** Reads a span of the record, relative to the start of the head. */
  span(offset: number, into: { start: number; end: number }): void {
    const start = this.word(offset)
    into.start = start < 0 ? -1 : start - this.#start
    into.end = start < 0 ? -1 : this.word(offset + 4) - this.#start
  }

  /** Copies five numbers for each field: start and end of name and value, relative to the head; info. */
  copyFields(into: Int32Array): void {
    const words = this.#core.words
    const first = this.#head + HEAD_FIELDS / 4
    const count = (this.fieldCount * FIELD_SIZE) / 4
    const start = this.#start
    for (let at = 0; at < count; at += 5) {
      into[at] = (words[first + at] ?? 0) - start
      into[at + 1] = (words[first + at + 1] ?? 0) - start
      into[at + 2] = (words[first + at + 2] ?? 0) - start
      into[at + 3] = (words[first + at + 3] ?? 0) - start
      into[at + 4] = words[first + at + 4] ?? 0
    }
  }

  /**
   * Removes fields with `_` in their names from the head that was read last, so that they are neither
   * matched nor read nor sent. Returns whether there was one.
   */
  dropUnderscores(): boolean {
    return dropUnderscores(this.#core, this.#head, this.fieldCount)
  }

  /** See `hasFramingAlias` of `underscores.ts`. */
  hasFramingAlias(): boolean {
    return hasFramingAlias(this.#core, this.#head, this.fieldCount)
  }

  startChunks(state: ChunkState): void {
    this.#chunkedBody.start(trailerLimit)
    this.#save(state)
    state.trailers = ''
    state.ended = false
  }

  /**
   * Reads part of a chunked body and passes its data to the sink. Returns the offset after the bytes
   * that were read (`end` unless the body is complete), or a negative refusal.
   */
  readChunks(
    state: ChunkState,
    bytes: Buffer,
    start: number,
    end: number,
    sink: ChunkSink,
  ): number {
    for (let at = start; ; ) {
      const length = Math.min(end - at, inputSize)
      const address = this.#place(bytes, at, at + length)
      this.#restore(state)
      const code = this.#chunkedBody.read(address, address + length)
      if (code < 0) return code
      this.#save(state)
      const taken = this.#bodyWord(BODY_CONSUMED) - address
      const trailerStart = this.#bodyWord(BODY_TRAILER)
      if (trailerStart >= 0) {
        state.trailers += this.#core.bytes.toString(
          'latin1',
          trailerStart,
          this.#bodyWord(BODY_TRAILER + 4),
        )
      }
      // The spans are copied first, because the sink may cause another message to be read.
      const spans = this.#takeSpans()
      for (let index = 0; index < spans; index++) {
        const from = at + (this.#spans[index * 2] ?? 0) - address
        sink.onData(bytes, from, at + (this.#spans[index * 2 + 1] ?? 0) - address)
      }
      at += taken
      if (code === CHUNKS_END) {
        state.ended = true
        const refusal = this.#checkTrailers(state)
        return refusal < 0 ? refusal : at
      }
      if (at >= end && code !== CHUNKS_AGAIN) return at
    }
  }

  /**
   * Returns the start of the data if [start, end) are exactly one chunk, framed as we frame chunks
   * ourselves. Returns -1 for anything else, which must then be read by `readChunks`.
   */
  wholeChunk(state: ChunkState, bytes: Buffer, start: number, end: number): number {
    if (state.words[BODY_PHASE / 4] !== 0) return -1
    let size = 0
    let at = start
    for (; at < end && at < start + maxDigits; at++) {
      const digit = hexDigit(bytes[at] ?? 0)
      if (digit < 0) break
      size = size * 16 + digit
    }
    // The last chunk and sizes with leading zeros are left to `readChunks`.
    if (at === start || bytes[start] === 0x30 || at + size + 4 !== end) return -1
    const isFramed = bytes[at] === 0x0d && bytes[at + 1] === 0x0a
    return isFramed && bytes[end - 2] === 0x0d && bytes[end - 1] === 0x0a ? at + 2 : -1
  }

  #takeSpans(): number {
    const count = this.#bodyWord(BODY_SPAN_COUNT)
    for (let index = 0; index < count * 2; index++) {
      this.#spans[index] = this.#bodyWord(BODY_SPANS + index * 4)
    }
    return count
  }

  #checkTrailers(state: ChunkState): number {
    if (((state.words[BODY_FLAGS / 4] ?? 0) & BODY_HAS_TRAILERS) === 0) {
      state.trailers = ''
      return 0
    }
    return this.checkTrailerText(state.trailers)
  }

  #bodyWord(offset: number): number {
    return this.#core.words[this.#body + offset / 4] ?? 0
  }

  #save(state: ChunkState): void {
    for (let at = 0; at < stateWords; at++) {
      state.words[at] = this.#core.words[this.#body + at] ?? 0
    }
  }

  #restore(state: ChunkState): void {
    for (let at = 0; at < stateWords; at++) {
      this.#core.words[this.#body + at] = state.words[at] ?? 0
    }
  }

  /**
   * Like `#place`, for a head of which the core has already read `resume` bytes. The core looks at
   * those again only when the head is complete or too long, so they are not copied before.
   */
  #placeHead(bytes: Buffer, start: number, end: number, resume: number, maxBytes: number): number {
    const from = start + resume
    if (resume === 0 || end - start >= maxBytes || hasEmptyLine(bytes, from, end)) {
      return this.#place(bytes, start, end)
    }
    const memory = this.#core.bytes
    if (bytes === memory) return start
    this.textLoan.end()
    // The core needs the previous byte to find line ends.
    bytes.copy(memory, this.#input + resume - 1, from - 1, end)
    return this.#input
  }

  /** Returns the address of the bytes in the core's memory, after copying them there if necessary. */
  #place(bytes: Buffer, start: number, end: number): number {
    const memory = this.#core.bytes
    if (bytes === memory) return start
    this.textLoan.end()
    bytes.copy(memory, this.#input, start, end)
    return this.#input
  }
}
