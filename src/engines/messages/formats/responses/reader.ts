/** Reads streamed responses in the responses format. */
import type { ResponseEvent, ResponseEventReader, StreamEvent } from '../../chat.ts'
import { eventOfEnding } from '../../common/ending.ts'
import type { KnownOfResponse } from '../../format.ts'
import { field, listAt, needEvent, numberAt, objectAt, stringAt } from '../../json/json.ts'
import { readCompletionsError } from '../completions/response.ts'
import { ItemContents } from './item-contents.ts'
import { endingOf, sourceOf } from './read-response.ts'
import { readUsageOfResponse } from './usage.ts'

/** Indexes of blocks are the positions of their items in the output. */
export class ResponsesReader implements ResponseEventReader {
  readonly #known: KnownOfResponse
  readonly #items = new ItemContents()
  #hasRefused = false
  #hasCalls = false
  #isStarted = false
  #isEnded = false

  constructor(known: KnownOfResponse) {
    this.#known = known
  }

  read({ data }: StreamEvent): readonly ResponseEvent[] {
    if (data === '[DONE]') return []
    const event = needEvent(data)
    const index = numberAt(event, 'output_index') ?? 0
    const delta = stringAt(event, 'delta') ?? ''
    const id = stringAt(event, 'item_id')
    switch (stringAt(event, 'type')) {
      case 'response.created':
      case 'response.in_progress':
        return this.#start(objectAt(event, 'response'))
      case 'response.output_item.added':
        return this.#noted(this.#items.startCall(index, objectAt(event, 'item')))
      case 'response.output_text.delta':
        this.#items.note('text', index, id)
        return [{ type: 'text', index, text: delta }]
      case 'response.output_text.annotation.added':
        return sourceOf(field(event, 'annotation')).map((citation) => {
          return { type: 'citation', index, citation }
        })
      case 'response.refusal.delta':
        this.#items.note('refusal', index, id)
        return this.#noted([{ type: 'refusal', text: delta }])
      case 'response.reasoning_summary_part.added':
        // Parts after the first one are paragraphs.
        return numberAt(event, 'summary_index') ? [{ type: 'thinking', index, text: '\n\n' }] : []
      case 'response.reasoning_summary_text.delta':
        this.#items.note('thinking', index, id)
        return [{ type: 'thinking', index, text: delta }]
      case 'response.function_call_arguments.delta':
        if (delta !== '') this.#items.note('input', index, id)
        return [{ type: 'tool-input', index, json: delta }]
      case 'response.function_call_arguments.done':
        return this.#items.input(index, id, stringAt(event, 'arguments'))
      case 'response.output_item.done':
        return this.#noted(this.#items.finish(index, objectAt(event, 'item')))
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
        return this.#end(objectAt(event, 'response'))
      case 'error':
        return [{ type: 'error', error: errorOf(event) }]
      default:
        return field(event, 'error') == null
          ? []
          : [{ type: 'error', error: readCompletionsError(502, data) }]
    }
  }

  finish(): readonly ResponseEvent[] {
    return []
  }

  #start(response: unknown): readonly ResponseEvent[] {
    if (this.#isStarted) return []
    this.#isStarted = true
    const { model, newId } = this.#known
    const id = stringAt(response, 'id') || `resp_${newId()}`
    return [{ type: 'start', id, model: stringAt(response, 'model') || model }]
  }

  /** Learns from events what the end of the response depends on. */
  #noted(events: readonly ResponseEvent[]): readonly ResponseEvent[] {
    for (const { type } of events) {
      if (type === 'refusal') this.#hasRefused = true
      if (type === 'tool-start') this.#hasCalls = true
    }
    return events
  }

  #end(response: unknown): readonly ResponseEvent[] {
    if (this.#isEnded) return []
    this.#isEnded = true
    const output = this.#items.isEmpty ? listAt(response, 'output') : []
    const items = this.#noted(output.flatMap((item, index) => this.#items.finish(index, item)))
    const started = items.length > 0 ? this.#start(response) : []
    const usage = readUsageOfResponse(response)
    const had = { refuses: this.#hasRefused, calls: this.#hasCalls }
    const ending = eventOfEnding(endingOf(response, had))
    const counted: ResponseEvent[] = usage === undefined ? [] : [{ type: 'usage', usage }]
    const before = [...started, ...items, ...counted]
    return ending.type === 'error' ? [...before, ending] : [...before, ending, { type: 'end' }]
  }
}

/** Events of errors have their fields at the top. */
function errorOf(event: unknown) {
  const code = stringAt(event, 'code')
  const message = stringAt(event, 'message') ?? stringAt(objectAt(event, 'error'), 'message')
  return { status: 502, message: message ?? 'the provider answered with an error', code }
}
