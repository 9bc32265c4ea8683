/** Reads streamed responses in the responses format. */
import type { ResponseEvent, ResponseEventReader, StreamEvent } from '../../chat.ts'
import { eventOfEnding } from '../../common/ending.ts'
import type { KnownOfResponse } from '../../format.ts'
import { field, needEvent, numberAt, objectAt, stringAt } from '../../json/json.ts'
import { readCompletionsError } from '../completions/response.ts'
import { endingOf, signatureOfItem, sourceOf } from './read-response.ts'
import { readUsageOfResponse } from './usage.ts'

/** Indexes of blocks are the positions of their items in the output. */
export class ResponsesReader implements ResponseEventReader {
  readonly #known: KnownOfResponse
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
    switch (stringAt(event, 'type')) {
      case 'response.created':
      case 'response.in_progress':
        return this.#start(objectAt(event, 'response'))
      case 'response.output_item.added':
        return this.#startItem(index, objectAt(event, 'item'))
      case 'response.output_text.delta':
        return [{ type: 'text', index, text: delta }]
      case 'response.output_text.annotation.added':
        return sourceOf(field(event, 'annotation')).map((citation) => {
          return { type: 'citation', index, citation }
        })
      case 'response.refusal.delta':
        this.#hasRefused = true
        return [{ type: 'refusal', text: delta }]
      case 'response.reasoning_summary_part.added':
        // Parts after the first one are paragraphs.
        return numberAt(event, 'summary_index') ? [{ type: 'thinking', index, text: '\n\n' }] : []
      case 'response.reasoning_summary_text.delta':
        return [{ type: 'thinking', index, text: delta }]
      case 'response.function_call_arguments.delta':
        return [{ type: 'tool-input', index, json: delta }]
      case 'response.output_item.done':
        return endItem(index, objectAt(event, 'item'))
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

  #startItem(index: number, item: unknown): readonly ResponseEvent[] {
    const name = stringAt(item, 'name')
    if (stringAt(item, 'type') !== 'function_call' || name === undefined) return []
    this.#hasCalls = true
    return [{ type: 'tool-start', index, id: stringAt(item, 'call_id') ?? '', name }]
  }

  #end(response: unknown): readonly ResponseEvent[] {
    if (this.#isEnded) return []
    this.#isEnded = true
    const usage = readUsageOfResponse(response)
    const had = { refuses: this.#hasRefused, calls: this.#hasCalls }
    const ending = eventOfEnding(endingOf(response, had))
    const counted: ResponseEvent[] = usage === undefined ? [] : [{ type: 'usage', usage }]
    return ending.type === 'error' ? [...counted, ending] : [...counted, ending, { type: 'end' }]
  }
}

function endItem(index: number, item: unknown): readonly ResponseEvent[] {
  const signature = stringAt(item, 'type') === 'reasoning' ? signatureOfItem(item) : undefined
  const signed: ResponseEvent[] =
    signature === undefined ? [] : [{ type: 'thinking', index, text: '', signature }]
  return [...signed, { type: 'block-stop', index }]
}

/** Events of errors have their fields at the top. */
function errorOf(event: unknown) {
  const code = stringAt(event, 'code')
  const message = stringAt(event, 'message') ?? stringAt(objectAt(event, 'error'), 'message')
  return { status: 502, message: message ?? 'the provider answered with an error', code }
}
