/**
 * Results of active health checks, in memory that all workers of a proxy share. Each checked endpoint has a
 * slot. The worker that sets the time of the next probe sends the probe, so each one is sent once for the
 * whole proxy, and another worker continues if that worker dies.
 */
import { rateClock } from '../../../engines/core/rate.ts'
import { hashOf } from './request-cap.ts'

/** Number of slots. Endpoints beyond them are not checked. */
const maxSlots = 16_384
/** Number of slots in which the one of an endpoint is looked for. */
const maxSteps = 64
/** A slot whose probe is overdue by this time belongs to an endpoint that is gone. */
const abandonedMs = 900_000
/** More than the longest interval. A probe that is due later was planned before the clock began again. */
const maxDelayMs = 600_000

export interface HealthMemory {
  /** Hash of the endpoint and its check; 0 if the slot is free. */
  readonly keys: BigInt64Array<SharedArrayBuffer>
  /** Time of the next probe, in milliseconds of the machine's clock modulo 2^32. */
  readonly nextAt: Int32Array<SharedArrayBuffer>
  /** The `HealthState`: bit 0 is set if it is known, bit 1 if it is healthy; the rest is the streak. */
  readonly states: Int32Array<SharedArrayBuffer>
  /** Index of the worker that sent the last probe. */
  readonly owners: Int32Array<SharedArrayBuffer>
}

export function createHealthMemory(slots = maxSlots): HealthMemory {
  const ints = () => new Int32Array(new SharedArrayBuffer(slots * Int32Array.BYTES_PER_ELEMENT))
  const keys = new SharedArrayBuffer(slots * BigInt64Array.BYTES_PER_ELEMENT)
  return { keys: new BigInt64Array(keys), nextAt: ints(), states: ints(), owners: ints() }
}

/** Milliseconds modulo 2^32. Differences of two such times are right if they are less than 24 days. */
export const healthClock = (): number => Math.trunc(rateClock()) | 0

/** Milliseconds until a time of the clock; 0 or less if it has passed. */
function timeUntil(at: number, now: number): number {
  const left = (at - now) | 0
  return left > maxDelayMs ? -abandonedMs - 1 : left
}

interface HealthThresholds {
  readonly healthyThreshold: number
  readonly unhealthyThreshold: number
  /** Whether the endpoint is unhealthy until its first probe succeeds. */
  readonly startsUnhealthy?: boolean | undefined
}

const known = 1
const healthy = 2
const streakShift = 2

/** Returns the state after a probe. */
function nextState(state: number, isOk: boolean, rules: HealthThresholds): number {
  const isKnown = (state & known) !== 0
  const wasHealthy = isHealthy(state, rules)
  if (isOk === wasHealthy) return known | (isOk ? healthy : 0)
  const streak = (state >> streakShift) + 1
  // A new endpoint is healthy after one successful probe.
  const limit = isOk ? (isKnown ? rules.healthyThreshold : 1) : rules.unhealthyThreshold
  if (streak >= limit) return known | (isOk ? healthy : 0)
  return (streak << streakShift) | (state & (known | healthy))
}

export const isHealthy = (state: number, { startsUnhealthy }: HealthThresholds): boolean =>
  (state & known) === 0 ? startsUnhealthy !== true : (state & healthy) !== 0

/** The slot of one endpoint, as used by one worker. */
export class HealthSlot {
  readonly #memory: HealthMemory
  readonly #at: number
  readonly #key: bigint
  readonly #worker: number

  constructor(memory: HealthMemory, at: number, key: bigint, worker: number) {
    this.#memory = memory
    this.#at = at
    this.#key = key
    this.#worker = worker
  }

  /** Whether the slot was given to another endpoint, because this one was not checked for long. */
  get isLost(): boolean {
    return Atomics.load(this.#memory.keys, this.#at) !== this.#key
  }

  get state(): number {
    return Atomics.load(this.#memory.states, this.#at)
  }

  /** Whether this worker sent the last probe. */
  get isOwn(): boolean {
    return Atomics.load(this.#memory.owners, this.#at) === this.#worker
  }

  /** Milliseconds until the next probe; 0 or less if it is due. */
  dueIn(now: number): number {
    return timeUntil(Atomics.load(this.#memory.nextAt, this.#at), now)
  }

  /** Returns whether this worker must send the probe that is due. The next one is due after `afterMs`. */
  claim(now: number, afterMs: number): boolean {
    const { nextAt, owners } = this.#memory
    const before = Atomics.load(nextAt, this.#at)
    if (timeUntil(before, now) > 0) return false
    const next = (now + afterMs) | 0
    if (Atomics.compareExchange(nextAt, this.#at, before, next) !== before) return false
    Atomics.store(owners, this.#at, this.#worker)
    return true
  }

  /** Records the result of a probe. Returns whether the endpoint was healthy before, and is now. */
  record(isOk: boolean, rules: HealthThresholds): { readonly was: boolean; readonly is: boolean } {
    const { states } = this.#memory
    for (let state = this.state; ; ) {
      const next = nextState(state, isOk, rules)
      const found = Atomics.compareExchange(states, this.#at, state, next)
      if (found === state) return { was: isHealthy(state, rules), is: isHealthy(next, rules) }
      state = found
    }
  }
}

/** All slots, as used by one worker. */
export class HealthSlots {
  readonly #memory: HealthMemory
  readonly #worker: number

  constructor(memory = createHealthMemory(), worker = 0) {
    this.#memory = memory
    this.#worker = worker
  }

  /** Returns the slot of an endpoint, or a free or abandoned one; undefined if there is none. */
  of(name: string, now: number): HealthSlot | undefined {
    const { keys } = this.#memory
    const key = hashOf(name)
    const first = Number(BigInt.asUintN(32, key)) % keys.length
    const places = Array.from(
      { length: Math.min(maxSteps, keys.length) },
      (_, step) => (first + step) % keys.length,
    )
    const slot = (at: number) => new HealthSlot(this.#memory, at, key, this.#worker)
    const own = places.find((at) => Atomics.load(keys, at) === key)
    if (own !== undefined) {
      this.#forgetOld(own, now)
      return slot(own)
    }
    for (const at of places) {
      const found = Atomics.load(keys, at)
      if (found === key) return slot(at)
      if (found !== 0n && !this.#isAbandoned(at, now)) continue
      // Set before the key, so that no other worker takes the slot for an abandoned one.
      Atomics.store(this.#memory.nextAt, at, now)
      Atomics.store(this.#memory.states, at, 0)
      const before = Atomics.compareExchange(keys, at, found, key)
      if (before === found || before === key) return slot(at)
    }
    return undefined
  }

  /** Drops the results of an endpoint that was gone for long. Another one may have its address now. */
  #forgetOld(at: number, now: number): void {
    const { nextAt, states } = this.#memory
    const before = Atomics.load(nextAt, at)
    if (timeUntil(before, now) >= -abandonedMs) return
    if (Atomics.compareExchange(nextAt, at, before, now) === before) Atomics.store(states, at, 0)
  }

  #isAbandoned(at: number, now: number): boolean {
    return timeUntil(Atomics.load(this.#memory.nextAt, at), now) < -abandonedMs
  }
}
