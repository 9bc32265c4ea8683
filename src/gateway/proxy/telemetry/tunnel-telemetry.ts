/** Metrics of tunnels that CONNECT requests have opened. */
import type { ServerExchange } from '../../../engines/http/contracts/requests.ts'
import type { MetricsSnapshot } from './metric-definitions.ts'
import { type Label, timedCounters } from './timed-counters.ts'
import type { AccessRecord } from './types.ts'

const texts = (labels: readonly Label[]): readonly string[] =>
  labels.map((label) => String(label) || 'unknown')

/** Whether the exchange was a tunnel, whose bytes are not those of bodies. */
export function wasTunnel(exchange: ServerExchange, { method }: AccessRecord): boolean {
  const { sentStatus } = exchange
  return method === 'CONNECT' && sentStatus >= 200 && sentStatus < 300
}

export class TunnelTelemetry {
  /** Records bytes to clients with the durations. */
  readonly #ended = timedCounters('tunnel_duration_seconds', texts)
  readonly #received = timedCounters('tunnel_received_bytes_total', texts)

  onDone(exchange: ServerExchange, access: AccessRecord): void {
    const { reason, gateway = '', listener = '', route = '' } = access
    const labels = [reason, gateway, listener, route]
    this.#ended.record(labels, access.durationMs / 1_000, exchange.responseBytes)
    this.#received.record(labels, 0, exchange.requestBytes)
  }

  /** `open`: number of tunnels that are open or being opened. */
  snapshot(open: number): MetricsSnapshot {
    return {
      tunnels: [{ labels: [], values: [open] }],
      tunnel_duration_seconds: this.#ended.durations(),
      tunnel_sent_bytes_total: this.#ended.sums(),
      tunnel_received_bytes_total: this.#received.sums(),
    }
  }
}
