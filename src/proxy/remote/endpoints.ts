/** Where controllers are, and how long to wait before the next try. */

const firstDelayMs = 200
const longestDelayMs = 15_000

/**
 * Goes round the addresses. Between rounds it waits, twice as long each time up to 15 s, and each
 * time a random part of it, so that the proxies of a controller that went away do not come back all
 * at once.
 */
export class Endpoints {
  readonly #addresses: readonly string[]
  readonly #random: () => number
  #next = 0
  #failures = 0

  /** `addresses`: at least one, `host:port`. `random`: 0 up to 1. */
  constructor(addresses: readonly string[], random: () => number = Math.random) {
    this.#addresses = addresses
    this.#random = random
  }

  get current(): string {
    return this.#addresses[this.#next % this.#addresses.length] ?? ''
  }

  /** The current one works: the next failure waits as the first one did. */
  worked(): void {
    this.#failures = 0
  }

  /** The current one does not work; gives the milliseconds until the next is to be tried. */
  failed(): number {
    this.#next++
    const round = Math.floor(this.#failures / this.#addresses.length)
    const isRoundOver = ++this.#failures % this.#addresses.length === 0
    if (!isRoundOver) return 0
    const limit = Math.min(firstDelayMs * 2 ** round, longestDelayMs)
    return limit / 2 + (limit / 2) * this.#random()
  }
}
