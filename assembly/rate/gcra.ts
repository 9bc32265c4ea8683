/**
 * One bucket is one i64: the instant at which it is full again (the 'theoretical arrival time' of
 * the generic cell rate algorithm, ITU-T I.371), in ticks of a nanosecond. A bucket that is full by
 * now is the same as one that never existed, so what is idle can be forgotten without loss.
 *
 *     level                     taken units * interval
 *     now ------------------------------> instant          capacity * interval = tolerance
 *
 * Time comes from the caller. Among callers with different clocks the later one decides: over any
 * span, what is admitted is at most capacity + elapsed / interval by the latest clock.
 *
 * With threads every access to an instant is atomic; without, a plain one: the same source is
 * compiled both ways.
 */

/** Instants are at least 1, so that zeroed memory is a table of free cells. */
export const GONE: i64 = 0

/** Longest refill, and longest debt, that an instant can hold: 36 years. Ticks never overflow. */
const LONGEST: i64 = 1 << 60
const LATEST: f64 = 4.6e12
const TICKS: f64 = 1e6
/** A period that is whole ticks stays so, though its f64 may lie a little above. */
const EXACT: f64 = 1 - 1 / 1125899906842624.0

/** A limit and a demand, in ticks; set by `prepare`, one call at a time. */
export let interval: i64 = 0
export let tolerance: i64 = 0
export let increment: i64 = 0
export let clock: i64 = 0

// @ts-ignore: decorator
@inline
export function loadInstant(cell: usize): i64 {
  if (ASC_FEATURE_THREADS) return atomic.load<i64>(cell)
  else return load<i64>(cell)
}

// @ts-ignore: decorator
@inline
export function storeInstant(cell: usize, instant: i64): void {
  if (ASC_FEATURE_THREADS) atomic.store<i64>(cell, instant)
  else store<i64>(cell, instant)
}

/** Replaces `old` by `fresh` and returns the value found, which is `old` if that succeeded. */
// @ts-ignore: decorator
@inline
export function swapInstant(cell: usize, old: i64, fresh: i64): i64 {
  if (ASC_FEATURE_THREADS) {
    return atomic.cmpxchg<i64>(cell, old, fresh)
  } else {
    const seen = load<i64>(cell)
    if (seen == old) store<i64>(cell, fresh)
    return seen
  }
}

/** Milliseconds as ticks; 0 for an invalid time or one beyond the year 2115. */
// @ts-ignore: decorator
@inline
export function ticksOf(now: f64): i64 {
  return now >= 0 && now <= LATEST ? <i64>(now * TICKS) + 1 : 0
}

// @ts-ignore: decorator
@inline
function times(units: f64, ticks: i64): i64 {
  return units * <f64>ticks < <f64>LONGEST ? <i64>units * ticks : LONGEST
}

// What `prepare` was last asked: hosts ask much the same again and again.
let lastPeriod: f64 = NaN
let lastCapacity: f64 = NaN
let lastAmount: f64 = NaN
let lastNow: f64 = NaN

/**
 * Takes a limit (`period` ms for one unit, a bucket of `capacity` units), a demand and a time; false
 * when one of them is no such thing. The period is rounded up to a tick: never above the rate.
 */
// @ts-ignore: decorator
@inline
export function prepare(period: f64, capacity: f64, amount: f64, now: f64): bool {
  if (now != lastNow && !setClock(now)) return false
  if (period == lastPeriod && capacity == lastCapacity && amount == lastAmount) return true
  return setDemand(period, capacity, amount)
}

function setClock(now: f64): bool {
  lastNow = NaN
  clock = ticksOf(now)
  if (clock == 0) return false
  lastNow = now
  return true
}

function setDemand(period: f64, capacity: f64, amount: f64): bool {
  lastPeriod = NaN
  const ticks = ceil(period * TICKS * EXACT)
  if (!(ticks >= 1 && ticks < <f64>LONGEST)) return false
  if (!(capacity >= 0) || !(abs(amount) < Infinity)) return false
  interval = <i64>ticks
  tolerance = times(floor(capacity), interval)
  increment = amount < 0 ? -times(floor(-amount), interval) : times(ceil(amount), interval)
  lastPeriod = period
  lastCapacity = capacity
  lastAmount = amount
  return true
}

/** Ticks by which a demand exceeds the bucket; admitted when that is at most 0. */
// @ts-ignore: decorator
@inline
export function excess(instant: i64): i64 {
  return max(instant, clock) - clock + increment - tolerance
}

/** The instant after a demand was taken, whether there was room or not. */
// @ts-ignore: decorator
@inline
export function charged(instant: i64): i64 {
  return min(max(instant, clock) + increment, clock + 2 * LONGEST)
}

/** The instant after units came back; a full bucket takes none. */
// @ts-ignore: decorator
@inline
export function refunded(instant: i64): i64 {
  return max(instant + increment, min(instant, clock))
}

/** Is the bucket full, and has been for a second? The second is what callers' clocks may differ by. */
// @ts-ignore: decorator
@inline
export function isIdle(instant: i64, now: i64): bool {
  return instant + 1000000000 <= now
}

/** Whole units in `left` ticks; debt counts in full units. */
// @ts-ignore: decorator
@inline
function unitsIn(left: i64): f64 {
  // Below 2^52 the quotient of two f64 has the right floor, and is much quicker.
  if (left >= 0 && left < (<i64>1) << 52) return floor(<f64>left / <f64>interval)
  return left >= 0 ? <f64>(left / interval) : -<f64>((interval - 1 - left) / interval)
}

/** Writes RATE_WAIT, RATE_REMAINING and RATE_RESET of a bucket at `instant`. */
export function report(out: usize, instant: i64, wait: i64): void {
  const used = max(instant, clock) - clock
  const hopeless = increment > tolerance
  store<f64>(out, wait <= 0 ? 0 : hopeless ? Infinity : <f64>wait / TICKS)
  store<f64>(out, unitsIn(tolerance - used), 8)
  store<f64>(out, <f64>used / TICKS, 16)
}
