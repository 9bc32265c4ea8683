/** Calls of tools in native chat completions: those that share an index by mistake get their own. */
import { CallIndexes } from '../formats/completions/call-indexes.ts'
import { isObject, type JsonObject, listAt, numberAt, objectAt, stringAt } from '../json.ts'

export class EventCallIndexes {
  readonly #choices = new Map<number, CallIndexes>()

  /** The event with calls that can be told apart; the same object as a rule. */
  tellApart(event: JsonObject): JsonObject {
    const choices = listAt(event, 'choices')
    if (!choices.some((choice) => listAt(objectAt(choice, 'delta'), 'tool_calls').length > 0)) {
      return event
    }
    let isChanged = false
    const told = choices.map((choice) => {
      const delta = objectAt(choice, 'delta')
      if (!isObject(choice) || delta === undefined) return choice
      const indexes = this.#of(numberAt(choice, 'index') ?? 0)
      const calls = listAt(delta, 'tool_calls').map((call) => {
        const index = indexes.resolve(numberAt(call, 'index') ?? 0, stringAt(call, 'id'))
        if (!isObject(call) || call.index === index) return call
        isChanged = true
        return { ...call, index }
      })
      return calls.length === 0 ? choice : { ...choice, delta: { ...delta, tool_calls: calls } }
    })
    return isChanged ? { ...event, choices: told } : event
  }

  #of(choice: number): CallIndexes {
    let indexes = this.#choices.get(choice)
    if (indexes === undefined) {
      indexes = new CallIndexes()
      this.#choices.set(choice, indexes)
    }
    return indexes
  }
}
