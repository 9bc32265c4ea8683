import { GrowingBytes } from '../../../base/growing-bytes.ts'
import type { StreamEvent } from '../chat.ts'
import { SseDecoder, writeSse } from '../formats/sse.ts'

type Emit = (bytes: Uint8Array) => void

/** Bytes of an event that are held back until it is whole. */
const heldLimit = 256 * 1024
/** Ends an event that the client has in part. */
const emptyLine = Buffer.from('\n\n')
const lineFeed = 0x0a
const carriageReturn = 0x0d

/**
 * Passes on the bytes of a stream, event by event, so that an event can be left out or replaced, and
 * an error can follow as an event of its own. An event that grows large passes as it comes.
 */
export class PassingEvents {
  readonly #decoder: SseDecoder
  /** The beginning of the event that has begun. */
  readonly #held = new GrowingBytes()
  /** The client has a part of the event that has begun. */
  #isPassing = false
  /** The bytes ended with the CR of an event that was left out: an LF that follows goes with it. */
  #dropsFeed = false

  /** `eventLimit`: bytes of an event that is looked at; larger ones only pass. */
  constructor(eventLimit: number) {
    this.#decoder = new SseDecoder(eventLimit, 'skip')
  }

  get isInside(): boolean {
    return this.#decoder.isInside
  }

  /** `convert` gives the same event if its bytes are to pass, else those that come in its place. */
  push(
    chunk: Uint8Array,
    convert: (event: StreamEvent) => readonly StreamEvent[],
    emit: Emit,
  ): void {
    if (chunk.length === 0) return
    const { reader } = this.#decoder
    let from = this.#dropsFeed && chunk[0] === lineFeed ? 1 : 0
    this.#decoder.push(chunk, (event) => {
      const converted = convert(event)
      if (converted.length === 1 && converted[0] === event) return
      const { blockStart, blockEnd } = reader
      if (this.#isPassing && blockStart === 0) return
      if (blockStart === 0) this.#held.clear()
      this.#emit(chunk, from, blockStart, emit)
      if (converted.length > 0) emit(Buffer.from(converted.map(writeSse).join('')))
      from = blockEnd
    })
    this.#dropsFeed = from === chunk.length && chunk[from - 1] === carriageReturn
    const settled = Math.max(from, reader.settledBytes)
    const isPassing = this.#isPassing && settled === 0
    const wouldHold = chunk.length - settled + (settled === 0 ? this.#held.length : 0)
    this.#isPassing = isPassing || wouldHold > heldLimit
    const end = this.#isPassing ? chunk.length : settled
    if (end > 0) this.#emit(chunk, from, end, emit)
    if (end < chunk.length) this.#held.add(chunk, end, chunk.length)
  }

  /** `isFollowed`: events of our own follow. A part of an event cannot come before them. */
  finish(isFollowed: boolean, emit: Emit): void {
    if (isFollowed && this.isInside) {
      this.#held.clear()
      if (this.#isPassing) emit(emptyLine)
    } else this.#release(emit)
  }

  /** What is held, and bytes [from, end). */
  #emit(chunk: Uint8Array, from: number, end: number, emit: Emit): void {
    this.#release(emit)
    if (end <= from) return
    emit(from === 0 && end === chunk.length ? chunk : chunk.subarray(from, end))
  }

  #release(emit: Emit): void {
    if (this.#held.length > 0) emit(Buffer.from(this.#held.content))
    this.#held.clear()
  }
}
