/** Streamed answers of providers that speak the format of the client. */
import type { StreamEvent } from '../chat.ts'
import type { ChatFormat } from '../client-formats.ts'
import { isObject, type JsonObject, listAt, objectAt, parseJson, stringAt } from '../json.ts'
import { type Conversion, type ConversionOptions, errorEvents, errorInPlace } from './conversion.ts'
import { EventCallIndexes } from './event-call-indexes.ts'
import { factsOfEvent } from './usage.ts'

/** Messages of the format that end a stream, well or badly. */
const terminalTypes = new Set([
  'message_stop',
  'error',
  'response.completed',
  'response.incomplete',
  'response.failed',
])

export class NativeConversion implements Conversion {
  readonly #options: ConversionOptions
  readonly #format: ChatFormat
  readonly #callIndexes = new EventCallIndexes()
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
    if (!isObject(parsed)) return this.#foreign(event)
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
    if (isForeignError(this.#format, event, parsed)) return this.#error(event.data)
    const told = this.#callIndexes.tellApart(parsed)
    if (request.hidesUsage) return withoutUsage(event, parsed, told)
    return told === parsed ? [event] : [{ ...event, data: JSON.stringify(told) }]
  }

  finish(isCut: boolean, text: string): readonly StreamEvent[] {
    if (this.hasEnded && !isCut) return []
    if (this.hasEnded && this.#format !== 'Completions') return []
    const error = errorInPlace(this.#options.request, text)
    return errorEvents(this.#format, error, this.#options.context)
  }

  /** A page in place of an event is an error; anything else that is no event passes. */
  #foreign(event: StreamEvent): readonly StreamEvent[] {
    return /^\s*</.test(event.data) ? this.#error(event.data) : [event]
  }

  /** Of what stands before the provider, in the format of the client. */
  #error(text: string): readonly StreamEvent[] {
    this.hasEnded = true
    const error = errorInPlace(this.#options.request, text)
    return errorEvents(this.#format, error, this.#options.context)
  }
}

/** SDKs take no notice of errors that are not of their format. */
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

/** The usage that nobody asked for: an event of its own, and an empty field of all others. */
function withoutUsage(
  event: StreamEvent,
  parsed: JsonObject,
  told: JsonObject,
): readonly StreamEvent[] {
  if (!('usage' in parsed) && told === parsed) return [event]
  if (listAt(parsed, 'choices').length === 0 && parsed.usage != null) return []
  const { usage: _usage, ...rest } = told
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
