/**
 * The engine's hand on the WASM core: heads and chunked bodies are read in the core's memory,
 * results are numbers in its records. No string is made here.
 */
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
  HEAD_CONTENT_LENGTH,
  HEAD_END,
  HEAD_FIELD_COUNT,
  HEAD_FIELDS,
  HEAD_FLAGS,
  HEAD_METHOD_ID,
  HEAD_MINOR,
  HEAD_STATUS,
  nameOfCode,
  statusOfRefusal,
} from '../../core/index.ts'
import { type ErrorCode, GatewayError } from '../../errors/index.ts'

/** Bits of known field names, for choosing what to leave out of a head. */
export type NameBits = number

/** Low bits of a field's info: the known name. */
export const infoName = 255
/** Set in a field's info when it is hop-by-hop (RFC 9110 7.6.1). */
export const infoHop = 256

/** The bit of a known name; 0 is "any other name". */
export function nameBit(name: number): NameBits {
  return name === 0 ? 0 : 1 << name
}

/** Where chunk data goes while a body is read. */
export interface ChunkSink {
  onData(bytes: Buffer, start: number, end: number): void
}

/** Words of the body record that live longer than a call. */
const stateWords = BODY_SPAN_COUNT / 4
const trailerLimit = 8 * 1024

/** What must be kept of a chunked body between two reads. */
export class ChunkState {
  readonly words: Int32Array = new Int32Array(stateWords)
  /** Trailer field lines as received. */
  trailers = ''
  ended = false
}

/** Digits of a chunk's size that are read without the scanner. */
const mostDigits = 5

/** Lower case alone, as we write sizes; -1 for anything else. */
function hexDigit(byte: number): number {
  if (byte >= 0x30 && byte <= 0x39) return byte - 0x30
  return byte >= 0x61 && byte <= 0x66 ? byte - 0x57 : -1
}

const codeOfStatus: Record<number, ErrorCode> = {
  400: 'bad_request',
  414: 'uri_too_long',
  431: 'headers_too_large',
  501: 'not_implemented',
  505: 'version_not_supported',
}

/** The catalogue's error for a refusal of the core on the client's side. */
export function refusedRequest(refusal: number): GatewayError {
  const code = codeOfStatus[statusOfRefusal(refusal)] ?? 'bug'
  return new GatewayError(code, nameOfCode(refusal))
}

/** The catalogue's error for a refusal of the core on the upstream's side. */
export function refusedResponse(refusal: number): GatewayError {
  return new GatewayError('upstream_malformed', nameOfCode(refusal))
}

/** Do these bytes hold two line ends in a row? */
function hasEmptyLine(bytes: Buffer, start: number, end: number): boolean {
  for (let at = start + 3; at < end; at++) {
    if (bytes[at] !== 0x0a || bytes[at - 2] !== 0x0a) continue
    if (bytes[at - 1] === 0x0d && bytes[at - 3] === 0x0d) return true
  }
  return false
}

/** Bytes that are copied into the core's memory at once. */
const inputSize = 64 * 1024

/** Interim responses that one request may get before its final one. */
export const interimLimit = 32

export class HeadReader {
  readonly #core: IoCore
  readonly #requestRecord: HeadRecord
  readonly #responseRecord: HeadRecord
  readonly #chunkedBody: ChunkedBody
  readonly #input: number
  /** The record that was read last, and its index in the core's words; that of the body's. */
  #record: HeadRecord
  #head: number
  readonly #body: number
  /** Address where the head that was read last begins. */
  #start = 0
  readonly #spans: number[] = []

  /** `requestRecord` is where the data plane finds a fresh head. */
  constructor(core: IoCore, requestRecord: HeadRecord) {
    this.#core = core
    this.#requestRecord = requestRecord
    this.#responseRecord = core.createHead({ maxFields: requestRecord.maxFields })
    this.#chunkedBody = core.createChunkedBody()
    this.#input = core.allocate(inputSize)
    this.#record = requestRecord
    this.#head = requestRecord.address >> 2
    this.#body = this.#chunkedBody.address >> 2
  }

  /**
   * 0, INCOMPLETE or a refusal; on 0 the properties below describe the head. `resume` is that of the
   * last INCOMPLETE read of the same head, 0 at first. Throws CoreTrap.
   */
  readRequest(bytes: Buffer, start: number, end: number, maxBytes: number, resume: number): number {
    const record = this.#requestRecord
    const length = Math.min(end - start, inputSize)
    const most = Math.min(maxBytes, inputSize - 1)
    this.#start = this.#placeHead(bytes, start, start + length, resume, most)
    this.#record = record
    this.#head = record.address >> 2
    const stop = this.#start + length
    return this.#core.parseRequestHead(record, this.#start, stop, resume, most)
  }

  readResponse(
    bytes: Buffer,
    start: number,
    end: number,
    maxBytes: number,
    resume: number,
  ): number {
    const record = this.#responseRecord
    const length = Math.min(end - start, inputSize)
    const most = Math.min(maxBytes, inputSize - 1)
    this.#start = this.#placeHead(bytes, start, start + length, resume, most)
    this.#record = record
    this.#head = record.address >> 2
    const stop = this.#start + length
    return this.#core.parseResponseHead(record, this.#start, stop, resume, most)
  }

  /** The same for a head that was made as text; it must be complete. */
  readRequestText(text: string, maxBytes: number): number {
    return this.readRequest(this.#core.bytes, this.#input, this.#placeText(text), maxBytes, 0)
  }

  readResponseText(text: string, maxBytes: number): number {
    return this.readResponse(this.#core.bytes, this.#input, this.#placeText(text), maxBytes, 0)
  }

  /** 0 where these whole field lines may be trailers, else a refusal. */
  checkTrailerText(text: string): number {
    const end = this.#placeText(text)
    return this.#core.parseTrailers(this.#responseRecord, this.#input, end)
  }

  /** Where a head lies that was read from text: until the next call of this reader. */
  get textBytes(): Buffer {
    return this.#core.bytes
  }

  get textStart(): number {
    return this.#input
  }

  #placeText(text: string): number {
    return this.#input + this.#core.bytes.write(text, this.#input, inputSize, 'latin1')
  }

  /** After INCOMPLETE: what to pass with the next read of the same head, so that none is read twice. */
  get resume(): number {
    return this.#record.resume
  }

  /** Bytes of the head, its empty line included. */
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

  /** -1 if there is none. */
  get contentLength(): number {
    return this.#core.floats[(this.#head * 4 + HEAD_CONTENT_LENGTH) >> 3] ?? -1
  }

  /** A word of the record, by its byte offset. */
  word(offset: number): number {
    return this.#core.words[this.#head + offset / 4] ?? 0
  }

  /** A span of the record, relative to the begin of the head. */
  span(offset: number, into: { start: number; end: number }): void {
    const start = this.word(offset)
    into.start = start < 0 ? -1 : start - this.#start
    into.end = start < 0 ? -1 : this.word(offset + 4) - this.#start
  }

  /** Five numbers a field: name, value (start, end, relative to the head), info. */
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
   * Makes fields with `_` in their names as if they were not there, for whoever matches, reads or
   * sends the head that was read last. Returns whether there was one.
   */
  dropUnderscores(): boolean {
    const { words, bytes } = this.#core
    const first = this.#head + HEAD_FIELDS / 4
    const end = first + (this.fieldCount * FIELD_SIZE) / 4
    let hasFound = false
    for (let at = first; at < end; at += FIELD_SIZE / 4) {
      const start = words[at] ?? 0
      const nameEnd = words[at + 1] ?? 0
      let place = start
      while (place < nameEnd && bytes[place] !== 0x5f) place++
      if (place === nameEnd) continue
      hasFound = true
      // No name is empty, and hop-by-hop fields go no further.
      words[at + 1] = start
      words[at + 4] = (words[at + 4] ?? 0) | infoHop
    }
    return hasFound
  }

  startChunks(state: ChunkState): void {
    this.#chunkedBody.start(trailerLimit)
    this.#save(state)
    state.trailers = ''
    state.ended = false
  }

  /**
   * Reads on in a chunked body and gives its data to the sink. Returns the offset after what was
   * taken: `end` while the body goes on. A refusal is negative.
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
      // The spans are read first: the sink may lead to another message being read.
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
   * Where the data begins if [start, end) are one whole chunk and nothing else, framed as we frame
   * chunks ourselves; -1 where they are anything else, which `readChunks` then reads.
   */
  wholeChunk(state: ChunkState, bytes: Buffer, start: number, end: number): number {
    if (state.words[BODY_PHASE / 4] !== 0) return -1
    let size = 0
    let at = start
    for (; at < end && at < start + mostDigits; at++) {
      const digit = hexDigit(bytes[at] ?? 0)
      if (digit < 0) break
      size = size * 16 + digit
    }
    // A last chunk and leading zeros are not for here.
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
   * The same for a head, of which the core has settled `resume` bytes: it looks at those again only
   * when the head has ended or is too long, so they are not copied before.
   */
  #placeHead(bytes: Buffer, start: number, end: number, resume: number, most: number): number {
    const from = start + resume
    if (resume === 0 || end - start >= most || hasEmptyLine(bytes, from, end)) {
      return this.#place(bytes, start, end)
    }
    const memory = this.#core.bytes
    if (bytes === memory) return start
    // The byte before tells the core where the line ends begin.
    bytes.copy(memory, this.#input + resume - 1, from - 1, end)
    return this.#input
  }

  /** Address of the bytes in the core's memory, copied there unless they already lie in it. */
  #place(bytes: Buffer, start: number, end: number): number {
    const memory = this.#core.bytes
    if (bytes === memory) return start
    bytes.copy(memory, this.#input, start, end)
    return this.#input
  }
}
