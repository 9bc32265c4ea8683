/** Access log and metrics of connections and UDP sessions that are forwarded without being read. */
import type {
  ServerStream,
  StreamCounters,
  StreamProtocol,
} from '../../../engines/http/contracts/streams.ts'
import type { AccessLines } from './access-line.ts'
import type { MetricName, MetricsSnapshot, Series } from './metric-definitions.ts'
import { timedCounters } from './timed-counters.ts'
import type { StreamRecord } from './types.ts'

const protocols = ['tcp', 'tls', 'udp'] as const

type Numbers = Readonly<Record<StreamProtocol, number>>

export class StreamTelemetry {
  readonly #lines: AccessLines
  readonly #ended = timedCounters('stream_duration_seconds', (labels) =>
    labels.map((label) => String(label) || 'unknown'),
  )

  constructor(lines: AccessLines) {
    this.#lines = lines
  }

  onStreamDone(stream: ServerStream, access: StreamRecord): void {
    this.#lines.stream(stream, access)
    const { backend = '', gateway = '', listener = '', route = '', rule = '', reason } = access
    const bind = gateway === '' ? stream.port : `${stream.port}/${gateway}`
    const labels = [backend, stream.protocol, reason, bind, gateway, listener, route, rule]
    this.#ended.record(labels, access.durationMs / 1_000, 0)
  }

  /**
   * Adds the metrics of streams to `requests`, a snapshot of request metrics. Connection metrics are shared.
   */
  snapshot(requests: MetricsSnapshot, streams: StreamCounters): MetricsSnapshot {
    const seen = protocols.filter((protocol) => streams.total[protocol] > 0)
    const add = (name: MetricName, values: Numbers): readonly Series[] => [
      ...(requests[name] ?? []),
      ...seen.map((protocol) => ({
        labels: ['unknown', 'unknown', 'unknown', protocol],
        values: [values[protocol]],
      })),
    ]
    return {
      downstream_connections_total: add('downstream_connections_total', streams.total),
      downstream_connections: add('downstream_connections', streams.open),
      downstream_received_bytes_total: add('downstream_received_bytes_total', streams.received),
      downstream_sent_bytes_total: add('downstream_sent_bytes_total', streams.sent),
      streams_total: this.#ended.counts(),
      stream_duration_seconds: this.#ended.durations(),
      datagrams_dropped_total: droppedSeries(streams),
    }
  }
}

/** Returns the counts of dropped datagrams; empty until the worker has served UDP. */
function droppedSeries({ total, droppedDatagrams }: StreamCounters): Series[] {
  if (total.udp === 0) return []
  return Object.entries(droppedDatagrams).map(([reason, count]) => ({
    labels: [reason],
    values: [count],
  }))
}
