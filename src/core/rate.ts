/**
 * Rate limits by requests or tokens. A bucket holds `rate + burst` units, begins full, and fills
 * evenly by `rate` units a `unit` of time.
 *
 *     const memory = createRateMemory({ keys: 10_000 })          // once; hand it to every worker
 *     const limiter = createRateLimiter({ shared: memory })      // in each; without `shared`: one thread
 *     const limit = limiter.limit(7, { rate: 100, unit: 'Minutes', burst: 20 })
 *     if (!limit.take(1, now, clientAddress)) refuse(limit.wait) // ms; and limit.remaining, limit.reset
 *     limit.charge(usedTokens, now)                              // known afterwards: may go into debt
 *
 * Ids come from the host. A bucket is what its id and key name, so it lives on through every change of
 * configuration in which the id stays. Times are milliseconds of one clock for all threads (rateClock).
 */
import { createHash } from 'node:crypto'
import { ERROR_ARGUMENT, RATE_FULL, RATE_GONE } from './abi.ts'
import { CoreError, CoreTrap } from './errors.ts'
import type { RateDemand } from './rate-exports.ts'
import {
  LocalRateHost,
  type RateHost,
  type RateTableOptions,
  SharedRateHost,
  untilFree,
} from './rate-host.ts'

export { createRateMemory, type RateTableOptions } from './rate-host.ts'

export type RateUnit = 'Seconds' | 'Minutes' | 'Hours'

/** `rate` units a `unit` of time; `burst` units (default 0) on top of them in a full bucket. */
export interface RateLimit {
  readonly rate: number
  readonly unit: RateUnit
  readonly burst?: number
}

/** Options of a table count only without `shared`; with it, they were given to createRateMemory. */
export interface RateLimiterOptions extends RateTableOptions {
  /** Memory of createRateMemory: admission is exact over all threads that have it. */
  readonly shared?: WebAssembly.Memory
}

const unitMilliseconds: Readonly<Record<RateUnit, number>> = {
  Seconds: 1000,
  Minutes: 60_000,
  Hours: 3_600_000,
}

/** Milliseconds in which one unit comes back. */
function periodOf({ rate, unit }: RateLimit): number {
  const period = unitMilliseconds[unit] / rate
  if (!(period > 0 && period < Number.POSITIVE_INFINITY)) {
    throw new RangeError(`a rate limit of ${rate} a unit of ${unit}`)
  }
  return period
}

/**
 * From this thread's own clock to the machine's. The two are read one after the other, and the system
 * may hold the thread in between: of several readings the one that took least is the closest.
 */
function measureOffset(): number {
  let offset = 0
  let least = Number.POSITIVE_INFINITY
  for (let reading = 0; reading < 16; reading++) {
    const before = performance.now()
    const machine = Number(process.hrtime.bigint()) / 1e6
    const took = performance.now() - before
    if (took >= least) continue
    least = took
    offset = machine - before - took / 2
  }
  return offset
}

const offset = measureOffset()

/** Milliseconds of the machine's monotonic clock: the same for all threads and processes on it. */
export function rateClock(): number {
  return offset + performance.now()
}

/** Makes a limiter: with `shared`, this thread's part in common buckets; else of its own. */
export function createRateLimiter(options: RateLimiterOptions = {}): RateLimiter {
  return new RateLimiter(options)
}

export class RateLimiter {
  readonly #options: RateLimiterOptions
  #host: RateHost
  /** The table of a resize that is not done. */
  #next: number | undefined
  /** How often cells of limits may have become invalid in this thread. */
  epoch = 0
  /** Calls that found no cell for a new bucket. Those were refused: make the table larger. */
  fullCount = 0
  /** Instances lost to traps, which are bugs. Buckets in shared memory outlive them. */
  trapCount = 0

  /** Use createRateLimiter. */
  constructor(options: RateLimiterOptions) {
    this.#options = options
    this.#host = this.#makeHost()
  }

  #makeHost(): RateHost {
    const { shared } = this.#options
    return shared === undefined ? new LocalRateHost(this.#options) : new SharedRateHost(shared)
  }

  /** Where this thread's calls put keys and find records. */
  get host(): RateHost {
    return this.#host
  }

  /** The number that `release` takes when this thread has died; 0 for a limiter of one thread. */
  get owner(): number {
    return this.#host instanceof SharedRateHost ? this.#host.owner : 0
  }

  /** A limit and its buckets. `id` is a 32-bit integer that names the limit for good. */
  limit(id: number, limit: RateLimit): RateBuckets {
    return new RateBuckets(this, id, limit)
  }

  /**
   * The limit of an id becomes another: what its buckets have used stays the same number of units.
   * To be called once, in one thread. Gives how many buckets there were.
   */
  change(id: number, from: RateLimit, to: RateLimit, now: number): number {
    const ratio = periodOf(to) / periodOf(from)
    return this.demand('rate_rescale', ({ exports, table }) =>
      exports.rate_rescale(table, id, ratio, now),
    )
  }

  /** Buckets that are not known to be full. */
  count(): number {
    return this.demand('rate_count', ({ exports, table }) => exports.rate_count(table))
  }

  /** Forgets buckets that are full; how many. For figures only: their room is used again anyway. */
  reap(now: number): number {
    return this.demand('rate_reap', ({ exports, table }) => exports.rate_reap(table, now))
  }

  /**
   * A table for so many keys instead of the present one, unless that is larger already, with all
   * buckets, while other threads go on. One thread does it, for all. Throws CoreError without memory,
   * or with RATE_BUSY where a dead worker has left a lock: after `release`, call it again.
   */
  resize(keys: number, now: number): void {
    const host = this.#host
    this.#next ??= host.makeTable(keys)
    const next = this.#next
    this.demand('rate_move', ({ exports, table }) => exports.rate_move(table, next, now))
    host.adopt(next)
    this.#next = undefined
    this.epoch++
  }

  /** Frees what a worker that has died left locked. Its thread must have ended. */
  release(owner: number): void {
    this.demand('rate_release', ({ exports, table }) => exports.rate_release(table, owner))
  }

  /** Runs a call of the core. Throws CoreError for its codes, CoreTrap; the next call then works. */
  demand(during: string, call: (host: RateHost) => number): number {
    const result = this.attempt(during, call)
    if (result < 0) throw new CoreError(result, during)
    return result
  }

  /** As demand, but gives codes back. */
  attempt(during: string, call: (host: RateHost) => number): number {
    try {
      return untilFree(during, () => call(this.#host))
    } catch (error) {
      if (error instanceof CoreTrap) this.#recover()
      throw error
    }
  }

  #recover(): void {
    const dead = this.owner
    this.trapCount++
    this.epoch++
    this.#host = this.#makeHost()
    // Shared tables are where they were; those of one thread are gone with its memory.
    if (dead === 0) this.#next = undefined
    if (dead !== 0) this.release(dead)
  }
}

/**
 * One limit. Without a key it has one bucket; with keys, one for each. After take, peek and charge,
 * `wait`, `remaining` and `reset` tell of the bucket, until the limiter's next call.
 */
export class RateBuckets {
  readonly id: number
  /** Units of a full bucket. */
  readonly capacity: number
  readonly #limiter: RateLimiter
  readonly #period: number
  #host: RateHost
  #cell = 0
  #epoch = -1
  #isFull = false

  /** Use RateLimiter.limit. */
  constructor(limiter: RateLimiter, id: number, limit: RateLimit) {
    this.id = id
    this.capacity = limit.rate + (limit.burst ?? 0)
    this.#period = periodOf(limit)
    this.#limiter = limiter
    this.#host = limiter.host
    if (!(this.capacity >= 0)) throw new RangeError(`a bucket of ${this.capacity} units`)
  }

  /** Takes `amount` units when they are there: was it admitted? */
  take(amount: number, now: number, key?: string | Uint8Array): boolean {
    if (key !== undefined) return this.#onKey('rate_take', key, amount, now)
    if (this.#epoch !== this.#limiter.epoch) return this.#takeAnew(amount, now)
    const { exports, out } = this.#host
    let result: number
    try {
      result = exports.rate_take_at(
        this.#cell,
        this.id,
        this.#period,
        this.capacity,
        amount,
        now,
        out,
      )
    } catch {
      return this.#takeAnew(amount, now)
    }
    if (result < 0) return this.#takeAnew(amount, now)
    this.#isFull = false
    return result === 1
  }

  /** Would `amount` units be admitted? Takes none. */
  peek(amount: number, now: number, key: string | Uint8Array = ''): boolean {
    return this.#onKey('rate_peek', key, amount, now)
  }

  /** Takes what has been used already; a bucket without so many goes into debt. */
  charge(amount: number, now: number, key: string | Uint8Array = ''): void {
    this.#onKey('rate_charge', key, amount, now)
  }

  /** Gives back what was taken and not used, up to the capacity. */
  refund(amount: number, now: number, key: string | Uint8Array = ''): void {
    this.#onKey('rate_charge', key, -amount, now)
  }

  /** Milliseconds until the amount that was refused would be admitted; Infinity above the capacity. */
  get wait(): number {
    return this.#isFull ? this.#period : (this.#host.floats[this.#host.out >> 3] ?? 0)
  }

  /** Whole units left in the bucket; negative in debt. */
  get remaining(): number {
    return this.#isFull ? 0 : (this.#host.floats[(this.#host.out >> 3) + 1] ?? 0)
  }

  /** Milliseconds until the bucket is full. */
  get reset(): number {
    return this.#isFull ? this.#period : (this.#host.floats[(this.#host.out >> 3) + 2] ?? 0)
  }

  /** Looks the bucket up, remembers where it lies, and takes. */
  #takeAnew(amount: number, now: number): boolean {
    for (;;) {
      const cell = this.#limiter.attempt('rate_cell', ({ exports, table }) =>
        exports.rate_cell(table, this.id, now),
      )
      this.#host = this.#limiter.host
      if (cell === RATE_FULL) return this.#refuseFull()
      if (cell < 0 && cell > -4096) throw new CoreError(cell, 'rate_cell')
      this.#cell = cell
      this.#epoch = this.#limiter.epoch
      const result = this.#limiter.attempt('rate_take_at', ({ exports, out }) =>
        exports.rate_take_at(cell, this.id, this.#period, this.capacity, amount, now, out),
      )
      if (result === RATE_GONE) continue
      if (result < 0) throw new CoreError(result, 'taking from a rate bucket')
      this.#isFull = false
      return result === 1
    }
  }

  #onKey(
    name: 'rate_take' | 'rate_peek' | 'rate_charge',
    key: string | Uint8Array,
    amount: number,
    now: number,
  ): boolean {
    const result = this.#limiter.attempt(name, (host) => {
      const length = putKey(host, key)
      const ask: RateDemand = host.exports[name]
      const { table, out } = host
      const { id, capacity } = this
      return ask(table, id, host.key, length, this.#period, capacity, amount, now, out)
    })
    this.#host = this.#limiter.host
    if (result === RATE_FULL) return this.#refuseFull()
    if (result < 0) throw new CoreError(result, result === ERROR_ARGUMENT ? 'a demand' : name)
    this.#isFull = false
    return result === 1
  }

  #refuseFull(): boolean {
    this.#limiter.fullCount++
    this.#isFull = true
    return false
  }
}

/** No UTF-8 begins with it, so a digest is never taken for a string's own bytes. */
const digestMark = 0xff

/** Puts a key where the core finds it; its length in bytes. */
function putKey(host: RateHost, key: string | Uint8Array): number {
  const { bytes, keyBytes } = host
  if (typeof key === 'string') {
    if (key.length * 3 <= keyBytes) return bytes.write(key, host.key, 'utf8')
    return putKey(host, Buffer.from(key))
  }
  if (key.length <= keyBytes && !(key.length === 33 && key[0] === digestMark)) {
    bytes.set(key, host.key)
    return key.length
  }
  bytes[host.key] = digestMark
  bytes.set(createHash('sha256').update(key).digest(), host.key + 1)
  return 33
}
