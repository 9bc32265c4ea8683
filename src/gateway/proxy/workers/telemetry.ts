/** Access log and metrics of one worker. */

import { sharedText } from '../../../control/wire/repeated.ts'
import { patternMemoryBytes, textMemoryBytes } from '../../../engines/core/index.ts'
import type { EngineCounters, PoolState } from '../../../engines/http/contracts/engine.ts'
import type { ServerExchange } from '../../../engines/http/contracts/requests.ts'
import type { ServerStream, StreamCounters } from '../../../engines/http/contracts/streams.ts'
import { floodKindNames } from '../../../engines/http/limits/http2-floods.ts'
import type { GatewayError } from '../../../ground/errors/index.ts'
import type { Peer, RoutePlace } from '../../../ground/exchange/exchange.ts'
import { backendTelemetry } from '../../backends/registry.ts'
import { statusOf } from '../telemetry/access-fields.ts'
import { AccessLines, type AccessLogFormat } from '../telemetry/access-line.ts'
import type { AccessLog } from '../telemetry/access-log.ts'
import { AddedLabels } from '../telemetry/added-labels.ts'
import { IdentityRequests } from '../telemetry/identity-requests.ts'
import {
  type MetricsSnapshot,
  metricDefinitions,
  type Series,
} from '../telemetry/metric-definitions.ts'
import { PolicyRefusals } from '../telemetry/policy-refusals.ts'
import { StreamTelemetry } from '../telemetry/stream-telemetry.ts'
import { type Label, timedCounters } from '../telemetry/timed-counters.ts'
import { Timestamps } from '../telemetry/timestamp.ts'
import { TunnelTelemetry, wasTunnel } from '../telemetry/tunnel-telemetry.ts'
import type {
  AccessRecord,
  Ejection,
  ExportedSignal,
  StreamRecord,
  Telemetry,
} from '../telemetry/types.ts'
import type { HealthChange } from '../upstream/checked-backend.ts'
import type { FromWorker } from './worker-messages.ts'

/** Methods that are label values. Clients may send others, which are counted as OTHER. */
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
  /** Called once for each bug, with its stack. */
  readonly onBug: (text: string) => void
  readonly send: (message: FromWorker) => void
}

const number = (value: number, labels: readonly string[] = []): Series[] => [
  { labels, values: [value] },
]

/** Labels of connections. The engine counts connections without knowing their listeners. */
const connectionLabels = (protocol: string) => ['unknown', 'unknown', 'unknown', protocol]

/** Returns a series for plaintext connections and, after the first TLS connection, one for TLS. */
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
    downstream_connections_unauthorized_total: number(engine.connectionsUnauthorized),
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
    core_pattern_memory_bytes: number(patternMemoryBytes() + textMemoryBytes()),
  }
}

/** Position of the label `bind`. It is recorded as a port, to which `labelTexts` adds the Gateway. */
const bindAt = 5
/** Position of the labels that policies add. */
const addedAt = metricDefinitions.requests_total.labels.length

/** Returns the texts of labels: `unknown` if empty, and `port/namespace/gateway` for a bind. */
function labelTexts(labels: readonly Label[]): readonly string[] {
  const texts = labels.map((label, at) => String(label) || (at === addedAt ? '' : 'unknown'))
  const gateway = labels[bindAt + 1]
  if (gateway !== '') texts[bindAt] = sharedText(`${labels[bindAt]}/${gateway}`)
  return texts
}

/** Sets the labels in the order of `requests_total`. */
function fillLabels(labels: Label[], exchange: ServerExchange, access: AccessRecord): void {
  labels[0] = access.backend ?? ''
  labels[1] = access.protocol
  const { method } = access
  labels[2] = method === 'GET' || methods.has(method) ? method : 'OTHER'
  labels[3] = statusOf(exchange, access) || ''
  labels[4] = access.reason
  labels[bindAt] = exchange.port
  labels[6] = access.gateway ?? ''
  labels[7] = access.listener ?? ''
  labels[8] = access.route ?? ''
  labels[9] = access.rule ?? ''
}

export class WorkerTelemetry implements Telemetry {
  readonly #log: AccessLog
  readonly #lines: AccessLines
  readonly #onBug: (text: string) => void
  readonly #send: TelemetryOptions['send']
  readonly #reportedBugs = new Set<string>()
  readonly #streams: StreamTelemetry
  readonly #tunnels = new TunnelTelemetry()
  readonly #requests = timedCounters('request_duration_seconds', labelTexts)
  /** Records retries in place of bytes. */
  readonly #retries = timedCounters('retries_total', labelTexts)
  readonly #handshakes = timedCounters('tls_handshake_duration_seconds')
  readonly #connects = timedCounters('upstream_connect_duration_seconds')
  readonly #callouts = timedCounters('upstream_call_duration_seconds')
  readonly #backends = backendTelemetry(labelTexts)
  readonly #identities = new IdentityRequests()
  readonly #refusals = new PolicyRefusals()
  readonly #added = new AddedLabels()
  readonly #lookups = { ok: 0, failed: 0 }
  #ejections = 0
  readonly #exports = { spans: { sent: 0, dropped: 0 }, logs: { sent: 0, dropped: 0 } }
  /** Labels of the current request. The array is reused for each request. */
  readonly #labels: Label[] = metricDefinitions.requests_total.labels.map(() => '')

  constructor({ log, format, onBug, send }: TelemetryOptions) {
    this.#send = send
    this.#log = log
    this.#lines = new AccessLines(log, format, new Timestamps())
    this.#onBug = onBug
    this.#streams = new StreamTelemetry(this.#lines)
  }

  onDone(exchange: ServerExchange, access: AccessRecord): void {
    this.#lines.request(exchange, access)
    if (access.bug !== undefined) this.#reportBug(access.bug)
    const labels = this.#labels
    fillLabels(labels, exchange, access)
    labels[addedAt] =
      access.metrics === undefined ? '' : this.#added.textOf(access.metrics.labels(exchange))
    const { durationMs, exportedTrace } = access
    this.#requests.record(labels, durationMs / 1_000, exchange.responseBytes, exportedTrace)
    if (access.retries > 0) this.#retries.record(labels, 0, access.retries)
    if (wasTunnel(exchange, access)) this.#tunnels.onDone(exchange, access)
    this.#identities.count(exchange, statusOf(exchange, access))
    this.#refusals.count(access)
    if (access.record === undefined) return
    for (const part of this.#backends) part.count(access.record, exchange, access, labels)
  }

  /** Reports each bug once, and only a limited number of bugs, because every request may meet one. */
  #reportBug(error: GatewayError): void {
    const cause = error.cause instanceof Error ? error.cause : error
    const text = cause.stack ?? cause.message
    if (this.#reportedBugs.has(text) || this.#reportedBugs.size >= 100) return
    this.#reportedBugs.add(text)
    this.#onBug(text)
  }

  onExport(signal: ExportedSignal, sent: number, dropped: number): void {
    const counts = this.#exports[signal]
    counts.sent += sent
    counts.dropped += dropped
  }

  onLookup(result: 'ok' | 'failed'): void {
    this.#lookups[result]++
  }

  onCallout(subtype: string, seconds: number): void {
    this.#callouts.record(['Policy', subtype], seconds, 0)
  }

  onEjected(ejection: Ejection | undefined): void {
    this.#ejections++
    if (ejection === undefined) return
    for (const part of this.#backends) part.ejected?.(ejection)
  }

  onHealthChange(change: HealthChange): void {
    this.#send({ type: 'health', change })
  }

  onStreamDone(stream: ServerStream, access: StreamRecord): void {
    if (access.bug !== undefined) this.#reportBug(access.bug)
    this.#streams.onStreamDone(stream, access)
  }

  onBadHead(port: number, error: GatewayError, peer: Peer, scheme: 'http' | 'https'): void {
    this.#lines.badHead(peer, error, scheme)
    const { status, reason } = error.row
    this.#requests.record(['', scheme, '', status, reason, port, '', '', '', ''], 0, 0)
  }

  /** Called when a connection to a backend was made. */
  onUpstreamConnected(seconds: number): void {
    this.#connects.record(plaintext, seconds, 0)
  }

  /** Called when a TLS handshake for a listener has finished. */
  onTlsHandshake(port: number, { gateway, listener }: RoutePlace, seconds: number): void {
    this.#handshakes.record([`${port}/${gateway}`, gateway, listener, 'https'], seconds, 0)
  }

  snapshot(
    engine: Readonly<EngineCounters>,
    streams: StreamCounters,
    pools: readonly PoolState[] = [],
  ): MetricsSnapshot {
    const all = this.#requests.snapshot()
    const requests = engineSeries(engine)
    const snapshot: MetricsSnapshot = {
      ...requests,
      requests_total: all.map(({ count }) => count),
      request_duration_seconds: all.map(({ duration }) => duration),
      response_bytes_total: all.map(({ bytes }) => bytes),
      retries_total: this.#retries.sums(),
      identity_requests_total: this.#identities.series(),
      policy_refusals_total: this.#refusals.series(),
      tls_handshake_duration_seconds: this.#handshakes.durations(),
      trace_spans_exported_total: number(this.#exports.spans.sent),
      trace_spans_dropped_total: number(this.#exports.spans.dropped),
      access_log_records_exported_total: number(this.#exports.logs.sent),
      access_log_records_dropped_total: number(this.#exports.logs.dropped),
      access_log_dropped_lines_total: number(this.#log.droppedLines),
      upstream_connect_duration_seconds: this.#connects.durations(),
      upstream_call_duration_seconds: this.#callouts.durations(),
      upstream_ejections_total: number(this.#ejections),
      dns_lookups_total: [
        ...number(this.#lookups.ok, ['ok']),
        ...number(this.#lookups.failed, ['failed']),
      ],
      ...poolSeries(pools),
      ...this.#streams.snapshot(requests, streams),
      ...this.#tunnels.snapshot(engine.tunnelsOpen),
    }
    for (const part of this.#backends) Object.assign(snapshot, part.snapshot())
    return snapshot
  }
}

/** Labels of connections to backends, which all have the same value so far. */
const plaintext: readonly Label[] = ['plaintext']

/** Maximum number of addresses with their own series, because clients choose dynamic destinations. */
const maxEndpoints = 1_000
/** Label of all further addresses. */
const overflow = 'overflow'

function poolSeries(states: readonly PoolState[]): MetricsSnapshot {
  // An address may have several pools, for example for plaintext and for each TLS server name.
  const byEndpoint = new Map<string, PoolState>()
  for (const { endpoint, idle, busy, streams } of states) {
    const isKnown = byEndpoint.has(endpoint)
    const name = isKnown || byEndpoint.size < maxEndpoints ? endpoint : overflow
    const sum = byEndpoint.get(name) ?? { endpoint: name, idle: 0, busy: 0, streams: 0 }
    sum.idle += idle
    sum.busy += busy
    sum.streams += streams
    byEndpoint.set(name, sum)
  }
  const connections: Series[] = []
  const streams: Series[] = []
  for (const { endpoint, ...sum } of byEndpoint.values()) {
    connections.push({ labels: [endpoint, 'idle'], values: [sum.idle] })
    connections.push({ labels: [endpoint, 'busy'], values: [sum.busy] })
    if (sum.streams > 0) streams.push({ labels: [endpoint], values: [sum.streams] })
  }
  return { upstream_pool_connections: connections, upstream_pool_streams: streams }
}
