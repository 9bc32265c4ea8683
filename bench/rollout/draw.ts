/** Draws random numbers of requests for simulated rollouts. */
import type { Random } from '../../test/virtual-time/random.ts'

/** Draws how many of `total` requests fail, from geometrically distributed distances between failures. */
export function drawCount(random: Random, total: number, share: number): number {
  if (share === 0) return 0
  const scale = Math.log(1 - share)
  for (let at = 0, count = 0; ; count++) {
    at += Math.floor(Math.log(1 - random.next()) / scale) + 1
    if (at > total) return count
  }
}

/** Draws how many of `total` requests are in each bucket of a histogram. The shares of the buckets add up to 1. */
export function drawBuckets(random: Random, total: number, shares: readonly number[]): number[] {
  const counts = shares.map(() => 0)
  for (let drawn = 0; drawn < total; drawn++) {
    let rest = random.next()
    let bucket = 0
    while (bucket < shares.length - 1 && rest >= (shares[bucket] ?? 0)) {
      rest -= shares[bucket] ?? 0
      bucket++
    }
    counts[bucket] = (counts[bucket] ?? 0) + 1
  }
  return counts
}
