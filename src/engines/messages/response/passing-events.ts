import { GrowingBytes } from '../../../ground/base/growing-bytes.ts'
import type { OmittedBytes } from '../../../ground/exchange/exchange.ts'
import type { StreamEvent } from '../chat.ts'
import { SseDecoder, writeSse } from '../framing/sse.ts'
import type { Conversion } from './conversion.ts'

type Emit = (bytes: Uint8Array) => void

/** Maximum number of bytes of an incomplete event to hold back. */
const heldLimit = 256 * 1024
/** Ends an event that the client has received in part. */
const nothing = new Uint8Array(0)
const emptyLine = Buffer.from('\n\n')
const lineFeed = 0x0a
const carriageReturn = 0x0d

/**
 * Passes on the bytes of a stream event by event, so that an event can be removed or replaced, and
 * an error can follow as a separate event. A large event is passed on before it is complete.
 */
export class PassingEvents {
  readonly #decoder: SseDecoder
  /** The first bytes of the incomplete event. */
  readonly #held = new GrowingBytes()
  /** True if the client has received a part of the incomplete event. */
  #isPassing = false
  /** True if the last chunk ended with the CR of a removed event: an LF that follows is removed too. */
  #dropsFeed = false

  /** The chunk that is being read, from where it is still to be passed on, and to whom. */
  #chunk: Uint8Array = nothing
  #from = 0
  #emitTo: Emit = () => undefined
  readonly #conversion: Pick<Conversion, 'relay' | 'relayEvent'>

  /** `eventLimit` is the maximum size of an event that is read; larger events are only passed on. */
  constructor(eventLimit: number, conversion: Pick<Conversion, 'relay' | 'relayEvent'>) {
    this.#conversion = conversion
    this.#decoder = new SseDecoder(eventLimit, 'skip', (bytes, start, end, type) => {
      const omitted = conversion.relay?.(bytes, start, end, type)
      if (omitted === undefined) return false
      if (omitted.cutStart < omitted.cutEnd) {
        this.#emit(this.#chunk, this.#from, omitted.cutStart, this.#emitTo)
        if (omitted.replacement.length > 0) this.#emitTo(omitted.replacement)
        this.#from = omitted.cutEnd
      }
      return true
    })
  }

  get isInside(): boolean {
    return this.#decoder.isInside
  }

  get missingEnd(): Uint8Array | undefined {
    return this.#decoder.missingEnd
  }

  /** Handles bytes that are one whole event of a known form. Otherwise returns undefined and changes nothing. */
  relay(bytes: Buffer, start: number, end: number): OmittedBytes | undefined {
    if (this.#held.length > 0 || this.#isPassing || this.#dropsFeed) return undefined
    if (!this.#decoder.reader.isBetweenEvents) return undefined
    return this.#conversion.relayEvent?.(bytes, start, end)
  }

  /** `convert` returns the same event to pass its bytes on, otherwise its replacements. */
  push(
    chunk: Uint8Array,
    convert: (event: StreamEvent) => readonly StreamEvent[],
    emit: Emit,
  ): void {
    if (chunk.length === 0) return
    const { reader } = this.#decoder
    this.#from = this.#dropsFeed && chunk[0] === lineFeed ? 1 : 0
    this.#chunk = chunk
    this.#emitTo = emit
    this.#decoder.push(chunk, (event) => {
      const converted = convert(event)
      if (converted.length === 1 && converted[0] === event) return
      const { blockStart, blockEnd } = reader
      if (this.#isPassing && blockStart === 0) return
      if (blockStart === 0) this.#held.clear()
      this.#emit(chunk, this.#from, blockStart, emit)
      if (converted.length > 0) emit(Buffer.from(converted.map(writeSse).join('')))
      this.#from = blockEnd
    })
    const from = this.#from
    this.#chunk = nothing
    this.#dropsFeed = from === chunk.length && chunk[from - 1] === carriageReturn
    const settled = Math.max(from, reader.settledBytes)
    const isPassing = this.#isPassing && settled === 0
    const wouldHold = chunk.length - settled + (settled === 0 ? this.#held.length : 0)
    this.#isPassing = isPassing || wouldHold > heldLimit
    const end = this.#isPassing ? chunk.length : settled
    if (end > 0) this.#emit(chunk, from, end, emit)
    if (end < chunk.length) this.#held.add(chunk, end, chunk.length)
  }

  /** `isFollowed` is true if events of the gateway follow; an incomplete event is then not passed on. */
  finish(isFollowed: boolean, emit: Emit): void {
    if (isFollowed && this.isInside) {
      this.#held.clear()
      if (this.#isPassing) emit(emptyLine)
    } else this.#release(emit)
  }

  /** Passes on the held bytes and bytes [from, end). */
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
