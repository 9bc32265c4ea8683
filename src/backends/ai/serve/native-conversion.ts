/** Converts streamed answers of providers that have the format of the client. */
import type { StreamEvent } from '../chat.ts'
import type { ChatFormat } from '../client-formats.ts'
import { EventCallIndexes } from '../formats/completions/call-indexes.ts'
import { isObject, type JsonObject, listAt, objectAt, parseJson, stringAt } from '../json.ts'
import { type Conversion, type ConversionOptions, errorEvents, errorInPlace } from './conversion.ts'
import { detailsOfEvent } from './usage.ts'

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
  hasEnded = false

  constructor(options: ConversionOptions) {
    this.#options = options
  }

  convert(event: StreamEvent): readonly StreamEvent[] {
    if (event.data === '[DONE]') {
      this.hasEnded = true
      return [event]
    }
    const parsed = parseJson(event.data)
    if (!isObject(parsed)) return this.#convertOther(event)
    const { request, format, onDetails, onContent } = this.#options
    for (const piece of contentOf(format, parsed)) onContent(piece)
    const details = detailsOfEvent(request.route, parsed)
    if (details.usage !== undefined || details.model !== undefined) onDetails(details)
    if (isEnd(parsed)) this.hasEnded = true
    if (isForeignError(format, event, parsed)) return this.#error(event.data)
    const corrected = this.#callIndexes.correct(parsed)
    if (request.hidesUsage) return withoutUsage(event, parsed, corrected)
    return corrected === parsed ? [event] : [{ ...event, data: JSON.stringify(corrected) }]
  }

  finish(isCut: boolean, text: string): readonly StreamEvent[] {
    const { request, format } = this.#options
    if (this.hasEnded && (!isCut || format !== 'Completions')) return []
    return errorEvents(this.#options, errorInPlace(request, text))
  }

  /** Handles data that is not a JSON object: an HTML page is an error; other data is passed on. */
  #convertOther(event: StreamEvent): readonly StreamEvent[] {
    return /^\s*</.test(event.data) ? this.#error(event.data) : [event]
  }

  /** Converts an error of a proxy in front of the provider to the client's format. */
  #error(text: string): readonly StreamEvent[] {
    this.hasEnded = true
    return errorEvents(this.#options, errorInPlace(this.#options.request, text))
  }
}

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
