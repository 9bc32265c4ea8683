/** What is counted of endpoint pickers. */
import {
  type MetricsSnapshot,
  metricDefinitions,
} from '../../../proxy/telemetry/metric-definitions.ts'
import { TimedCounters } from '../../../proxy/telemetry/timed-counters.ts'
import type { BackendRecord, BackendTelemetry } from '../../../proxy/telemetry/types.ts'
import { PoolCall } from './pool-call.ts'

export class PoolTelemetry implements BackendTelemetry {
  readonly #picks = new TimedCounters(
    metricDefinitions.inference_pick_duration_seconds.buckets ?? [],
    (labels) => labels.map(String),
  )

  count(record: BackendRecord): void {
    if (!(record instanceof PoolCall) || record.outcome === undefined) return
    const { name, failureMode, outcome, pickSeconds } = record
    this.#picks.record([name, failureMode, outcome], pickSeconds, 0)
  }

  addTo(snapshot: MetricsSnapshot): MetricsSnapshot {
    const picks = this.#picks.snapshot()
    return {
      ...snapshot,
      inference_picks_total: picks.map(({ count }) => count),
      inference_pick_duration_seconds: picks.map(({ duration }) => duration),
    }
  }
}
