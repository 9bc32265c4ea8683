// Local rate limits. A bucket is one number that all workers of an Envoy share: the time at which it will be full
// again, in nanoseconds (GCRA). Workers change it with compare-and-swap, so that they admit no more together than one
// would. A worker that loses ATTEMPTS races for one request refuses it.
import { append, appendAscii, appendByte, appendNumber, Bytes, newBytes, newRecord } from '../../texts/bytes'
import { now, sharedNumber, shareCas, shareNumber } from './host'

const ATTEMPTS: i32 = 1000

@unmanaged
export class Limit {
  next: Limit
  key: Bytes
  countsTokens: bool
  capacity: i64
  /** Nanoseconds in which one unit returns. */
  interval: f64
}

/** Status of the bucket that was asked last. */
export let remaining: i64 = 0
export let resetSeconds: i64 = 0
export let waitSeconds: i64 = 0

/** A limit of `rate` units in `seconds`. Limits of the same name share a bucket, also with those of an earlier configuration. */
export function newLimit(name: Bytes, countsTokens: bool, rate: i64, seconds: i64, burst: i64): Limit {
  const limit = changetype<Limit>(newRecord(offsetof<Limit>()))
  limit.key = newBytes()
  limit.countsTokens = countsTokens
  limit.capacity = rate + burst
  limit.interval = <f64>seconds * 1e9 / <f64>rate
  appendAscii(limit.key, countsTokens ? 'sluice/tokens/' : 'sluice/requests/')
  appendNumber(limit.key, rate)
  appendByte(limit.key, 47)
  appendNumber(limit.key, seconds)
  appendByte(limit.key, 47)
  appendNumber(limit.key, burst)
  appendByte(limit.key, 47)
  append(limit.key, name.data, name.used)
  // Envoy configures the filter on its main thread before workers have it, so that no worker creates a bucket.
  if (sharedNumber(limit.key) == -1) shareNumber(limit.key, 0, 0)
  return limit
}

function describe(limit: Limit, fullAt: i64, time: i64, wait: f64): void {
  const used = <f64>max<i64>(0, fullAt - time)
  remaining = limit.capacity - <i64>ceil(used / limit.interval)
  resetSeconds = <i64>(used / 1e9)
  waitSeconds = max<i64>(1, <i64>ceil(wait / 1e9))
}

/** Are `units` available? Takes them if `takes`; false also if the bucket cannot be read. */
export function admit(limit: Limit, units: i64, takes: bool): bool {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const stored = sharedNumber(limit.key)
    const cas = shareCas
    if (stored < 0) break
    const time = now()
    const fullAt = max<i64>(stored, time)
    const later = fullAt + <i64>(limit.interval * <f64>units)
    const over = <f64>(later - time) - limit.interval * <f64>limit.capacity
    if (over > 1) {
      describe(limit, fullAt, time, over)
      return false
    }
    if (!takes) {
      describe(limit, fullAt, time, 0)
      return true
    }
    if (shareNumber(limit.key, later, cas)) {
      describe(limit, later, time, 0)
      return true
    }
  }
  remaining = 0
  resetSeconds = 1
  waitSeconds = 1
  return false
}

/** Takes units that were used already; the bucket may go into debt. False if that failed. */
export function charge(limit: Limit, units: i64): bool {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const stored = sharedNumber(limit.key)
    const cas = shareCas
    if (stored < 0) return false
    const later = max<i64>(stored, now()) + <i64>(limit.interval * <f64>units)
    if (shareNumber(limit.key, later, cas)) return true
  }
  return false
}

