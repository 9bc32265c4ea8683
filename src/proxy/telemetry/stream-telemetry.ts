/** Access log and counters of what is forwarded unread. */
import type {
  ServerStream,
  StreamCounters,
  StreamProtocol,
} from '../../engine/contracts/streams.ts'
import type { AccessLogFormat } from './access-line.ts'
import type { AccessLog } from './access-log.ts'
import {
  type MetricName,
  type MetricsSnapshot,
  metricDefinitions,
  type Series,
} from './metric-definitions.ts'
import { streamLines } from './stream-line.ts'
import { type Label, TimedCounters } from './timed-counters.ts'
import type { Timestamps } from './timestamp.ts'
import type { StreamFacts } from './types.ts'

const protocols = ['tcp', 'tls', 'udp'] as const

type Numbers = Readonly<Record<StreamProtocol, number>>

export class StreamTelemetry {
  readonly #log: AccessLog
  readonly #line: (typeof streamLines)[AccessLogFormat]
  readonly #timestamps: Timestamps
  readonly #ended = new TimedCounters(
    metricDefinitions.stream_duration_seconds.buckets ?? [],
    labelTexts,
  )

  constructor(log: AccessLog, format: AccessLogFormat, timestamps: Timestamps) {
    this.#log = log
    this.#line = streamLines[format]
    this.#timestamps = timestamps
  }

  onStreamDone(stream: ServerStream, facts: StreamFacts): void {
    this.#log.write(this.#line(this.#timestamps.now(), stream, facts))
    const { backend = '', gateway = '', listener = '', route = '', rule = '', reason } = facts
    const bind = gateway === '' ? stream.port : `${stream.port}/${gateway}`
    const what = [backend, stream.protocol, reason, bind, gateway, listener, route, rule]
    this.#ended.record(what, facts.durationMs / 1_000, 0)
  }

  /** Adds what is counted of streams to what is counted of requests. */
  addTo(requests: MetricsSnapshot, streams: StreamCounters): MetricsSnapshot {
    const seen = protocols.filter((protocol) => streams.total[protocol] > 0)
    const add = (name: MetricName, values: Numbers): readonly Series[] => [
      ...(requests[name] ?? []),
      ...seen.map((protocol) => ({
        labels: ['unknown', 'unknown', 'unknown', protocol],
        values: [values[protocol]],
      })),
    ]
    const ended = this.#ended.snapshot()
    return {
      ...requests,
      downstream_connections_total: add('downstream_connections_total', streams.total),
      downstream_connections: add('downstream_connections', streams.open),
      downstream_received_bytes_total: add('downstream_received_bytes_total', streams.received),
      downstream_sent_bytes_total: add('downstream_sent_bytes_total', streams.sent),
      streams_total: ended.map(({ count }) => count),
      stream_duration_seconds: ended.map(({ duration }) => duration),
      datagrams_dropped_total: droppedSeries(streams),
    }
  }
}

function labelTexts(labels: readonly Label[]): readonly string[] {
  return labels.map((label) => String(label) || 'unknown')
}

/** Of a worker that has met datagrams. */
function droppedSeries({ total, droppedDatagrams }: StreamCounters): Series[] {
  if (total.udp === 0) return []
  return Object.entries(droppedDatagrams).map(([reason, count]) => ({
    labels: [reason],
    values: [count],
  }))
}
