/**
 * Replaces equal values by one shared object. Decoding creates new objects even if thousands of resources
 * contain the same namespace, listener or backend. The number of stored values is limited.
 */
export class Repeated<Value> {
  readonly #known = new Map<string, Value>()
  readonly #maxValues: number

  constructor(maxValues = 4_096) {
    this.#maxValues = maxValues
  }

  /** Returns the value that is stored under this identity, if any. */
  find(identity: string): Value | undefined {
    return this.#known.get(identity)
  }

  /** Returns the value that was first stored under this identity. Values are shared: never change one. */
  share(identity: string, value: Value): Value {
    const known = this.#known.get(identity)
    if (known !== undefined) return known
    if (this.#known.size >= this.#maxValues) this.#known.clear()
    this.#known.set(identity, value)
    return value
  }
}

const texts = new Repeated<string>()

/** Returns an equal text that was read before, if any, so that equal texts share memory. */
export const sharedText = (text: string): string => texts.share(text, text)

const none: readonly never[] = []

/** Converts a list without spare capacity, which lists that grow have. Empty lists share one object. */
export function exactList<Item, Result>(
  items: readonly Item[],
  convert: (item: Item) => Result,
): readonly Result[] {
  return items.length === 0 ? none : items.map(convert)
}
