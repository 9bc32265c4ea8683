/** Random choices that a seed repeats. */
export class Choices {
  #state: number

  constructor(seed: number) {
    this.#state = seed | 0
  }

  /** Uniform in [0, 1) (Mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  /** A whole number; both ends are included. */
  number(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1))
  }

  one<Item>(items: readonly Item[]): Item {
    const item = items[this.number(0, items.length - 1)]
    if (item === undefined) throw new Error('there is nothing to choose from')
    return item
  }

  /** Different items, in their order. */
  some<Item>(items: readonly Item[], least: number, most: number): Item[] {
    const left = new Set(items)
    for (let drop = items.length - this.number(least, most); drop > 0; drop--) {
      left.delete(this.one([...left]))
    }
    return [...left]
  }

  list<Item>(least: number, most: number, make: (at: number) => Item): Item[] {
    return Array.from({ length: this.number(least, most) }, (_, at) => make(at))
  }
}
