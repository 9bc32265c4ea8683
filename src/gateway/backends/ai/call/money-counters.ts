/** Sums of money by labels, for metrics. */
import type { Cost } from '../../../../engines/messages/cost/cost.ts'
import { type Money, usdNumber } from '../../../../engines/messages/cost/money.ts'
import type { Series } from '../../../proxy/telemetry/metric-definitions.ts'
import { type Label, TimedCounters } from '../../../proxy/telemetry/timed-counters.ts'

/** Units of `Money` in a millionth of a USD. */
const million = 1_000_000n

export class MoneyCounters {
  readonly #counters: TimedCounters
  readonly #bounds: readonly Money[]

  /** `bounds` are the upper bounds of buckets in ascending order. */
  constructor(bounds: readonly Money[] = []) {
    this.#counters = new TimedCounters(bounds.map(usdNumber), (labels) => labels.map(String))
    this.#bounds = bounds
  }

  /**
   * Adds what is known of a cost. Whole millionths of USD and the rest are added up apart, so that both sums are exact:
   * an amount in 10⁻¹² USD is soon more than a number can hold.
   */
  add(labels: readonly Label[], { status, total }: Pick<Cost, 'status' | 'total'>): void {
    if (status === 'unknown') return
    const [whole, rest] = [Number(total / million), Number(total % million)]
    this.#counters.recordIn(this.#bucketOf(total), labels, whole, rest)
  }

  #bucketOf(amount: Money): number {
    let bucket = 0
    while (amount > (this.#bounds[bucket] ?? amount)) bucket++
    return bucket
  }

  /** Returns the sums, in USD. */
  sums(): readonly Series[] {
    return this.histograms().map(({ labels, values }) => ({ labels, values: values.slice(-1) }))
  }

  /** Returns the number of amounts in each bucket, and their sum in USD. */
  histograms(): readonly Series[] {
    return this.#counters.snapshot().map(({ duration, bytes }) => {
      const whole = BigInt(duration.values.at(-1) ?? 0)
      const total = whole * million + BigInt(bytes.values[0] ?? 0)
      return {
        labels: duration.labels,
        values: [...duration.values.slice(0, -1), usdNumber(total)],
      }
    })
  }
}
