/**
 * Streamed answers on their way to the client: taken out of their frames, translated where the
 * provider speaks another format, masked, and framed again. What a provider cuts off ends with an
 * error in the client's format, never with an end that looks like a good one.
 */
import type { Mask } from '../../../core/index.ts'
import type { BodyTransform } from '../../../exchange/exchange.ts'
import type { AnswerReader, AnswerWriter, EventDecoder, StreamEvent } from '../chat.ts'
import { type ChatFormat, clientFormats } from '../client-formats.ts'
import { EventStreamDecoder } from '../formats/event-stream.ts'
import { SseDecoder, writeSse } from '../formats/sse.ts'
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
import { chatFormatOf, type OutgoingRequest } from './request.ts'

interface StreamOptions extends ConversionOptions {
  /** Masks of response guards, in order. */
  readonly masks: readonly Mask[]
  /** Bytes that masks may hold back. */
  readonly maskLimit: number
}

/**
 * All events of a streamed answer that has come whole, as the client is to get them.
 * @throws LlmError 502 where they cannot be read.
 */
export function convertEvents(options: ConversionOptions, bytes: Uint8Array): StreamEvent[] {
  const decoder = decoderOf(options)
  const format = chatFormatOf(options.request.route) ?? 'Completions'
  const conversion = conversionOf(options, format)
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

/** Bytes of what comes in place of events that are kept. */
const openingBytes = 4_096

/** What came in place of events; empty if it is the beginning of an event. */
function openingOf({ translation }: OutgoingRequest, bytes: Uint8Array): string {
  if (translation?.framing === 'event-stream') return ''
  const text = Buffer.from(bytes.subarray(0, openingBytes)).toString('utf8')
  return /^\s*(?:data|event|id|retry)?:/.test(text) ? '' : text
}

/** The bytes have ended within an event, before the answer was complete. */
const isCutOff = (decoder: Pick<EventDecoder, 'isInside'>, conversion: Conversion): boolean =>
  decoder.isInside && !conversion.hasEnded

function conversionOf(options: ConversionOptions, format: ChatFormat): Conversion {
  const { translation } = options.request
  return translation === undefined
    ? new NativeConversion(options, format)
    : new TranslatedConversion(translation.reader(), options, format)
}

export class AnswerStream implements BodyTransform {
  readonly #options: StreamOptions
  /** Events are read and written anew, or pass as they came where nothing changes them. */
  readonly #source: EventDecoder | PassingEvents
  readonly #conversion: Conversion
  readonly #masker: StreamMasker | undefined
  /** What has come so far; undefined once there was an event. */
  #opening: Buffer | undefined = Buffer.alloc(0)
  isOver = false

  constructor(options: StreamOptions) {
    const { request, masks, maskLimit, eventLimit } = options
    const format = chatFormatOf(request.route) ?? 'Completions'
    const isRead = request.translation !== undefined || masks.length > 0
    this.#options = options
    this.#source = isRead ? decoderOf(options) : new PassingEvents(eventLimit)
    this.#conversion = conversionOf(options, format)
    this.#masker = masks.length === 0 ? undefined : new StreamMasker(masks, format, maskLimit)
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
      this.#breakOff(error, emit)
    }
  }

  end(emit: (bytes: Uint8Array) => void): void {
    this.#finish(false, emit)
  }

  fail(emit: (bytes: Uint8Array) => void): void {
    this.#finish(true, emit)
  }

  /** Gives the core its memory back, wherever the answer stands; nothing comes out any more. Idempotent. */
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
      this.#tell(events)
      write(events, emit)
    } catch (error) {
      this.#breakOff(error, emit)
    } finally {
      this.#masker?.dispose()
    }
  }

  /** Where no event comes at all, an error repeats what did. */
  #keepOpening(chunk: Uint8Array): void {
    const kept = this.#opening
    if (kept === undefined || kept.length >= openingBytes) return
    this.#opening = Buffer.concat([kept, chunk.subarray(0, openingBytes - kept.length)])
  }

  /** What the client gets of an event of the provider. */
  #convert(event: StreamEvent): readonly StreamEvent[] {
    this.#opening = undefined
    const converted = this.#conversion.convert(event)
    const events =
      this.#masker === undefined ? converted : converted.flatMap((one) => this.#mask(one))
    this.#tell(events)
    return events
  }

  #mask(event: StreamEvent): readonly StreamEvent[] {
    return this.#masker?.push(event) ?? [event]
  }

  #tell(events: readonly StreamEvent[]): void {
    const { onEvent } = this.#options
    if (onEvent !== undefined) for (const event of events) onEvent(event)
  }

  /** The answer cannot be gone on with: the client gets an error, and nothing else. */
  #breakOff(error: unknown, emit: (bytes: Uint8Array) => void): void {
    if (!(error instanceof LlmError)) throw error
    this.isOver = true
    const { request, context } = this.#options
    const format = chatFormatOf(request.route) ?? 'Completions'
    write(errorEvents(format, { status: error.status, message: error.message }, context), emit)
    this.#masker?.dispose()
  }
}

/** Events as bytes of the client's stream. */
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
  #isClean = false
  #hasFailed = false

  get hasEnded(): boolean {
    return this.#isClean
  }

  constructor(reader: AnswerReader, options: ConversionOptions, format: ChatFormat) {
    this.#reader = reader
    this.#options = options
    this.#writer = clientFormats[format].writer(options.clientBody, options.context)
  }

  convert(event: StreamEvent): readonly StreamEvent[] {
    if (isPlainText(event.data)) throw unreadable(event.data)
    return this.#write(this.#reader.read(event))
  }

  finish(isCut: boolean, text: string): readonly StreamEvent[] {
    const last = isCut ? [] : this.#write(this.#reader.finish())
    if (this.#hasFailed) return last
    if (isCut || !this.#isClean) {
      const error = errorInPlace(this.#options.request, text)
      return [...last, ...this.#writer.write({ type: 'error', error })]
    }
    return [...last, ...this.#writer.finish(true)]
  }

  #write(events: ReturnType<AnswerReader['read']>): readonly StreamEvent[] {
    const { onFacts, onContent } = this.#options
    return events.flatMap((event) => {
      switch (event.type) {
        case 'start':
          onFacts({ model: event.model, ...(event.usage && { usage: event.usage }) })
          break
        case 'usage':
          onFacts({ usage: event.usage })
          break
        case 'end':
          this.#isClean = true
          break
        case 'error':
          this.#hasFailed = true
          break
        case 'text':
        case 'thinking':
          onContent(event.text)
          break
        case 'tool-input':
          onContent(event.json)
          break
        default:
          break
      }
      return this.#writer.write(event)
    })
  }
}
