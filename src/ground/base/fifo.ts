/** The items of all empty queues. `push` replaces it. */
const noItems: never[] = []

/** A queue of any length whose first item is removed in amortized constant time. */
export class Fifo<Item> {
  #items: Item[] = noItems
  #head = 0

  get length(): number {
    return this.#items.length - this.#head
  }

  get first(): Item | undefined {
    return this.#items[this.#head]
  }

  push(item: Item): void {
    // A list literal has room for one item; `push` would make room for 17.
    if (this.#items.length === 0) this.#items = [item]
    else this.#items.push(item)
  }

  take(): Item | undefined {
    if (this.length === 0) return undefined
    const item = this.#items[this.#head++]
    if (this.#head * 2 >= this.#items.length) {
      this.#items = this.length === 0 ? noItems : this.#items.slice(this.#head)
      this.#head = 0
    }
    return item
  }

  /** Returns all items, first in first. */
  toArray(): Item[] {
    return this.#items.slice(this.#head)
  }

  clear(): void {
    this.#items = noItems
    this.#head = 0
  }
}
