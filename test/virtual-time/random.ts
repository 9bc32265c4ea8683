/** A seeded generator of random numbers (sfc32): the same seed gives the same sequence everywhere. */
export class Random {
  #a: number
  #b: number
  #c: number
  #d = 1

  constructor(seed: number, stream: string) {
    let hash = 2_166_136_261
    for (const char of stream) hash = Math.imul(hash ^ char.charCodeAt(0), 16_777_619)
    this.#a = seed | 0
    this.#b = Math.floor(seed / 2 ** 32) | 0
    this.#c = hash
    for (let i = 0; i < 15; i++) this.next()
  }

  /** A number from 0 to below 1. */
  next(): number {
    const t = (((this.#a + this.#b) | 0) + this.#d) | 0
    this.#d = (this.#d + 1) | 0
    this.#a = this.#b ^ (this.#b >>> 9)
    this.#b = (this.#c + (this.#c << 3)) | 0
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + t
    this.#c |= 0
    return (t >>> 0) / 2 ** 32
  }

  chance(probability: number): boolean {
    return this.next() < probability
  }

  /** A number from `low` to below `high`. */
  between(low: number, high: number): number {
    return low + this.next() * (high - low)
  }

  /** A whole number from 0 to below `count`. */
  below(count: number): number {
    return Math.floor(this.next() * count)
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.below(items.length)] as Item
  }

  /** Hexadecimal digits. */
  hex(digits: number): string {
    return Array.from({ length: digits }, () => this.below(16).toString(16)).join('')
  }
}
