/** Converts streamed responses of providers that have the format of the client. */
import type { OmittedBytes } from '../../../ground/exchange/exchange.ts'
import type { StreamEvent } from '../chat.ts'
import type { EventDetails } from '../common/response-details.ts'
import { chatFormatOf, type EventCorrection } from '../format.ts'
import { readException } from '../formats/converse/stream.ts'
import { clientFormats } from '../formats/index.ts'
import { isObject, type JsonObject, parseJson, stringAt } from '../json/json.ts'
import {
  type Conversion,
  type ConversionOptions,
  errorEvents,
  errorInPlace,
  type ReplacedBytes,
} from './conversion.ts'
import { EventTemplate } from './event-template.ts'

const chatEvents = Object.values(clientFormats).flatMap(
  (format) => chatFormatOf(format)?.events ?? [],
)
/** Types of events that end a stream in any format. */
const lastTypes: ReadonlySet<string> = new Set(chatEvents.flatMap((events) => events.lastTypes))
const otherEnds = chatEvents.flatMap(({ isLast }) => isLast ?? [])

export class NativeConversion implements Conversion {
  readonly #options: ConversionOptions
  readonly #correction: EventCorrection | undefined
  readonly #template: EventTemplate
  readonly #details: EventDetails
  hasEnded = false

  constructor(options: ConversionOptions) {
    this.#options = options
    this.#correction = options.format.events.correction?.()
    this.#template = new EventTemplate(options.isGuarded === true)
    this.#details = options.format.events.details()
  }

  convert(event: StreamEvent): readonly StreamEvent[] {
    if (event.data === '[DONE]') {
      this.hasEnded = true
      return [event]
    }
    const exception = readException(event)
    if (exception !== undefined) {
      this.hasEnded = true
      return errorEvents(this.#options, exception)
    }
    const parsed = parseJson(event.data)
    if (!isObject(parsed)) return this.#convertOther(event)
    const { format, onDetails, onContent } = this.#options
    const pieces = format.events.contentOf(parsed)
    for (const piece of pieces) onContent(Buffer.byteLength(piece))
    const details = this.#details.read(parsed)
    if (details.usage !== undefined || details.model !== undefined) onDetails(details)
    const ends = isEnd(parsed)
    if (ends) this.hasEnded = true
    if (format.events.isForeignError(parsed, event.event)) return this.#error(event.data)
    const corrected = this.#named(this.#correction?.correct(parsed) ?? parsed)
    const written = this.#write(event, parsed, corrected)
    const [content] = pieces
    if (content !== undefined && pieces.length === 1 && !ends && details.usage === undefined) {
      this.#learn(event, parsed, content, written)
    }
    return this.#options.isGuarded === true ? written.map(writtenAgain) : written
  }

  #named(event: JsonObject): JsonObject {
    const { request, format } = this.#options
    const { asked, seal } = request
    const named = asked === undefined ? event : format.events.withModel(event, asked)
    return seal === undefined ? named : (format.stored?.sealEvent?.(named, seal) ?? named)
  }

  #write(event: StreamEvent, parsed: JsonObject, corrected: JsonObject): readonly StreamEvent[] {
    const { request, format } = this.#options
    if (request.hidesUsage && format.completion !== undefined) {
      return format.completion.withoutUsage(event, parsed, corrected)
    }
    return corrected === parsed ? [event] : [{ ...event, data: JSON.stringify(corrected) }]
  }

  /** Pieces of tool calls are always parsed, because each may change the indexes of later ones. */
  #learn(
    event: StreamEvent,
    parsed: JsonObject,
    content: string,
    written: readonly StreamEvent[],
  ): void {
    const data = written[0]?.data
    if (data === undefined || event.data.includes('"tool_calls"')) return
    if (this.#options.isGuarded === true && !isPlain(event.data, parsed)) return
    this.#template.learn(event.event, event.data, parsed, content, data)
  }

  relay(bytes: Buffer, start: number, end: number, type: string): ReplacedBytes | undefined {
    return this.#relayed(this.#template.matches(bytes, start, end, type))
  }

  relayEvent(bytes: Buffer, start: number, end: number): OmittedBytes | undefined {
    if (this.#template.replacement.length > 0) return undefined
    return this.#relayed(this.#template.matchesEvent(bytes, start, end))
  }

  #relayed(isKnown: boolean): ReplacedBytes | undefined {
    const { onContent, onEvent } = this.#options
    if (onEvent !== undefined || !isKnown) return undefined
    onContent(this.#template.contentBytes)
    return this.#template
  }

  finish(isCut: boolean, text: string): readonly StreamEvent[] {
    const { format } = this.#options
    if (this.hasEnded && (!isCut || !format.events.endsWithDone)) return []
    return errorEvents(this.#options, errorInPlace(this.#options, text))
  }

  /** Handles data that is not a JSON object: an HTML page is an error; other data is passed on. */
  #convertOther(event: StreamEvent): readonly StreamEvent[] {
    return /^\s*</.test(event.data) ? this.#error(event.data) : [event]
  }

  /** Converts an error of a proxy in front of the provider to the client's format. */
  #error(text: string): readonly StreamEvent[] {
    this.hasEnded = true
    return errorEvents(this.#options, errorInPlace(this.#options, text))
  }
}

/**
 * Guards read an event as a parser reads it: if a field occurs twice, the last one counts. The client must
 * get the same event.
 */
function writtenAgain({ event, data }: StreamEvent): StreamEvent {
  const parsed = parseJson(data)
  return { event, data: isObject(parsed) ? JSON.stringify(parsed) : data }
}

/** Whether the data is what is written for the parsed event, except for white space. */
const isPlain = (data: string, parsed: JsonObject): boolean =>
  withoutSpace(data) === withoutSpace(JSON.stringify(parsed))

const withoutSpace = (text: string): string => text.replaceAll(/\s+/g, '')

function isEnd(event: JsonObject): boolean {
  if (event.error != null || lastTypes.has(stringAt(event, 'type') ?? '')) return true
  for (const isLast of otherEnds) if (isLast(event)) return true
  return false
}
