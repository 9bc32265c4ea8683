/** Rates of a proxy, from its counters at two times. */
import { costsBy } from '../../models/cost.ts'
import { type Sample, sumBy } from '../../source/prometheus.ts'

export interface Counters {
  readonly timeMs: number
  readonly requests: number
  readonly errors: number
  readonly tokens: number
  /** In USD, as far as it is known. */
  readonly cost: number
  /** Whether part of the cost is not known. */
  readonly isPartial: boolean
  /** Requests that took at most so many seconds, by increasing seconds. */
  readonly buckets: readonly (readonly [seconds: number, count: number])[]
}

export interface Rates {
  readonly requests: number
  readonly errors: number
  readonly tokens: number
  /** USD per hour. */
  readonly cost: number
  /** Undefined if no request ended. */
  readonly p50Ms: number | undefined
  readonly p99Ms: number | undefined
}

/** Tokens of caches are not counted again: those of the input include them. */
export function countersOf(samples: readonly Sample[], timeMs: number): Counters {
  const cost = costsBy(samples, []).get('[]')
  const byStatus = sumBy(samples, 'sluice_requests_total', ['status'])
  const total = (sums: typeof byStatus) => sums.reduce((sum, { value }) => sum + value, 0)
  const byType = sumBy(samples, 'sluice_gen_ai_client_token_usage_sum', ['gen_ai_token_type'])
  return {
    timeMs,
    requests: total(byStatus),
    errors: total(byStatus.filter(({ labels }) => labels[0]?.startsWith('5'))),
    tokens: total(byType.filter(({ labels: [type] }) => type === 'input' || type === 'output')),
    cost: cost?.usd ?? 0,
    isPartial: cost?.isPartial === true,
    buckets: sumBy(samples, 'sluice_request_duration_seconds_bucket', ['le'])
      .map(({ labels: [le], value }) => [le === '+Inf' ? Infinity : Number(le), value] as const)
      .sort(([a], [b]) => a - b),
  }
}

/** Undefined if the process has restarted in between. */
export function ratesBetween(before: Counters, after: Counters): Rates | undefined {
  const seconds = (after.timeMs - before.timeMs) / 1000
  if (seconds <= 0 || after.requests < before.requests) return undefined
  const earlier = new Map(before.buckets)
  const buckets = after.buckets.map(([le, count]) => [le, count - (earlier.get(le) ?? 0)] as const)
  return {
    requests: (after.requests - before.requests) / seconds,
    errors: (after.errors - before.errors) / seconds,
    tokens: (after.tokens - before.tokens) / seconds,
    cost: ((after.cost - before.cost) * 3600) / seconds,
    p50Ms: quantileMs(buckets, 0.5),
    p99Ms: quantileMs(buckets, 0.99),
  }
}

/** The quantile of a histogram with cumulative buckets, as Prometheus estimates it. */
function quantileMs(
  buckets: readonly (readonly [seconds: number, count: number])[],
  quantile: number,
): number | undefined {
  const total = buckets.at(-1)?.[1] ?? 0
  if (total <= 0) return undefined
  const rank = quantile * total
  let [low, below] = [0, 0]
  for (const [le, count] of buckets) {
    if (count >= rank) {
      if (le === Infinity) return low * 1000
      return (low + ((le - low) * (rank - below)) / Math.max(count - below, 1e-9)) * 1000
    }
    low = le
    below = count
  }
  return low * 1000
}
