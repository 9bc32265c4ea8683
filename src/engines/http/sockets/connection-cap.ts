/**
 * Counts of client connections in memory that the workers of a proxy share. The first word is the
 * total; each worker also has its own word, so that its connections can be subtracted when it dies.
 */
export type ConnectionCounts = Int32Array<SharedArrayBuffer>

/** `workers` is the maximum number of workers that share the counts. */
export function createConnectionCounts(workers = 1_024): ConnectionCounts {
  return new Int32Array(new SharedArrayBuffer((workers + 1) * Int32Array.BYTES_PER_ELEMENT))
}

/** Subtracts the connections of the worker at this index, which has died. */
export function forgetConnections(counts: ConnectionCounts, index: number): void {
  Atomics.sub(counts, 0, Atomics.exchange(counts, index + 1, 0))
}

/** Limits the client connections of a proxy exactly; used by one worker. */
export class ConnectionCap {
  readonly #counts: ConnectionCounts
  readonly #ownIndex: number
  readonly #max: number
  #counted = 0

  constructor(max: number, counts: ConnectionCounts, index: number) {
    this.#max = max
    this.#counts = counts
    this.#ownIndex = index + 1
  }

  /** Counts one more connection if there is room. `open` is the number that this worker has already. */
  admit(open: number): boolean {
    this.update(open)
    for (let all = Atomics.load(this.#counts, 0); all < this.#max; ) {
      const found = Atomics.compareExchange(this.#counts, 0, all, all + 1)
      if (found === all) {
        this.#counted++
        Atomics.store(this.#counts, this.#ownIndex, this.#counted)
        return true
      }
      all = found
    }
    return false
  }

  /** Corrects the counts to the number of connections that this worker has open. */
  update(open: number): void {
    const change = open - this.#counted
    if (change === 0) return
    this.#counted = open
    Atomics.store(this.#counts, this.#ownIndex, open)
    Atomics.add(this.#counts, 0, change)
  }
}
