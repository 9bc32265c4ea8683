/** Pseudo-random numbers that a seed repeats (xorshift128). Not for secrets. */
export class Random {
  #a: number
  #b: number
  #c: number
  #d: number

  constructor(seed: number) {
    this.#a = seed | 0
    this.#b = 0x9e3779b9
    this.#c = Math.imul(seed ^ 0x85ebca6b, 0xc2b2ae35)
    this.#d = 0x27d4eb2f
    for (let round = 0; round < 16; round++) this.integer()
  }

  /** 32 random bits, as a number from 0 to 2^32 - 1. */
  integer(): number {
    const mixed = this.#a ^ (this.#a << 11)
    this.#a = this.#b
    this.#b = this.#c
    this.#c = this.#d
    this.#d = this.#d ^ (this.#d >>> 19) ^ mixed ^ (mixed >>> 8)
    return this.#d >>> 0
  }

  /** A number from 0 to `bound` - 1; 0 if `bound` is 0. */
  below(bound: number): number {
    return bound === 0 ? 0 : this.integer() % bound
  }

  /** True once in `times`. */
  oneIn(times: number): boolean {
    return this.below(times) === 0
  }

  /** @throws RangeError if the list is empty. */
  pick<Value>(list: readonly Value[]): Value {
    if (list.length === 0) throw new RangeError('cannot pick from an empty list')
    return list[this.below(list.length)] as Value
  }

  /** A length from 0 to `limit` - 1, in which short ones are as frequent as long ones. */
  length(limit: number): number {
    return this.below(Math.min(limit, 2 ** this.below(Math.ceil(Math.log2(limit + 1)) + 1)))
  }

  bytes(length: number): Buffer {
    const bytes = Buffer.alloc(length)
    for (let at = 0; at < length; at++) bytes[at] = this.integer()
    return bytes
  }
}

/** The random numbers of one input of a run. */
export const randomOf = (seed: number, index: number): Random =>
  new Random(Math.imul(seed, 0x01000193) ^ Math.imul(index + 1, 0x9e3779b1))
