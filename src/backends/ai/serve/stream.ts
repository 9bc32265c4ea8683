/**
 * Converts streamed answers for the client: decodes events, translates them if the provider has
 * another format, masks them, and encodes them. An answer that was cut off ends with an error in
 * the client's format, never like a complete one.
 */
import type { Mask } from '../../../core/index.ts'
import type { BodyTransform, OmittedBytes } from '../../../exchange/exchange.ts'
import type { AnswerReader, AnswerWriter, EventDecoder, StreamEvent } from '../chat.ts'
import { clientFormats } from '../client-formats.ts'
import { EventStreamDecoder } from '../formats/event-stream.ts'
import { SseDecoder, writeSse } from '../formats/sse.ts'
import type { OnMatch } from '../guards/match-counts.ts'
import { StreamMasker } from '../guards/stream-mask.ts'
import { LlmError } from '../llm-error.ts'
import {
  type Conversion,
  type ConversionOptions,
  errorEvents,
  errorInPlace,
  isPlainText,
} from './conversion.ts'
import { NativeConversion } from './native-conversion.ts'
import { PassingEvents } from './passing-events.ts'
import { unreadable } from './provider-error.ts'
import type { OutgoingRequest } from './request.ts'

interface StreamOptions extends ConversionOptions {
  /** The masks of response guards, in order. */
  readonly masks: readonly Mask[]
  /** Receives the matches of the masks. */
  readonly onMatch: OnMatch | undefined
  /** Maximum number of bytes that masks may hold back. */
  readonly maskLimit: number
}

/** Returns the client's events for a whole streamed answer. @throws LlmError 502 if it cannot be read. */
export function convertEvents(options: ConversionOptions, bytes: Uint8Array): StreamEvent[] {
  const decoder = decoderOf(options)
  const conversion = conversionOf(options)
  const converted: StreamEvent[] = []
  decoder.push(bytes, (event) => void converted.push(...conversion.convert(event)))
  const text = converted.length === 0 ? openingOf(options.request, bytes) : ''
  return [...converted, ...conversion.finish(isCutOff(decoder, conversion), text)]
}

function decoderOf({ request, eventLimit }: ConversionOptions): EventDecoder {
  return request.translation?.framing === 'event-stream'
    ? new EventStreamDecoder(eventLimit)
    : new SseDecoder(eventLimit)
}

/** Maximum number of bytes to keep of an answer without events. */
const openingBytes = 4_096

/** Returns the text that came instead of events; empty if an event began. */
function openingOf({ translation }: OutgoingRequest, bytes: Uint8Array): string {
  if (translation?.framing === 'event-stream') return ''
  const text = Buffer.from(bytes.subarray(0, openingBytes)).toString('utf8')
  return /^\s*(?:data|event|id|retry)?:/.test(text) ? '' : text
}

/** Returns true if the bytes ended inside an event before the answer was complete. */
const isCutOff = (decoder: Pick<EventDecoder, 'isInside'>, conversion: Conversion): boolean =>
  decoder.isInside && !conversion.hasEnded

function conversionOf(options: ConversionOptions): Conversion {
  const { translation } = options.request
  return translation === undefined
    ? new NativeConversion(options)
    : new TranslatedConversion(translation.reader(), options)
}

export class AnswerStream implements BodyTransform {
  readonly #options: StreamOptions
  /** Decodes events, or passes their bytes on if nothing changes them. */
  readonly #source: EventDecoder | PassingEvents
  readonly #conversion: Conversion
  readonly #masker: StreamMasker | undefined
  /** The first bytes of the answer; undefined after the first event. */
  #opening: Buffer | undefined = Buffer.alloc(0)
  isOver = false

  constructor(options: StreamOptions) {
    const { request, format, masks, maskLimit, onMatch, eventLimit } = options
    const isRead = request.translation !== undefined || masks.length > 0
    this.#options = options
    this.#conversion = conversionOf(options)
    this.#source = isRead ? decoderOf(options) : new PassingEvents(eventLimit, this.#conversion)
    if (masks.length > 0) this.#masker = new StreamMasker(masks, format, maskLimit, onMatch)
  }

  relay(bytes: Buffer, start: number, end: number): OmittedBytes | undefined {
    if (this.isOver || !(this.#source instanceof PassingEvents)) return undefined
    return this.#source.relay(bytes, start, end)
  }

  push(chunk: Uint8Array, emit: (bytes: Uint8Array) => void): void {
    if (this.isOver) return
    if (this.#source instanceof PassingEvents) {
      this.#source.push(chunk, (event) => this.#convert(event), emit)
      this.#keepOpening(chunk)
      return
    }
    const events: StreamEvent[] = []
    try {
      this.#source.push(chunk, (event) => void events.push(...this.#convert(event)))
      this.#keepOpening(chunk)
      write(events, emit)
    } catch (error) {
      write(events, emit)
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
    this.#masker?.dispose()
  }

  #finish(isCut: boolean, emit: (bytes: Uint8Array) => void): void {
    if (this.isOver) return
    this.isOver = true
    const conversion = this.#conversion
    try {
      const text = openingOf(this.#options.request, this.#opening ?? Buffer.alloc(0))
      const last = conversion.finish(isCut || isCutOff(this.#source, conversion), text)
      if (this.#source instanceof PassingEvents) this.#source.finish(last.length > 0, emit)
      const events = last.flatMap((event) => this.#mask(event))
      if (this.#masker !== undefined) events.push(...this.#masker.finish())
      this.#report(events)
      write(events, emit)
    } catch (error) {
      this.#abort(error, emit)
    } finally {
      this.#masker?.dispose()
    }
  }

  /** Keeps the first bytes for the error of an answer without events. */
  #keepOpening(chunk: Uint8Array): void {
    const kept = this.#opening
    if (kept === undefined || kept.length >= openingBytes) return
    this.#opening = Buffer.concat([kept, chunk.subarray(0, openingBytes - kept.length)])
  }

  /** Returns the client's events for an event of the provider. */
  #convert(event: StreamEvent): readonly StreamEvent[] {
    this.#opening = undefined
    const converted = this.#conversion.convert(event)
    const events =
      this.#masker === undefined ? converted : converted.flatMap((one) => this.#mask(one))
    this.#report(events)
    return events
  }

  #mask(event: StreamEvent): readonly StreamEvent[] {
    return this.#masker?.push(event) ?? [event]
  }

  #report(events: readonly StreamEvent[]): void {
    const { onEvent } = this.#options
    if (onEvent !== undefined) for (const event of events) onEvent(event)
  }

  /** Ends the answer with an error. */
  #abort(error: unknown, emit: (bytes: Uint8Array) => void): void {
    if (!(error instanceof LlmError)) throw error
    this.isOver = true
    const { status, message } = error
    write(errorEvents(this.#options, { status, message }), emit)
    this.#masker?.dispose()
  }
}

export function eventBytes(events: readonly StreamEvent[]): Uint8Array {
  return Buffer.from(events.map(writeSse).join(''))
}

function write(events: readonly StreamEvent[], emit: (bytes: Uint8Array) => void): void {
  if (events.length > 0) emit(eventBytes(events))
}

class TranslatedConversion implements Conversion {
  readonly #reader: AnswerReader
  readonly #writer: AnswerWriter
  readonly #options: ConversionOptions
  #hasFailed = false
  hasEnded = false

  constructor(reader: AnswerReader, options: ConversionOptions) {
    this.#reader = reader
    this.#options = options
    this.#writer = clientFormats[options.format].writer(options.clientBody, options.context)
  }

  convert(event: StreamEvent): readonly StreamEvent[] {
    if (isPlainText(event.data)) throw unreadable(event.data)
    return this.#write(this.#reader.read(event))
  }

  finish(isCut: boolean, text: string): readonly StreamEvent[] {
    const last = isCut ? [] : this.#write(this.#reader.finish())
    if (this.#hasFailed) return last
    if (isCut || !this.hasEnded) {
      const error = errorInPlace(this.#options.request, text)
      return [...last, ...this.#writer.write({ type: 'error', error })]
    }
    return [...last, ...this.#writer.finish(true)]
  }

  #write(events: ReturnType<AnswerReader['read']>): readonly StreamEvent[] {
    const { onDetails, onContent } = this.#options
    return events.flatMap((event) => {
      switch (event.type) {
        case 'start':
          onDetails({ model: event.model, ...(event.usage && { usage: event.usage }) })
          break
        case 'usage':
          onDetails({ usage: event.usage })
          break
        case 'end':
          this.hasEnded = true
          break
        case 'error':
          this.#hasFailed = true
          break
        case 'text':
        case 'thinking':
          onContent(Buffer.byteLength(event.text))
          break
        case 'tool-input':
          onContent(Buffer.byteLength(event.json))
          break
        default:
          break
      }
      return this.#writer.write(event)
    })
  }
}
