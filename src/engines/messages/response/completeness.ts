/**
 * Judges whether a response may be given again: the model has ended it by itself, no limit or filter has cut it, and it
 * has no error and no refusal.
 */
import type { StreamEvent } from '../chat.ts'
import {
  field,
  isObject,
  type JsonObject,
  listAt,
  objectAt,
  parseJson,
  stringAt,
} from '../json/json.ts'

/** Why a model stops by itself, in the words of all vendors. Other reasons are no good ends. */
const goodEnds: ReadonlySet<string> = new Set([
  ...['stop', 'end_turn', 'stop_sequence', 'tool_use', 'tool_calls', 'function_call', 'eos_token'],
  ...['STOP', 'COMPLETE', 'completed'],
])
/** States of responses that have not ended. */
const openStates: ReadonlySet<string> = new Set(['in_progress', 'queued'])

const reasonNames = ['finish_reason', 'stop_reason', 'finishReason', 'stopReason']

/** Events that may say how the response ends; all others need not be parsed. */
const telling =
  /"(?:finish_?[Rr]eason|stop_?[Rr]eason|status|error|refusal|blockReason)"|\brefusal\b/

export class Completeness {
  #hasEnded = false
  #isSpoiled = false

  get isComplete(): boolean {
    return this.#hasEnded && !this.#isSpoiled
  }

  /** Reads an event of a streamed response. */
  readonly push = ({ data }: StreamEvent): void => {
    if (!telling.test(data)) return
    const event = parseJson(data)
    if (isObject(event)) this.read(event)
  }

  /** Reads a whole response or an event. */
  read(body: JsonObject): void {
    const response = objectAt(body, 'response') ?? body
    if (body.error != null || response.error != null || body.type === 'error')
      this.#isSpoiled = true
    if (stringAt(objectAt(body, 'promptFeedback'), 'blockReason')) this.#isSpoiled = true
    const choices = [...listAt(body, 'choices'), ...listAt(body, 'candidates')]
    for (const one of [body, objectAt(body, 'delta'), ...choices]) this.#readEnd(one)
    for (const choice of choices) {
      for (const name of ['message', 'delta']) {
        if (stringAt(objectAt(choice, name), 'refusal')) this.#isSpoiled = true
      }
    }
    this.#readOutput(response)
    if (stringAt(body, 'type')?.includes('refusal')) this.#isSpoiled = true
  }

  #readEnd(value: unknown): void {
    for (const name of reasonNames) this.#note(field(value, name))
  }

  /** Reads a response that has items of output. */
  #readOutput(response: JsonObject): void {
    if (response.object !== 'response') return
    if (!openStates.has(`${response.status}`)) this.#note(response.status)
    for (const item of listAt(response, 'output')) {
      const isRefusal = (part: unknown) => stringAt(part, 'type') === 'refusal'
      if (listAt(item, 'content').some(isRefusal)) this.#isSpoiled = true
    }
  }

  #note(reason: unknown): void {
    if (typeof reason !== 'string' || reason === '') return
    if (goodEnds.has(reason)) this.#hasEnded = true
    else this.#isSpoiled = true
  }
}
