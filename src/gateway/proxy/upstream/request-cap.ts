/**
 * Limits the concurrent requests to one address over all workers and backends. The limit is exact. In shared
 * memory, each address has a slot with a total and one count for each worker, which is subtracted from the
 * total if the worker dies.
 */

/** Number of slots, which are never freed. Requests to further addresses are counted by each worker alone. */
const maxAddresses = 16_384

export interface RequestCounts {
  /** Hash of the address of each slot; 0 if the slot is free. */
  readonly keys: BigInt64Array<SharedArrayBuffer>
  readonly totals: Int32Array<SharedArrayBuffer>
  /** One row of counts for each worker; a row has one count for each slot. */
  readonly own: Int32Array<SharedArrayBuffer>
}

const sharedInts = (count: number) =>
  new Int32Array(new SharedArrayBuffer(count * Int32Array.BYTES_PER_ELEMENT))

export function createRequestCounts(workers: number, addresses = maxAddresses): RequestCounts {
  const keys = new SharedArrayBuffer(addresses * BigInt64Array.BYTES_PER_ELEMENT)
  return {
    keys: new BigInt64Array(keys),
    totals: sharedInts(addresses),
    own: sharedInts(addresses * workers),
  }
}

/** Subtracts the requests of a worker that died. */
export function forgetRequests({ totals, own }: RequestCounts, worker: number): void {
  for (let slot = 0; slot < totals.length; slot++) {
    const left = Atomics.exchange(own, worker * totals.length + slot, 0)
    if (left !== 0) Atomics.sub(totals, slot, left)
  }
}

/** The slot of one address, as used by one worker. */
export class RequestShare {
  readonly #totals: Int32Array
  readonly #own: Int32Array
  readonly #slot: number
  readonly #row: number

  constructor({ totals, own }: RequestCounts, slot: number, worker: number) {
    this.#totals = totals
    this.#own = own
    this.#slot = slot
    this.#row = worker * totals.length + slot
  }

  /** Number of concurrent requests of all workers. */
  get total(): number {
    return Atomics.load(this.#totals, this.#slot)
  }

  /** Counts a request. Returns false if there are already `most` requests. */
  take(most: number): boolean {
    for (let all = this.total; all < most; ) {
      const found = Atomics.compareExchange(this.#totals, this.#slot, all, all + 1)
      if (found === all) {
        Atomics.add(this.#own, this.#row, 1)
        return true
      }
      all = found
    }
    return false
  }

  giveBack(): void {
    Atomics.sub(this.#own, this.#row, 1)
    Atomics.sub(this.#totals, this.#slot, 1)
  }
}

/** The limit, as used by one worker. */
export class RequestCap {
  readonly most: number
  readonly #counts: RequestCounts | undefined
  readonly #worker: number

  /** Without `counts`, this thread counts only its own requests. */
  constructor(most: number, counts?: RequestCounts, worker = 0) {
    this.most = most
    this.#counts = counts
    this.#worker = worker
  }

  /** Returns the slot of an address; undefined if all slots are used. */
  shareOf(address: string): RequestShare | undefined {
    if (this.#counts === undefined) return undefined
    const { keys } = this.#counts
    const key = hashOf(address)
    const first = Number(BigInt.asUintN(32, key)) % keys.length
    for (let step = 0; step < keys.length; step++) {
      const slot = (first + step) % keys.length
      const found = Atomics.compareExchange(keys, slot, 0n, key)
      if (found === 0n || found === key) return new RequestShare(this.#counts, slot, this.#worker)
    }
    return undefined
  }
}

/** Returns the 64-bit FNV-1a hash of a text. It is never 0. */
export function hashOf(text: string): bigint {
  let hash = 0xcbf29ce484222325n
  for (let at = 0; at < text.length; at++) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(text.charCodeAt(at))) * 0x100000001b3n)
  }
  return BigInt.asIntN(64, hash === 0n ? 1n : hash)
}
