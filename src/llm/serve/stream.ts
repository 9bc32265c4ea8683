/**
 * Streamed answers on their way to the client: taken out of their frames, translated where the
 * provider speaks another format, masked, and framed again. What a provider cuts off ends with an
 * error in the client's format, never with an end that looks like a good one.
 */

import type { Mask } from '../../core/index.ts'
import type { BodyTransform } from '../../exchange/exchange.ts'
import type {
  AnswerReader,
  AnswerWriter,
  EventDecoder,
  ProviderError,
  StreamEvent,
} from '../chat.ts'
import { type AnswerContext, type ChatFormat, clientFormats } from '../client-formats.ts'
import { EventStreamDecoder } from '../formats/event-stream.ts'
import { SseDecoder, writeSse } from '../formats/sse.ts'
import { StreamMasker } from '../guards/stream-mask.ts'
import { isObject, type JsonObject, listAt, objectAt, parseJson, stringAt } from '../json.ts'
import { LlmError } from '../llm-error.ts'
import { PassingEvents } from './passing-events.ts'
import type { OutgoingRequest } from './request.ts'
import { chatFormatOf } from './request.ts'
import { type AnswerFacts, factsOfEvent } from './usage.ts'

export interface ConversionOptions {
  readonly request: OutgoingRequest
  /** The body of the client. */
  readonly clientBody: JsonObject
  /** Bytes that one event may have if it is read; others pass whatever their size. */
  readonly eventLimit: number
  readonly context: AnswerContext
  /** Called for whatever is learned on the way. */
  onFacts(facts: AnswerFacts): void
  /** Called with every piece of the answer's content: texts, thoughts, arguments of tools. */
  onContent(piece: string): void
  /** Called with every event that the client gets, where somebody wants to know what it says. */
  readonly onEvent?: ((event: StreamEvent) => void) | undefined
}

export interface StreamOptions extends ConversionOptions {
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
  return [...converted, ...conversion.finish(isCutOff(decoder, conversion))]
}

function decoderOf({ request, eventLimit }: ConversionOptions): EventDecoder {
  return request.translation?.framing === 'event-stream'
    ? new EventStreamDecoder(eventLimit)
    : new SseDecoder(eventLimit)
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

/** Events of the provider -> events of the client. */
interface Conversion {
  /** The provider has said that the answer is complete. */
  readonly hasEnded: boolean
  convert(event: StreamEvent): readonly StreamEvent[]
  /** `isCut`: the provider has gone in the middle. */
  finish(isCut: boolean): readonly StreamEvent[]
}

export class AnswerStream implements BodyTransform {
  readonly #options: StreamOptions
  /** Events are read and written anew, or pass as they came where nothing changes them. */
  readonly #source: EventDecoder | PassingEvents
  readonly #conversion: Conversion
  readonly #masker: StreamMasker | undefined
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
      return
    }
    const events: StreamEvent[] = []
    try {
      this.#source.push(chunk, (event) => void events.push(...this.#convert(event)))
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
      const last = conversion.finish(isCut || isCutOff(this.#source, conversion))
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

  /** What the client gets of an event of the provider. */
  #convert(event: StreamEvent): readonly StreamEvent[] {
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

function errorEvents(
  format: ChatFormat,
  error: ProviderError,
  context: AnswerContext,
): readonly StreamEvent[] {
  return clientFormats[format].writer({}, context).write({ type: 'error', error })
}

const cutOff: ProviderError = { status: 502, message: 'the answer of the provider was cut off' }

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
    return this.#write(this.#reader.read(event))
  }

  finish(isCut: boolean): readonly StreamEvent[] {
    const last = isCut ? [] : this.#write(this.#reader.finish())
    if (this.#hasFailed) return last
    if (isCut || !this.#isClean)
      return [...last, ...this.#writer.write({ type: 'error', error: cutOff })]
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

/** Messages of the format that end a stream, well or badly. */
const terminalTypes = new Set([
  'message_stop',
  'error',
  'response.completed',
  'response.incomplete',
  'response.failed',
])

class NativeConversion implements Conversion {
  readonly #options: ConversionOptions
  readonly #format: ChatFormat
  hasEnded = false

  constructor(options: ConversionOptions, format: ChatFormat) {
    this.#options = options
    this.#format = format
  }

  convert(event: StreamEvent): readonly StreamEvent[] {
    if (event.data === '[DONE]') {
      this.hasEnded = true
      return [event]
    }
    const parsed = parseJson(event.data)
    if (!isObject(parsed)) return [event]
    const { request, onFacts, onContent } = this.#options
    for (const piece of contentOf(this.#format, parsed)) onContent(piece)
    const facts = factsOfEvent(request.route, parsed)
    if (facts.usage !== undefined || facts.model !== undefined) onFacts(facts)
    if (terminalTypes.has(stringAt(parsed, 'type') ?? '') || parsed.error != null) {
      this.hasEnded = true
    }
    if (
      listAt(parsed, 'choices').some((choice) => isObject(choice) && choice.finish_reason != null)
    ) {
      this.hasEnded = true
    }
    return request.hidesUsage ? withoutUsage(event, parsed) : [event]
  }

  finish(isCut: boolean): readonly StreamEvent[] {
    if (this.hasEnded && !isCut) return []
    if (this.hasEnded && this.#format !== 'Completions') return []
    return errorEvents(this.#format, cutOff, this.#options.context)
  }
}

/** The usage that nobody asked for: an event of its own, and an empty field of all others. */
function withoutUsage(event: StreamEvent, parsed: JsonObject): readonly StreamEvent[] {
  if (!('usage' in parsed)) return [event]
  if (listAt(parsed, 'choices').length === 0 && parsed.usage !== null) return []
  const { usage: _usage, ...rest } = parsed
  return [{ event: event.event, data: JSON.stringify(rest) }]
}

/** Pieces of content in one event. */
function contentOf(format: ChatFormat, event: JsonObject): string[] {
  const delta = objectAt(event, 'delta')
  switch (format) {
    case 'Completions':
      return listAt(event, 'choices').flatMap((choice) => {
        const piece = objectAt(choice, 'delta')
        const calls = listAt(piece, 'tool_calls').map((call) => objectAt(call, 'function'))
        return [
          ...textsAt(piece, ['content', 'refusal', 'reasoning_content']),
          ...calls.flatMap((call) => textsAt(call, ['name', 'arguments'])),
        ]
      })
    case 'Messages':
      return textsAt(delta, ['text', 'thinking', 'partial_json'])
    case 'Responses':
      return stringAt(event, 'type')?.endsWith('.delta') === true ? textsAt(event, ['delta']) : []
  }
}

function textsAt(value: unknown, names: readonly string[]): string[] {
  return names.flatMap((name) => stringAt(value, name) || [])
}
