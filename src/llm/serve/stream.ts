/**
 * Streamed answers on their way to the client: taken out of their frames, translated where the
 * provider speaks another format, masked, and framed again. What a provider cuts off ends with an
 * error in the client's format, never with an end that looks like a good one.
 */

import type { Mask } from '../../core/index.ts'
import type { BodyTransform } from '../../exchange/exchange.ts'
import type { AnswerReader, AnswerWriter, ProviderError, StreamEvent } from '../chat.ts'
import { type AnswerContext, type ChatFormat, clientFormats } from '../client-formats.ts'
import { EventStreamDecoder } from '../formats/event-stream.ts'
import { SseDecoder, writeSse } from '../formats/sse.ts'
import { StreamMasker } from '../guards/stream-mask.ts'
import { isObject, type JsonObject, listAt, objectAt, parseJson, stringAt } from '../json.ts'
import { LlmError } from '../llm-error.ts'
import type { OutgoingRequest } from './request.ts'
import { chatFormatOf } from './request.ts'
import { type AnswerFacts, factsOfEvent } from './usage.ts'

export interface ConversionOptions {
  readonly request: OutgoingRequest
  /** The body of the client. */
  readonly clientBody: JsonObject
  /** Bytes that one event may have, and that masks may hold back. */
  readonly limit: number
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
}

/**
 * All events of a streamed answer that has come whole, as the client is to get them.
 * @throws LlmError 502 where they cannot be read.
 */
export function convertEvents(options: ConversionOptions, bytes: Uint8Array): StreamEvent[] {
  const decoder = decoderOf(options)
  const format = chatFormatOf(options.request.route) ?? 'Completions'
  const conversion = conversionOf(options, format)
  const events = decoder.push(bytes)
  if (decoder instanceof SseDecoder) events.push(...decoder.finish())
  const converted = events.flatMap((event) => conversion.convert(event))
  return [...converted, ...conversion.finish(decoder.isInside)]
}

function decoderOf({ request, limit }: ConversionOptions): SseDecoder | EventStreamDecoder {
  return request.translation?.framing === 'event-stream'
    ? new EventStreamDecoder(limit)
    : new SseDecoder(limit)
}

function conversionOf(options: ConversionOptions, format: ChatFormat): Conversion {
  const { translation } = options.request
  return translation === undefined
    ? new NativeConversion(options, format)
    : new TranslatedConversion(translation.reader(), options, format)
}

/** Events of the provider -> events of the client. */
interface Conversion {
  convert(event: StreamEvent): readonly StreamEvent[]
  /** `isCut`: the provider has gone in the middle. */
  finish(isCut: boolean): readonly StreamEvent[]
}

export class AnswerStream implements BodyTransform {
  readonly #options: StreamOptions
  readonly #decoder: SseDecoder | EventStreamDecoder
  readonly #conversion: Conversion
  readonly #masker: StreamMasker | undefined
  /** The provider's bytes go on as they are; events are only looked at. */
  readonly #isVerbatim: boolean
  #isOver = false

  constructor(options: StreamOptions) {
    const { request, masks, limit } = options
    const { translation, hidesUsage } = request
    this.#options = options
    this.#decoder = decoderOf(options)
    const format = chatFormatOf(request.route) ?? 'Completions'
    this.#conversion = conversionOf(options, format)
    this.#masker = masks.length === 0 ? undefined : new StreamMasker(masks, format, limit)
    this.#isVerbatim = translation === undefined && masks.length === 0 && !hidesUsage
  }

  push(chunk: Uint8Array, emit: (bytes: Uint8Array) => void): void {
    if (this.#isOver) return
    try {
      const events = this.#decoder.push(chunk).flatMap((event) => this.#conversion.convert(event))
      if (this.#isVerbatim) {
        emit(chunk)
        this.#tell(events)
      } else this.#emit(events, emit)
    } catch (error) {
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
    this.#isOver = true
    this.#masker?.dispose()
  }

  #finish(isCut: boolean, emit: (bytes: Uint8Array) => void): void {
    if (this.#isOver) return
    this.#isOver = true
    try {
      const rest = this.#decoder instanceof SseDecoder && !isCut ? this.#decoder.finish() : []
      const events = rest.flatMap((event) => this.#conversion.convert(event))
      const last = this.#conversion.finish(isCut || this.#decoder.isInside)
      // Half an event of the provider is on its way already: an empty line ends it.
      if (this.#isVerbatim && last.length > 0 && this.#decoder.isInside) emit(Buffer.from('\n\n'))
      this.#emit(this.#isVerbatim ? last : [...events, ...last], emit)
      if (this.#masker !== undefined) this.#write(this.#masker.finish(), emit)
    } catch (error) {
      this.#breakOff(error, emit)
    } finally {
      this.#masker?.dispose()
    }
  }

  #emit(events: readonly StreamEvent[], emit: (bytes: Uint8Array) => void): void {
    const masker = this.#masker
    this.#write(masker === undefined ? events : events.flatMap((event) => masker.push(event)), emit)
  }

  #write(events: readonly StreamEvent[], emit: (bytes: Uint8Array) => void): void {
    this.#tell(events)
    write(events, emit)
  }

  #tell(events: readonly StreamEvent[]): void {
    const { onEvent } = this.#options
    if (onEvent !== undefined) for (const event of events) onEvent(event)
  }

  /** The answer cannot be gone on with: the client is told, and hears nothing else. */
  #breakOff(error: unknown, emit: (bytes: Uint8Array) => void): void {
    if (!(error instanceof LlmError)) throw error
    this.#isOver = true
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
  #hasEnded = false

  constructor(options: ConversionOptions, format: ChatFormat) {
    this.#options = options
    this.#format = format
  }

  convert(event: StreamEvent): readonly StreamEvent[] {
    if (event.data === '[DONE]') {
      this.#hasEnded = true
      return [event]
    }
    const parsed = parseJson(event.data)
    if (!isObject(parsed)) return [event]
    const { request, onFacts, onContent } = this.#options
    for (const piece of contentOf(this.#format, parsed)) onContent(piece)
    const facts = factsOfEvent(request.route, parsed)
    if (facts.usage !== undefined || facts.model !== undefined) onFacts(facts)
    if (terminalTypes.has(stringAt(parsed, 'type') ?? '') || parsed.error != null) {
      this.#hasEnded = true
    }
    if (
      listAt(parsed, 'choices').some((choice) => isObject(choice) && choice.finish_reason != null)
    ) {
      this.#hasEnded = true
    }
    return request.hidesUsage ? withoutUsage(event, parsed) : [event]
  }

  finish(isCut: boolean): readonly StreamEvent[] {
    if (this.#hasEnded && !isCut) return []
    if (this.#hasEnded && this.#format !== 'Completions') return []
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
