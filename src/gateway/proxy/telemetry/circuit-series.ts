import type { Circuits } from '../upstream/circuits.ts'
import type { MetricsSnapshot } from './metric-definitions.ts'

/** Returns the metrics of circuit breakers. */
export function circuitSeries({ refused }: Circuits): MetricsSnapshot {
  return {
    upstream_circuit_refusals_total: [...refused].flatMap(([backend, { requests, retries }]) => [
      { labels: [backend, 'requests'], values: [requests] },
      { labels: [backend, 'retries'], values: [retries] },
    ]),
  }
}
