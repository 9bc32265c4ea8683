/** Limits of rates, and their buckets in the memory of a RateHost. */
import { sha256 } from '../../ground/base/digest.ts'
import { limitPeriodMs } from '../../ground/base/limit-periods.ts'
import { ERROR_ARGUMENT, RATE_BUSY, RATE_FULL, RATE_GONE } from './abi.ts'
import { CoreError, CoreTrap } from './errors.ts'
import type { RateDemand } from './exports.ts'
import { type RateHost, untilFree } from './rate-host.ts'

export type RateUnit = keyof typeof limitPeriodMs

/** `rate` units per `unit` of time; a full bucket has `burst` units more (default 0). */
export interface RateLimit {
  readonly rate: number
  /** A number is in milliseconds. */
  readonly unit: RateUnit | number
  readonly burst?: number
}

/** Milliseconds in which one unit is refilled. */
function periodOf({ rate, unit }: RateLimit): number {
  const period = (typeof unit === 'number' ? unit : limitPeriodMs[unit]) / rate
  if (!(period > 0 && period < Number.POSITIVE_INFINITY)) {
    throw new RangeError(`a rate limit of ${rate} a unit of ${unit}`)
  }
  return period
}

export class RateLimiter {
  readonly #makeHost: () => RateHost
  #host: RateHost
  /** The new table of a resize that was begun and has not finished. */
  #next: number | undefined
  /** Incremented whenever the cells that RateBuckets remember may have become invalid in this thread. */
  epoch = 0
  /** Number of calls refused because no cell was free for a new bucket: use a larger table. */
  fullCount = 0
  /** Number of instances lost to traps, which are bugs. Buckets in shared memory survive. */
  trapCount = 0

  /** `makeHost` returns the memory to use; it is called again after a trap. */
  constructor(makeHost: () => RateHost) {
    this.#makeHost = makeHost
    this.#host = makeHost()
  }

  /** The memory with this thread's key and record. */
  get host(): RateHost {
    return this.#host
  }

  /** This thread's number, which `release` needs after the thread has died; 0 without `shared`. */
  get owner(): number {
    return this.#host.owner
  }

  /** Returns the buckets of a limit. `id` is a 32-bit integer that always identifies this limit. */
  limit(id: number, limit: RateLimit): RateBuckets {
    return new RateBuckets(this, id, limit)
  }

  /**
   * Changes the limit of an id; the number of used units of its buckets stays the same. Call it
   * once, in one thread. Returns the number of buckets.
   */
  change(id: number, from: RateLimit, to: RateLimit, now: number): number {
    const ratio = periodOf(to) / periodOf(from)
    return this.demand('rate_rescale', ({ exports, table }) =>
      exports.rate_rescale(table, id, ratio, now),
    )
  }

  /** Number of buckets that are not known to be full. */
  count(): number {
    return this.demand('rate_count', ({ exports, table }) => exports.rate_count(table))
  }

  /** Removes full buckets and returns their number. Needed only for statistics: full buckets are reused. */
  reap(now: number): number {
    return this.demand('rate_reap', ({ exports, table }) => exports.rate_reap(table, now))
  }

  /**
   * Moves all buckets to a table for `keys` keys, unless the current table is larger, while other
   * threads continue. Call it in one thread for all. Throws CoreError if memory is short, or with
   * RATE_BUSY if a dead worker still holds a lock: then call it again after `release`.
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

  /** Releases the locks of a dead worker, whose thread must have ended. */
  release(owner: number): void {
    this.demand('rate_release', ({ exports, table }) => exports.rate_release(table, owner))
  }

  /** Runs a call of the core. Throws CoreError if it returns a code. After a CoreTrap, later calls work. */
  demand(during: string, call: (host: RateHost) => number): number {
    const result = this.attempt(during, call)
    if (result < 0) throw new CoreError(result, during)
    return result
  }

  /** Like `demand`, but returns negative codes instead of throwing a CoreError. */
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
    // Tables in shared memory still exist; the table of a single thread is lost with its memory.
    if (dead === 0) this.#next = undefined
    if (dead !== 0) this.release(dead)
  }
}

/**
 * The buckets of one limit: one bucket if calls pass no key, otherwise one for each key. After `take`,
 * `peek` and `charge`, the getters `wait`, `remaining` and `reset` describe the bucket, until the
 * limiter's next call.
 */
export class RateBuckets {
  readonly id: number
  /** Number of units in a full bucket. */
  readonly capacity: number
  readonly #limiter: RateLimiter
  readonly #period: number
  #host: RateHost
  #cell = 0
  #epoch = -1
  #isFull = false

  /** Call RateLimiter.limit instead. */
  constructor(limiter: RateLimiter, id: number, limit: RateLimit) {
    this.id = id
    this.capacity = limit.rate + (limit.burst ?? 0)
    this.#period = periodOf(limit)
    this.#limiter = limiter
    this.#host = limiter.host
    if (!(this.capacity >= 0)) throw new RangeError(`a bucket of ${this.capacity} units`)
  }

  /** Takes `amount` units if the bucket has them. Returns whether it did. */
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

  /** Returns whether `amount` units would be admitted, without taking them. */
  peek(amount: number, now: number, key: string | Uint8Array = ''): boolean {
    return this.#onKey('rate_peek', key, amount, now)
  }

  /** Charges units after the fact; the balance may go negative. */
  charge(amount: number, now: number, key: string | Uint8Array = ''): void {
    this.#onKey('rate_charge', key, amount, now)
  }

  /** Returns unused units, up to the capacity. */
  refund(amount: number, now: number, key: string | Uint8Array = ''): void {
    this.#onKey('rate_charge', key, -amount, now)
  }

  /** Milliseconds until the refused amount would be admitted; Infinity if it exceeds the capacity. */
  get wait(): number {
    return this.#isFull ? this.#period : (this.#host.floats[this.#host.out >> 3] ?? 0)
  }

  /** Whole units left in the bucket; negative if the bucket is in debt. */
  get remaining(): number {
    return this.#isFull ? 0 : (this.#host.floats[(this.#host.out >> 3) + 1] ?? 0)
  }

  /** Milliseconds until the bucket is full. */
  get reset(): number {
    return this.#isFull ? this.#period : (this.#host.floats[(this.#host.out >> 3) + 2] ?? 0)
  }

  /** Finds the bucket's cell, remembers it, and takes the units. */
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

  #onKey(name: KeyDemand, key: string | Uint8Array, amount: number, now: number): boolean {
    const result = this.#ask(name, key, amount, now)
    this.#host = this.#limiter.host
    if (result === RATE_FULL) return this.#refuseFull()
    if (result < 0) throw new CoreError(result, result === ERROR_ARGUMENT ? 'a demand' : name)
    this.#isFull = false
    return result === 1
  }

  /** Asks the core. Makes closures only if another thread has the lock or the core fails. */
  #ask(name: KeyDemand, key: string | Uint8Array, amount: number, now: number): number {
    try {
      const result = this.#askOnce(this.#limiter.host, name, key, amount, now)
      if (result !== RATE_BUSY) return result
    } catch (error) {
      return this.#limiter.attempt(name, () => {
        throw error
      })
    }
    return this.#askAgain(name, key, amount, now)
  }

  #askAgain(name: KeyDemand, key: string | Uint8Array, amount: number, now: number): number {
    return this.#limiter.attempt(name, (host) => this.#askOnce(host, name, key, amount, now))
  }

  #askOnce(
    host: RateHost,
    name: KeyDemand,
    key: string | Uint8Array,
    amount: number,
    now: number,
  ): number {
    const length = putKey(host, key)
    const ask: RateDemand = host.exports[name]
    const { table, out } = host
    const { id, capacity } = this
    return ask(table, id, host.key, length, this.#period, capacity, amount, now, out)
  }

  /** Whether the last call was refused because no cell was free for a new bucket. */
  get isTableFull(): boolean {
    return this.#isFull
  }

  #refuseFull(): boolean {
    this.#limiter.fullCount++
    this.#isFull = true
    return false
  }
}

/** Functions of the core that find a bucket by its key. */
type KeyDemand = 'rate_take' | 'rate_peek' | 'rate_charge'

/** First byte of a digest. UTF-8 never begins with it, so no digest equals the bytes of a string. */
const digestMark = 0xff

/** Copies a key to the core. Returns its length in bytes. */
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
  bytes.set(sha256(key), host.key + 1)
  return 33
}
