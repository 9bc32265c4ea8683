/**
 * How many requests may be under way to one address of a backend, exactly, over all workers of a
 * proxy and whichever backends have the address. In the memory that workers share each address has
 * a place: a count of all, and one of each worker, so that what a worker held can be taken off when
 * it dies.
 */

/** Places for so many addresses in the life of a process; more of them are counted by each worker. */
const mostAddresses = 16_384

export interface RequestCounts {
  /** Hash of the address that has the place; 0 where it is free. */
  readonly keys: BigInt64Array<SharedArrayBuffer>
  readonly totals: Int32Array<SharedArrayBuffer>
  /** One row for each worker. */
  readonly own: Int32Array<SharedArrayBuffer>
}

const words = (count: number) =>
  new Int32Array(new SharedArrayBuffer(count * Int32Array.BYTES_PER_ELEMENT))

export function createRequestCounts(workers: number, addresses = mostAddresses): RequestCounts {
  const keys = new SharedArrayBuffer(addresses * BigInt64Array.BYTES_PER_ELEMENT)
  return {
    keys: new BigInt64Array(keys),
    totals: words(addresses),
    own: words(addresses * workers),
  }
}

/** The worker at this place has died, and its requests with it. */
export function forgetRequests({ totals, own }: RequestCounts, worker: number): void {
  for (let place = 0; place < totals.length; place++) {
    const left = Atomics.exchange(own, worker * totals.length + place, 0)
    if (left !== 0) Atomics.sub(totals, place, left)
  }
}

/** What one worker knows of one address. */
export class RequestShare {
  readonly #totals: Int32Array
  readonly #own: Int32Array
  readonly #place: number
  readonly #row: number

  constructor({ totals, own }: RequestCounts, place: number, worker: number) {
    this.#totals = totals
    this.#own = own
    this.#place = place
    this.#row = worker * totals.length + place
  }

  /** Requests under way, of all workers. */
  get total(): number {
    return Atomics.load(this.#totals, this.#place)
  }

  /** Counts one more, unless there are `most`. */
  take(most: number): boolean {
    for (let all = this.total; all < most; ) {
      const found = Atomics.compareExchange(this.#totals, this.#place, all, all + 1)
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
    Atomics.sub(this.#totals, this.#place, 1)
  }
}

/** The limit as one worker keeps it. */
export class RequestCap {
  readonly most: number
  readonly #counts: RequestCounts | undefined
  readonly #worker: number

  /** Without `counts` each address is counted by this thread alone. */
  constructor(most: number, counts?: RequestCounts, worker = 0) {
    this.most = most
    this.#counts = counts
    this.#worker = worker
  }

  /** The place of an address; undefined where there is no room for it. */
  shareOf(address: string): RequestShare | undefined {
    if (this.#counts === undefined) return undefined
    const { keys } = this.#counts
    const key = hashOf(address)
    const first = Number(BigInt.asUintN(32, key)) % keys.length
    for (let step = 0; step < keys.length; step++) {
      const place = (first + step) % keys.length
      const found = Atomics.compareExchange(keys, place, 0n, key)
      if (found === 0n || found === key) return new RequestShare(this.#counts, place, this.#worker)
    }
    return undefined
  }
}

/** FNV-1a, 64 bits, never 0. */
function hashOf(text: string): bigint {
  let hash = 0xcbf29ce484222325n
  for (let at = 0; at < text.length; at++) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(text.charCodeAt(at))) * 0x100000001b3n)
  }
  return BigInt.asIntN(64, hash === 0n ? 1n : hash)
}
