/** Estimates quantiles of a histogram. */

/**
 * Returns a quantile in the unit of the bounds, as Prometheus estimates it, or undefined if nothing was counted.
 * `buckets` are upper bounds in ascending order with the count of each bucket alone.
 */
export function quantileOf(
  buckets: readonly (readonly [bound: number, count: number])[],
  quantile: number,
): number | undefined {
  const total = buckets.reduce((sum, [, count]) => sum + count, 0)
  if (total <= 0) return undefined
  const rank = quantile * total
  let [low, below] = [0, 0]
  for (const [bound, count] of buckets) {
    if (below + count >= rank) {
      return bound === Number.POSITIVE_INFINITY
        ? low
        : low + ((bound - low) * (rank - below)) / Math.max(count, 1e-9)
    }
    low = bound
    below += count
  }
  return low
}
