/** What is counted of the side of backends. */
import { type MetricsSnapshot, metricDefinitions } from './metric-definitions.ts'
import { type Label, TimedCounters } from './timed-counters.ts'

/** The only transport to backends so far. */
const plaintext: readonly Label[] = ['plaintext']

export class UpstreamTelemetry {
  readonly #connects = new TimedCounters(
    metricDefinitions.upstream_connect_duration_seconds.buckets ?? [],
    (transport) => transport.map(String),
  )
  readonly #callouts = new TimedCounters(
    metricDefinitions.upstream_call_duration_seconds.buckets ?? [],
    (labels) => labels.map(String),
  )
  /** What is summed in place of bytes are retries. */
  readonly #retries: TimedCounters
  readonly #lookups = { ok: 0, failed: 0 }
  #ejections = 0

  /** `labelTexts`: the texts of the labels of a request. */
  constructor(labelTexts: (labels: readonly Label[]) => readonly string[]) {
    this.#retries = new TimedCounters([], labelTexts)
  }

  connected(seconds: number): void {
    this.#connects.record(plaintext, seconds, 0)
  }

  /** By a policy, which has asked a service. */
  called(subtype: string, seconds: number): void {
    this.#callouts.record(['Policy', subtype], seconds, 0)
  }

  retried(labels: readonly Label[], times: number): void {
    this.#retries.record(labels, 0, times)
  }

  lookedUp(result: 'ok' | 'failed'): void {
    this.#lookups[result]++
  }

  ejected(): void {
    this.#ejections++
  }

  addTo(snapshot: MetricsSnapshot): MetricsSnapshot {
    const { ok, failed } = this.#lookups
    return {
      ...snapshot,
      retries_total: this.#retries.snapshot().map(({ bytes }) => bytes),
      upstream_connect_duration_seconds: this.#connects.snapshot().map(({ duration }) => duration),
      upstream_call_duration_seconds: this.#callouts.snapshot().map(({ duration }) => duration),
      upstream_ejections_total: [{ labels: [], values: [this.#ejections] }],
      dns_lookups_total: [
        { labels: ['ok'], values: [ok] },
        { labels: ['failed'], values: [failed] },
      ],
    }
  }
}
