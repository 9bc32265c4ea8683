/** Access log and counters of one worker. */

import { backendTelemetry } from '../../backends/telemetry.ts'
import { sharedText } from '../../base/repeated.ts'
import { patternMemoryBytes } from '../../core/index.ts'
import type { EngineCounters } from '../../engine/contracts/engine.ts'
import type { ServerExchange } from '../../engine/contracts/requests.ts'
import type { StreamCounters } from '../../engine/contracts/streams.ts'
import { floodKindNames } from '../../engine/limits/http2-floods.ts'
import type { GatewayError } from '../../errors/index.ts'
import type { RoutePlace } from '../../exchange/exchange.ts'
import { type AccessLogFormat, lineFormats, requestLine } from '../telemetry/access-line.ts'
import type { AccessLog } from '../telemetry/access-log.ts'
import { statusOf } from '../telemetry/access-text.ts'
import {
  type MetricsSnapshot,
  metricDefinitions,
  type Series,
} from '../telemetry/metric-definitions.ts'
import { StreamTelemetry } from '../telemetry/stream-telemetry.ts'
import { type Label, TimedCounters } from '../telemetry/timed-counters.ts'
import { Timestamps } from '../telemetry/timestamp.ts'
import type { RequestFacts, Telemetry } from '../telemetry/types.ts'
import { UpstreamTelemetry } from '../telemetry/upstream-telemetry.ts'

/** Methods that get a label of their own; a client may send any other word. */
const methods = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
  'TRACE',
  'CONNECT',
])

interface TelemetryOptions {
  readonly log: AccessLog
  readonly format: AccessLogFormat
  /** Told of each bug once, with its stack. */
  readonly onBug: (text: string) => void
}

export interface WorkerTelemetry extends Telemetry {
  /** A connection to a backend was made, in so many seconds. */
  onUpstreamConnected(seconds: number): void
  /** A TLS handshake for a listener was finished, in so many seconds. */
  onTlsHandshake(port: number, place: RoutePlace, seconds: number): void
  snapshot(engine: Readonly<EngineCounters>, streams: StreamCounters): MetricsSnapshot
}

const number = (value: number, labels: readonly string[] = []): Series[] => [
  { labels, values: [value] },
]

/** Connections are counted by the engine, which knows no listeners. */
const connectionLabels = (protocol: string) => ['unknown', 'unknown', 'unknown', protocol]

/** Plaintext, and TLS where there ever was any. */
function byProtocol(all: number, tls: number, everTls: number): Series[] {
  const plain = number(all - tls, connectionLabels('http'))
  return everTls === 0 ? plain : [...plain, ...number(tls, connectionLabels('https'))]
}

function engineSeries(engine: Readonly<EngineCounters>): MetricsSnapshot {
  const tlsTotal = engine.tlsConnectionsTotal
  return {
    downstream_connections_total: byProtocol(engine.connectionsTotal, tlsTotal, tlsTotal),
    downstream_connections: byProtocol(engine.connectionsOpen, engine.tlsConnectionsOpen, tlsTotal),
    downstream_received_bytes_total: byProtocol(
      engine.receivedBytes,
      engine.tlsReceivedBytes,
      tlsTotal,
    ),
    downstream_sent_bytes_total: byProtocol(engine.sentBytes, engine.tlsSentBytes, tlsTotal),
    tls_handshakes_failed_total: number(engine.tlsHandshakesFailed),
    tls_sessions_resumed_total: number(engine.tlsSessionsResumed),
    proxy_headers_refused_total: number(engine.proxyHeadersRefused),
    downstream_connections_refused_total: number(engine.connectionsRefused),
    downstream_http2_connections: number(engine.http2Connections),
    downstream_http2_streams: number(engine.http2Streams),
    downstream_http2_streams_stalled_total: [
      ...number(engine.http2StreamsStalled, ['reset']),
      ...number(engine.http2StreamsRefused, ['refused']),
    ],
    downstream_http2_floods_total: floodKindNames.flatMap((kind) =>
      number(engine.http2Floods[kind], [kind]),
    ),
    upstream_race_attempts_total: number(engine.upstreamRaceAttempts),
    upstream_races_won_total: [
      ...number(engine.upstreamRacesWon.ipv4, ['ipv4']),
      ...number(engine.upstreamRacesWon.ipv6, ['ipv6']),
    ],
    upstream_connections_total: number(engine.upstreamConnectionsTotal),
    upstream_connections: number(engine.upstreamConnectionsOpen),
    read_buffers: number(engine.readBuffersInUse),
    malformed_requests_total: number(engine.badHeads),
    core_traps_total: number(engine.coreTraps),
    core_pattern_memory_bytes: number(patternMemoryBytes()),
  }
}

/** Position of `bind` among the labels; the engine knows its port, the rest is the Gateway. */
const bindAt = 5

/** The texts of labels: absent is `unknown`, a bind is `port/namespace/gateway`. */
function labelTexts(labels: readonly Label[]): readonly string[] {
  const texts = labels.map((label) => String(label) || 'unknown')
  const gateway = labels[bindAt + 1]
  if (gateway !== '') texts[bindAt] = sharedText(`${labels[bindAt]}/${gateway}`)
  return texts
}

/** A bug may be met by every request: each is told once, and not more than a bounded number. */
class BugReports {
  readonly #tell: (text: string) => void
  readonly #told = new Set<string>()

  constructor(tell: (text: string) => void) {
    this.#tell = tell
  }

  report(error: GatewayError): void {
    const cause = error.cause instanceof Error ? error.cause : error
    const text = cause.stack ?? cause.message
    if (this.#told.has(text) || this.#told.size >= 100) return
    this.#told.add(text)
    this.#tell(text)
  }
}

/** In the order of the definition. */
function fillLabels(labels: Label[], exchange: ServerExchange, facts: RequestFacts): void {
  labels[0] = facts.backend ?? ''
  labels[1] = facts.protocol
  const { method } = facts
  labels[2] = method === 'GET' || methods.has(method) ? method : 'OTHER'
  labels[3] = statusOf(exchange, facts) || ''
  labels[4] = facts.reason
  labels[bindAt] = exchange.port
  labels[6] = facts.gateway ?? ''
  labels[7] = facts.listener ?? ''
  labels[8] = facts.route ?? ''
  labels[9] = facts.rule ?? ''
}

/** The telemetry of a worker. */
export function createTelemetry({ log, format, onBug }: TelemetryOptions): WorkerTelemetry {
  const lines = lineFormats[format]
  const bugs = new BugReports(onBug)
  const timestamps = new Timestamps()
  const streams = new StreamTelemetry(log, format, timestamps)
  const buckets = metricDefinitions.request_duration_seconds.buckets ?? []
  const requests = new TimedCounters(buckets, labelTexts)
  const handshakes = new TimedCounters(
    metricDefinitions.tls_handshake_duration_seconds.buckets ?? [],
    (labels) => labels.map(String),
  )
  const upstream = new UpstreamTelemetry(labelTexts)
  const backends = backendTelemetry(labelTexts)
  const spans = { exported: 0, dropped: 0 }
  // Filled anew for each request, read before the next.
  const labels: Label[] = metricDefinitions.requests_total.labels.map(() => '')
  return {
    onDone(exchange: ServerExchange, facts: RequestFacts): void {
      const line = requestLine(lines, timestamps, exchange, facts)
      if (line !== undefined) log.write(line)
      if (facts.bug !== undefined) bugs.report(facts.bug)
      fillLabels(labels, exchange, facts)
      requests.record(labels, facts.durationMs / 1_000, exchange.responseBytes)
      if (facts.retries > 0) upstream.retried(labels, facts.retries)
      if (facts.record === undefined) return
      for (const part of backends) part.count(facts.record, exchange, facts, labels)
    },

    onSpans(exported: number, dropped: number): void {
      spans.exported += exported
      spans.dropped += dropped
    },

    onLookup: (result) => upstream.lookedUp(result),

    onCallout: (subtype, seconds) => upstream.called(subtype, seconds),

    onEjected(ejection): void {
      upstream.ejected()
      if (ejection === undefined) return
      for (const part of backends) part.ejected?.(ejection)
    },

    onStreamDone(stream, facts): void {
      if (facts.bug !== undefined) bugs.report(facts.bug)
      streams.onStreamDone(stream, facts)
    },

    onBadHead(port: number, error: GatewayError, peer, scheme): void {
      log.write(lines.badHead(timestamps.now(), peer, error, scheme))
      const { status, reason } = error.row
      requests.record(['', scheme, '', status, reason, port, '', '', '', ''], 0, 0)
    },

    onUpstreamConnected: (seconds) => upstream.connected(seconds),

    onTlsHandshake(port: number, { gateway, listener }: RoutePlace, seconds: number): void {
      handshakes.record([`${port}/${gateway}`, gateway, listener, 'https'], seconds, 0)
    },

    snapshot(engine, streamCounters) {
      const all = requests.snapshot()
      const ofRequests = {
        requests_total: all.map(({ count }) => count),
        request_duration_seconds: all.map(({ duration }) => duration),
        tls_handshake_duration_seconds: handshakes.snapshot().map(({ duration }) => duration),
        trace_spans_exported_total: number(spans.exported),
        trace_spans_dropped_total: number(spans.dropped),
        response_bytes_total: all.map(({ bytes }) => bytes),
        access_log_dropped_lines_total: number(log.droppedLines),
        ...engineSeries(engine),
      }
      const ofStreams = streams.addTo(ofRequests, streamCounters)
      return backends.reduce((all, part) => part.addTo(all), upstream.addTo(ofStreams))
    },
  }
}
