/**
 * One object in place of many equal ones. What is decoded from bytes is a new object each time, also
 * where thousands of resources say the same: a namespace, a listener, a backend.
 */

/** Values by an identity; a bounded number, so that what is gone does not stay for long. */
export class Repeated<Value> {
  readonly #known = new Map<string, Value>()
  readonly #most: number

  constructor(most = 4_096) {
    this.#most = most
  }

  /** The value that is kept under this identity. */
  find(identity: string): Value | undefined {
    return this.#known.get(identity)
  }

  /** The value that was kept under this identity first. Values are shared: never change one. */
  share(identity: string, value: Value): Value {
    const known = this.#known.get(identity)
    if (known !== undefined) return known
    if (this.#known.size >= this.#most) this.#known.clear()
    this.#known.set(identity, value)
    return value
  }
}

const texts = new Repeated<string>()

/** The same text, in the memory of one that was read before. */
export const sharedText = (text: string): string => texts.share(text, text)

const none: readonly never[] = []

/** The list, as long as it is: lists that grew have room to spare. Empty ones are all the same. */
export function exactList<Item, Result>(
  items: readonly Item[],
  convert: (item: Item) => Result,
): readonly Result[] {
  return items.length === 0 ? none : items.map(convert)
}
