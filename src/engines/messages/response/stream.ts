/**
 * Runs the stages of a response on a stream that is passing. A response that was cut off ends with an error in the
 * client's format, never like a complete one.
 */
import { appendAll } from '../../../ground/base/append-all.ts'
import type { BodyTransform, ByteSpan, OmittedBytes } from '../../../ground/exchange/exchange.ts'
import type { EventDecoder, StreamEvent } from '../chat.ts'
import type { Framing } from '../format.ts'
import { type EventEncoder, eventBytes, eventEncoder } from '../framing/encoder.ts'
import { SseDecoder } from '../framing/sse.ts'
import { LlmError } from '../llm-error.ts'
import type { GuardFinding } from '../mask/regex-chain.ts'
import type { StreamAudits } from '../mask/stream-audits.ts'
import type { StreamGuard } from '../mask/stream-guard.ts'
import { type Conversion, type ConversionOptions, errorEvents } from './conversion.ts'
import { PassingEvents } from './passing-events.ts'
import {
  conversionOf,
  decoderOf,
  isCutOff,
  openingBytes,
  openingOf,
  providerFraming,
} from './pipeline.ts'
import { clientText } from './provider-error.ts'

/** What audits of a stream need, whatever they belong to. */
type Audits = Pick<StreamAudits<unknown>, 'push' | 'pushSpan' | 'end'>

interface StreamOptions extends ConversionOptions {
  /** Masks the client's events; undefined if no guard reads them. */
  readonly guard?: StreamGuard | undefined
  /** Reads the client's events before they are masked; undefined if no audit reads them. */
  readonly audits?: Audits | undefined
  /** How the events are framed; as the request says if omitted. */
  readonly framing?: Framing | undefined
}

export class ModelResponseStream implements BodyTransform {
  readonly #options: StreamOptions
  readonly #audits: Audits | undefined
  /** Decodes events, or passes their bytes on if nothing changes them. */
  readonly #source: EventDecoder | PassingEvents
  readonly #conversion: Conversion
  readonly #guard: StreamGuard | undefined
  /** Reads the guarded events for `onEvent`, and to frame them. */
  readonly #guarded: SseDecoder | undefined
  /** Frames the events; undefined for server-sent events. */
  readonly #encoder: EventEncoder | undefined
  /** The first bytes of the response; undefined after the first event. */
  #opening: Buffer | undefined = Buffer.alloc(0)
  isOver = false
  /** Whether the response has ended with an error, or was cut off. */
  hasFailed = false

  constructor(options: StreamOptions) {
    const { request, guard, eventLimit, onEvent } = options
    this.#options = options
    this.#audits = options.audits
    this.#conversion = conversionOf(options)
    const framing = options.framing ?? request.framing ?? 'sse'
    if (framing !== 'sse') this.#encoder = eventEncoder(framing)
    const isRead =
      request.translation !== undefined ||
      this.#encoder !== undefined ||
      providerFraming(request) !== 'sse'
    this.#source = isRead ? decoderOf(options) : new PassingEvents(eventLimit, this.#conversion)
    this.#guard = guard
    if (guard !== undefined && (onEvent !== undefined || this.#encoder !== undefined)) {
      this.#guarded = new SseDecoder(Number.POSITIVE_INFINITY)
    }
  }

  /** What each guard has found so far; empty if there are no guards. */
  get findings(): readonly (GuardFinding | undefined)[] {
    return this.#guard?.findings ?? []
  }

  relay(bytes: Buffer, start: number, end: number): OmittedBytes | undefined {
    if (this.#guard !== undefined) return undefined
    const omitted = this.#relay(bytes, start, end)
    if (omitted !== undefined) this.#audits?.pushSpan(bytes, start, omitted, end)
    return omitted
  }

  rewrite(bytes: Buffer, start: number, end: number): ByteSpan | undefined {
    const guard = this.#guard
    const omitted = guard && this.#relay(bytes, start, end)
    if (guard === undefined || omitted === undefined) return undefined
    this.#audits?.pushSpan(bytes, start, omitted, end)
    try {
      return guard.pushSpan(bytes, start, omitted, end)
    } catch (error) {
      const last = Buffer.from(this.#failed(error))
      return { bytes: last, start: 0, end: last.length }
    }
  }

  push(chunk: Uint8Array, emit: (bytes: Uint8Array) => void): void {
    if (this.isOver) return
    try {
      if (this.#source instanceof PassingEvents) {
        this.#source.push(
          chunk,
          (event) => this.#convert(event),
          (bytes) => this.#emit(bytes, emit),
        )
      } else this.#translate(this.#source, chunk, emit)
      this.#keepOpening(chunk)
    } catch (error) {
      this.#abort(error, emit)
    }
  }

  end(emit: (bytes: Uint8Array) => void): void {
    this.#finish(false, emit)
  }

  fail(emit: (bytes: Uint8Array) => void): void {
    this.#finish(true, emit)
  }

  /** Ends the stream at once and releases memory of the core. Idempotent. */
  dispose(): void {
    this.isOver = true
    this.#guard?.dispose()
    this.#audits?.end()
  }

  #relay(bytes: Buffer, start: number, end: number): OmittedBytes | undefined {
    if (this.isOver || !(this.#source instanceof PassingEvents)) return undefined
    return this.#source.relay(bytes, start, end)
  }

  /** Writes the events before an error, too. */
  #translate(source: EventDecoder, chunk: Uint8Array, emit: (bytes: Uint8Array) => void): void {
    const events: StreamEvent[] = []
    let failure: { readonly error: unknown } | undefined
    try {
      source.push(chunk, (event) => appendAll(events, this.#convert(event)))
    } catch (error) {
      failure = { error }
    }
    this.#write(events, emit)
    if (failure !== undefined) throw failure.error
  }

  #finish(isCut: boolean, emit: (bytes: Uint8Array) => void): void {
    const { missingEnd } = this.#source
    if (!isCut && missingEnd !== undefined) this.push(missingEnd, emit)
    if (this.isOver) return
    this.isOver = true
    const conversion = this.#conversion
    try {
      const text = openingOf(this.#options.request, this.#opening ?? Buffer.alloc(0))
      const isBroken = isCut || isCutOff(this.#source, conversion)
      this.hasFailed ||= isBroken
      const last = conversion.finish(isBroken, text)
      if (this.#source instanceof PassingEvents) {
        this.#source.finish(last.length > 0, (bytes) => this.#emit(bytes, emit))
      }
      this.#report(last)
      this.#write(last, emit)
      if (this.#guard !== undefined) this.#emitGuarded(this.#guard.end(), emit)
      if (this.#encoder !== undefined) emit(this.#encoder.end())
    } catch (error) {
      this.#abort(error, emit)
    } finally {
      this.#guard?.dispose()
      this.#audits?.end()
    }
  }

  /** Keeps the first bytes for the error of a response without events. */
  #keepOpening(chunk: Uint8Array): void {
    const kept = this.#opening
    if (kept === undefined || kept.length >= openingBytes) return
    this.#opening = Buffer.concat([kept, chunk.subarray(0, openingBytes - kept.length)])
  }

  /** Returns the client's events for an event of the provider. */
  #convert(event: StreamEvent): readonly StreamEvent[] {
    this.#opening = undefined
    const events = this.#conversion.convert(event)
    this.#report(events)
    return events
  }

  /** Reports events for expressions, unless guards may change them. */
  #report(events: readonly StreamEvent[]): void {
    const { onEvent } = this.#options
    if (onEvent === undefined || this.#guard !== undefined) return
    for (const event of events) onEvent(event)
  }

  #write(events: readonly StreamEvent[], emit: (bytes: Uint8Array) => void): void {
    if (events.length === 0) return
    if (this.#encoder === undefined || this.#guard !== undefined) {
      this.#emit(eventBytes(events), emit)
    } else {
      this.#audits?.push(eventBytes(events))
      emit(this.#encoder.encode(events))
    }
  }

  /** Sends bytes to the client, through the guards if there are any. */
  #emit(bytes: Uint8Array, emit: (bytes: Uint8Array) => void): void {
    this.#audits?.push(bytes)
    if (this.#guard === undefined) emit(bytes)
    else this.#emitGuarded(this.#guard.push(bytes), emit)
  }

  #emitGuarded(bytes: Uint8Array, emit: (bytes: Uint8Array) => void): void {
    if (bytes.length === 0) return
    const encoder = this.#encoder
    const events: StreamEvent[] = []
    this.#guarded?.push(bytes, (event) => {
      this.#options.onEvent?.(event)
      if (encoder !== undefined) events.push(event)
    })
    emit(encoder === undefined ? bytes : encoder.encode(events))
  }

  /** Ends the response with an error. */
  #abort(error: unknown, emit: (bytes: Uint8Array) => void): void {
    emit(this.#failed(error))
  }

  /** Returns the error event, and the events before it that are guarded already. */
  #failed(error: unknown): Uint8Array {
    this.isOver = true
    this.hasFailed = true
    if (!(error instanceof LlmError)) throw error
    const { status } = error
    const message = clientText(error, this.#options.isProtected)
    const guarded = this.#guard?.fail(error)
    this.#guard?.dispose()
    const encoder = this.#encoder
    if (encoder === undefined) {
      return guarded ?? eventBytes(errorEvents(this.#options, { status, message }))
    }
    const pieces: Uint8Array[] = []
    const add = (bytes: Uint8Array) => void pieces.push(bytes)
    if (guarded === undefined) {
      add(encoder.encode(errorEvents(this.#options, { status, message })))
    } else this.#emitGuarded(guarded, add)
    add(encoder.end())
    return Buffer.concat(pieces)
  }
}
