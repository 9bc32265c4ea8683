/** What requests to models have cost, as proxies count it. */
import { type Sample, sumBy } from '../source/prometheus.ts'

/** What is known of the cost of some requests since the proxy started. */
interface KnownCost {
  /** In USD. */
  readonly usd: number
  /** Whether part of it is not known. */
  readonly isPartial: boolean
}

/** Returns the cost by the values of some labels, whose JSON is the key. */
export function costsBy(samples: readonly Sample[], by: readonly string[]): Map<string, KnownCost> {
  const costs = new Map<string, KnownCost>()
  const known = sumBy(samples, 'sluice_gen_ai_client_cost_usd_total', by)
  for (const { labels, value } of known) {
    costs.set(JSON.stringify(labels), { usd: value, isPartial: false })
  }
  for (const { labels: all } of sumBy(samples, 'sluice_model_cost_lookups_total', [
    'status',
    ...by,
  ])) {
    const [status, ...labels] = all
    if (status !== 'unknown' && status !== 'partial') continue
    const key = JSON.stringify(labels)
    costs.set(key, { usd: costs.get(key)?.usd ?? 0, isPartial: true })
  }
  return costs
}

const options = { style: 'currency', currency: 'USD' } as const
const whole = new Intl.NumberFormat('en', options)
const small = new Intl.NumberFormat('en', { ...options, maximumSignificantDigits: 3 })

/** Formats an amount in USD; small ones with more digits. */
export const usdFormat = (usd: number): string => (usd < 1 ? small : whole).format(usd)

/** Formats a cost; it is a lower bound if part of it is not known. */
export function costText(cost: KnownCost | undefined): string {
  if (cost === undefined) return ''
  if (!cost.isPartial) return usdFormat(cost.usd)
  return cost.usd === 0 ? 'no known price' : `${usdFormat(cost.usd)} and more`
}
