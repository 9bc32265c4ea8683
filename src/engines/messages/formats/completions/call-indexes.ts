/**
 * Distinguishes the tool calls of a streamed chat completion. Pieces of a call have its index, but
 * some providers write index 0 for all calls, so that only their ids differ.
 */
import {
  isObject,
  type JsonObject,
  listAt,
  mapList,
  numberAt,
  objectAt,
  stringAt,
  withFields,
} from '../../json/json.ts'

export class CallIndexes {
  /** The last call with each index that the provider wrote: its id and its corrected index. */
  readonly #calls = new Map<number, { id: string | undefined; readonly index: number }>()
  readonly #byId = new Map<string, number>()
  #next = 0

  /** Returns the corrected index of a call. `written` and `id` are those of a piece; `id` may be missing. */
  resolve(written: number, id: string | undefined): number {
    const open = this.#calls.get(written)
    if (open === undefined || (id && open.id !== undefined && open.id !== id)) {
      return this.#begin(written, id || undefined)
    }
    if (id && open.id === undefined) {
      open.id = id
      this.#byId.set(id, open.index)
    }
    return open.index
  }

  #begin(written: number, id: string | undefined): number {
    const known = id === undefined ? undefined : this.#byId.get(id)
    const index = known ?? Math.max(this.#next, this.#calls.has(written) ? 0 : written)
    this.#next = Math.max(this.#next, index + 1)
    this.#calls.set(written, { id, index })
    if (id !== undefined) this.#byId.set(id, index)
    return index
  }
}

/** Corrects the call indexes in the events of a chat completion that is not translated. */
export class EventCallIndexes {
  readonly #choices = new Map<number, CallIndexes>()

  /** Returns the event with correct indexes: the same object if none had to be changed. */
  correct(event: JsonObject): JsonObject {
    const choices = listAt(event, 'choices')
    const corrected = mapList(choices, (choice) => this.#correctChoice(choice))
    return corrected === choices ? event : { ...event, choices: corrected }
  }

  #correctChoice(choice: unknown): unknown {
    const delta = objectAt(choice, 'delta')
    const calls = listAt(delta, 'tool_calls')
    if (!isObject(choice) || delta === undefined || calls.length === 0) return choice
    const position = numberAt(choice, 'index') ?? 0
    const indexes = this.#choices.get(position) ?? new CallIndexes()
    this.#choices.set(position, indexes)
    const corrected = mapList(calls, (call) => {
      const index = indexes.resolve(numberAt(call, 'index') ?? 0, stringAt(call, 'id'))
      return isObject(call) ? withFields(call, { index }) : call
    })
    return withFields(choice, { delta: withFields(delta, { tool_calls: corrected }) })
  }
}
