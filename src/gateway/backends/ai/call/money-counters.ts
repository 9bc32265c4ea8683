/** Sums of money by labels, for metrics. */
import type { Cost } from '../../../../engines/messages/cost/cost.ts'
import { usdNumber } from '../../../../engines/messages/cost/money.ts'
import type { MetricName, Series } from '../../../proxy/telemetry/metric-definitions.ts'
import { type Label, timedCounters } from '../../../proxy/telemetry/timed-counters.ts'

/** Units of `Money` in a millionth of a USD. */
const million = 1_000_000n

export class MoneyCounters {
  readonly #counters: ReturnType<typeof timedCounters>

  constructor(metric: MetricName) {
    this.#counters = timedCounters(metric)
  }

  /**
   * Adds what is known of a cost. Whole millionths of USD and the rest are added up apart, so that both sums are exact:
   * an amount in 10⁻¹² USD is soon more than a number can hold.
   */
  add(labels: readonly Label[], { status, total }: Pick<Cost, 'status' | 'total'>): void {
    if (status === 'unknown') return
    this.#counters.record(labels, Number(total / million), Number(total % million))
  }

  series(): readonly Series[] {
    return this.#counters.snapshot().map(({ duration, bytes }) => {
      const whole = BigInt(duration.values.at(-1) ?? 0)
      const total = whole * million + BigInt(bytes.values[0] ?? 0)
      return { labels: duration.labels, values: [usdNumber(total)] }
    })
  }
}
