/** Converts streamed answers of providers that have the format of the client. */
import type { OmittedBytes } from '../../../ground/exchange/exchange.ts'
import type { StreamEvent } from '../chat.ts'
import type { ChatFormat } from '../client-formats.ts'
import { EventCallIndexes } from '../formats/completions/call-indexes.ts'
import { isObject, type JsonObject, listAt, objectAt, parseJson, stringAt } from '../json/json.ts'
import { type Conversion, type ConversionOptions, errorEvents, errorInPlace } from './conversion.ts'
import { EventTemplate } from './event-template.ts'
import { EventDetails } from './usage.ts'

/** Types of events that end a stream. */
const terminalTypes = new Set([
  'message_stop',
  'error',
  'response.completed',
  'response.incomplete',
  'response.failed',
])

export class NativeConversion implements Conversion {
  readonly #options: ConversionOptions
  readonly #callIndexes = new EventCallIndexes()
  readonly #template: EventTemplate
  readonly #details: EventDetails
  hasEnded = false

  constructor(options: ConversionOptions) {
    this.#options = options
    this.#template = new EventTemplate(options.isGuarded === true)
    this.#details = new EventDetails(options.request.route)
  }

  convert(event: StreamEvent): readonly StreamEvent[] {
    if (event.data === '[DONE]') {
      this.hasEnded = true
      return [event]
    }
    const parsed = parseJson(event.data)
    if (!isObject(parsed)) return this.#convertOther(event)
    const { format, onDetails, onContent } = this.#options
    const pieces = contentOf(format, parsed)
    for (const piece of pieces) onContent(Buffer.byteLength(piece))
    const details = this.#details.read(parsed)
    if (details.usage !== undefined || details.model !== undefined) onDetails(details)
    const ends = isEnd(parsed)
    if (ends) this.hasEnded = true
    if (isForeignError(format, event, parsed)) return this.#error(event.data)
    const corrected = this.#callIndexes.correct(parsed)
    const written = this.#write(event, parsed, corrected)
    const [content] = pieces
    if (content !== undefined && pieces.length === 1 && !ends && details.usage === undefined) {
      this.#learn(event, parsed, content, written)
    }
    return this.#options.isGuarded === true ? written.map(writtenAgain) : written
  }

  #write(event: StreamEvent, parsed: JsonObject, corrected: JsonObject): readonly StreamEvent[] {
    if (this.#options.request.hidesUsage) return withoutUsage(event, parsed, corrected)
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

  relay(bytes: Buffer, start: number, end: number, type: string): OmittedBytes | undefined {
    return this.#relayed(this.#template.matches(bytes, start, end, type))
  }

  relayEvent(bytes: Buffer, start: number, end: number): OmittedBytes | undefined {
    return this.#relayed(this.#template.matchesEvent(bytes, start, end))
  }

  #relayed(isKnown: boolean): OmittedBytes | undefined {
    const { onContent, onEvent } = this.#options
    if (onEvent !== undefined || !isKnown) return undefined
    onContent(this.#template.contentBytes)
    return this.#template
  }

  finish(isCut: boolean, text: string): readonly StreamEvent[] {
    const { format } = this.#options
    if (this.hasEnded && (!isCut || format !== 'Completions')) return []
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

const isEnd = (event: JsonObject): boolean =>
  terminalTypes.has(stringAt(event, 'type') ?? '') ||
  event.error != null ||
  listAt(event, 'choices').some((choice) => isObject(choice) && choice.finish_reason != null)

/** Returns true for an error in a format other than the client's, which SDKs ignore. */
function isForeignError(
  format: ChatFormat,
  { event: name }: StreamEvent,
  event: JsonObject,
): boolean {
  const type = stringAt(event, 'type')
  switch (format) {
    case 'Completions':
      return type === 'error' && event.error == null
    case 'Messages':
      return event.error != null && (type !== 'error' || name !== 'error')
    case 'Responses':
      return event.error != null && type === undefined
  }
}

/** Removes usage that the client did not ask for: the event with it, and the empty field in other events. */
function withoutUsage(
  event: StreamEvent,
  parsed: JsonObject,
  corrected: JsonObject,
): readonly StreamEvent[] {
  if (!('usage' in parsed) && corrected === parsed) return [event]
  if (listAt(parsed, 'choices').length === 0 && parsed.usage != null) return []
  const { usage: _usage, ...rest } = corrected
  return [{ event: event.event, data: JSON.stringify(rest) }]
}

/** Returns the pieces of content in one event. */
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
