/**
 * How many client connections there may be, exactly, over all workers of a proxy. In the memory that
 * they share the first word counts all of them, and each worker has a word of its own, so that what a
 * worker held can be taken off when it dies.
 */
export type ConnectionCounts = Int32Array<SharedArrayBuffer>

/** Room for so many workers. */
export function createConnectionCounts(workers = 1_024): ConnectionCounts {
  return new Int32Array(new SharedArrayBuffer((workers + 1) * Int32Array.BYTES_PER_ELEMENT))
}

/** The worker at this place has died, and its connections with it. */
export function forgetConnections(counts: ConnectionCounts, index: number): void {
  Atomics.sub(counts, 0, Atomics.exchange(counts, index + 1, 0))
}

/** One worker's part in the count. */
export class ConnectionCap {
  readonly #counts: ConnectionCounts
  readonly #own: number
  readonly #most: number
  #counted = 0

  constructor(most: number, counts: ConnectionCounts, index: number) {
    this.#most = most
    this.#counts = counts
    this.#own = index + 1
  }

  /** Is there room for one more beside the `open` ones of this worker? It is counted then. */
  admit(open: number): boolean {
    this.settle(open)
    for (let all = Atomics.load(this.#counts, 0); all < this.#most; ) {
      const found = Atomics.compareExchange(this.#counts, 0, all, all + 1)
      if (found === all) {
        this.#counted++
        Atomics.store(this.#counts, this.#own, this.#counted)
        return true
      }
      all = found
    }
    return false
  }

  /** This worker has so many open. */
  settle(open: number): void {
    const change = open - this.#counted
    if (change === 0) return
    this.#counted = open
    Atomics.store(this.#counts, this.#own, open)
    Atomics.add(this.#counts, 0, change)
  }
}
