/** Values by key over the events of a log: what each was after any event, without moving through the log. */

interface History<Value> {
  /** Indexes of the events that changed the value, ascending. */
  readonly indexes: number[]
  /** The value after each of these events; undefined if there is none any more. */
  readonly values: (Value | undefined)[]
}

/** The values after one event. */
export interface Values<Value> {
  get(key: string): Value | undefined
  entries(): Iterable<readonly [key: string, value: Value]>
}

export class Versions<Value> {
  readonly #histories = new Map<string, History<Value>>()

  /** Sets the value of a key from an event on; events must come in order. */
  set(key: string, index: number, value: Value | undefined): void {
    const history = this.#histories.get(key)
    if (history === undefined) {
      if (value !== undefined) this.#histories.set(key, { indexes: [index], values: [value] })
    } else if (history.indexes.at(-1) === index) history.values[history.values.length - 1] = value
    else {
      history.indexes.push(index)
      history.values.push(value)
    }
  }

  /** The value after the last event. */
  newest(key: string): Value | undefined {
    return this.#histories.get(key)?.values.at(-1)
  }

  /** The values after an event. */
  at(index: number): Values<Value> {
    const histories = this.#histories
    return {
      get: (key) => valueAt(histories.get(key), index),
      *entries() {
        for (const [key, history] of histories) {
          const value = valueAt(history, index)
          if (value !== undefined) yield [key, value]
        }
      },
    }
  }

  /** Every value of a key, with the event from which it was one. */
  historyOf(
    key: string,
  ): readonly { readonly cause: number; readonly status: Value | undefined }[] {
    const { indexes = [], values = [] } = this.#histories.get(key) ?? {}
    return indexes.map((cause, at) => ({ cause, status: values[at] }))
  }
}

function valueAt<Value>(history: History<Value> | undefined, index: number): Value | undefined {
  if (history === undefined) return undefined
  const { indexes, values } = history
  // Most values were last changed before the moment.
  if ((indexes[indexes.length - 1] ?? 0) <= index) return values[values.length - 1]
  let [low, high] = [0, indexes.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((indexes[middle] ?? 0) <= index) low = middle + 1
    else high = middle
  }
  return values[low - 1]
}
