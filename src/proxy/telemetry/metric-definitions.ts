/**
 * Every metric, as data: the writer, the sums over workers and the docs follow from it. Names get
 * the prefix `sluice_`.
 */
export interface MetricDefinition {
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly labels: readonly string[]
  /** Upper bounds in ascending order, `+Inf` left out; only for histograms. */
  readonly buckets?: readonly number[]
}

const routeLabels = ['bind', 'gateway', 'listener', 'route', 'route_rule'] as const
const requestLabels = ['backend', 'protocol', 'method', 'status', 'reason', ...routeLabels] as const
const mcpLabels = ['backend', 'method', 'target', 'type', 'result', ...routeLabels] as const
const streamLabels = ['backend', 'protocol', 'reason', ...routeLabels] as const
const connectionLabels = ['bind', 'gateway', 'listener', 'protocol'] as const

const durations = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80,
]
const streamDurations = [0.01, 0.1, 1, 10, 60, 300, 1_800, 3_600, 14_400, 86_400]
const connects = [
  0.0005, 0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.5, 1, 2, 4, 8,
]

/** `gen_ai_system` is the former name of the provider's label. */
const modelLabels = [
  'gen_ai_operation_name',
  'gen_ai_provider_name',
  'gen_ai_system',
  'gen_ai_request_model',
  'gen_ai_response_model',
  ...routeLabels,
] as const

const tokenCounts = [
  1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216,
  67_108_864,
]
const modelDurations = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
]
const firstTokens = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
]
const perToken = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5]

type Row = MetricDefinition
const counter = (help: string, labels: readonly string[] = []): Row => ({
  type: 'counter',
  help,
  labels,
})
const gauge = (help: string, labels: readonly string[] = []): Row => ({
  type: 'gauge',
  help,
  labels,
})
const histogram = (help: string, labels: readonly string[], buckets: readonly number[]): Row => ({
  type: 'histogram',
  help,
  labels,
  buckets,
})

export const metricDefinitions = {
  build_info: gauge('Version of the proxy.', ['tag']),
  requests_total: counter('Requests that have ended.', requestLabels),
  request_duration_seconds: histogram(
    'From the complete request head to the last byte of the response.',
    requestLabels,
    durations,
  ),
  response_bytes_total: counter('Bytes of response bodies sent to clients.', requestLabels),
  streams_total: counter(
    'Connections that were forwarded unread, and sessions of datagrams, that have ended.',
    streamLabels,
  ),
  stream_duration_seconds: histogram(
    'From the connection, or the first datagram, to its end.',
    streamLabels,
    streamDurations,
  ),
  datagrams_dropped_total: counter(
    'Datagrams that were not forwarded: no room for another session, or for another datagram.',
    ['reason'],
  ),
  retries_total: counter(
    'Requests that were sent again; a request counts once each time.',
    requestLabels,
  ),
  mcp_requests_total: counter(
    'Messages of MCP clients that were answered or taken; `result` is `error` where the answer was one.',
    mcpLabels,
  ),
  dns_lookups_total: counter('Lookups of host names of backends; answers are kept.', ['result']),
  upstream_ejections_total: counter('Endpoints of Services that were left out for a while.'),
  inference_picks_total: counter(
    'Requests for which the endpoint picker of an InferencePool was asked; `outcome` is `picked`, `answered` (the picker refused the request), `fail_open` or `fail_closed`.',
    ['pool', 'failure_mode', 'outcome'],
  ),
  inference_pick_duration_seconds: histogram(
    'From asking the endpoint picker of an InferencePool to its pick, or to giving it up.',
    ['pool', 'failure_mode', 'outcome'],
    durations,
  ),
  gen_ai_client_token_usage: histogram(
    'Tokens of requests to language models, by what they are; input with what caches gave and took.',
    ['gen_ai_token_type', ...modelLabels],
    tokenCounts,
  ),
  gen_ai_client_operation_duration: histogram(
    'Seconds from asking the provider that answered to the end of its answer.',
    ['error_type', ...modelLabels],
    modelDurations,
  ),
  gen_ai_server_request_duration: histogram(
    'Seconds of requests to language models as clients see them: guards and failover included.',
    ['error_type', ...modelLabels],
    modelDurations,
  ),
  gen_ai_server_time_to_first_token: histogram(
    'Seconds from the request to the first piece of a streamed answer.',
    modelLabels,
    firstTokens,
  ),
  gen_ai_server_time_per_output_token: histogram(
    'Seconds for each token of a streamed answer after the first.',
    modelLabels,
    perToken,
  ),
  guardrail_checks_total: counter('Decisions of guards of language models.', [
    'phase',
    'guard',
    'action',
  ]),
  model_provider_ejections_total: counter(
    'Providers of language models that were left out for a while, and why.',
    ['backend', 'provider', 'reason'],
  ),
  model_provider_ejected: gauge(
    'Workers that leave a provider of language models out now, and why.',
    ['backend', 'provider', 'reason'],
  ),
  upstream_connect_duration_seconds: histogram(
    'Time to connect to a backend.',
    ['transport'],
    connects,
  ),
  upstream_call_duration_seconds: histogram(
    'Time that services took which policies asked; of streams, how long they were open.',
    ['kind', 'subtype'],
    durations,
  ),
  downstream_connections_total: counter('Client connections accepted.', connectionLabels),
  downstream_connections: gauge('Client connections open now.', connectionLabels),
  downstream_received_bytes_total: counter('Bytes read from clients.', connectionLabels),
  downstream_sent_bytes_total: counter('Bytes written to clients.', connectionLabels),
  tls_handshake_duration_seconds: histogram(
    'From the accepted connection to the end of the TLS handshake with a client.',
    connectionLabels,
    connects,
  ),
  tls_handshakes_failed_total: counter(
    'TLS handshakes with clients that failed, took too long or were given up.',
  ),
  tls_sessions_resumed_total: counter('TLS handshakes that took up a session of the client.'),
  downstream_http2_connections: gauge('HTTP/2 connections of clients open now.'),
  downstream_http2_streams: gauge('HTTP/2 streams of clients open now.'),
  downstream_http2_streams_stalled_total: counter(
    'HTTP/2 streams that were given up because their client did not take the response (`reset`), or not begun because too many of its streams stood still (`refused`).',
    ['action'],
  ),
  downstream_http2_floods_total: counter(
    'HTTP/2 connections that were closed because the client, or the upstream, exceeded a limit of this kind.',
    ['kind'],
  ),
  proxy_headers_refused_total: counter(
    'Connections of load balancers that were dropped for want of a PROXY header.',
  ),
  downstream_connections_refused_total: counter(
    'Client connections that were reset because the proxy had as many as it may have.',
  ),
  upstream_race_attempts_total: counter(
    'Further attempts to connect to a backend whose name has several addresses: another one failed, or took longer than 250 ms.',
  ),
  upstream_races_won_total: counter(
    'Connections to backends whose names have several addresses, by the family of the one that was connected to.',
    ['family'],
  ),
  upstream_connections_total: counter('Connections to backends that were made.'),
  upstream_pool_connections: gauge(
    'Connections to an address of backends open now, `idle` or `busy`; beyond 1,000 addresses, those of the others together.',
    ['endpoint', 'state'],
  ),
  upstream_pool_streams: gauge(
    'Requests under way in HTTP/2 to an address of backends now; with the same bound.',
    ['endpoint'],
  ),
  read_buffers: gauge(
    'Buffers of 68 KiB that HTTP/1.1 connections to backends are read into, in use now.',
  ),
  upstream_connections: gauge('Connections to backends open now.'),
  malformed_requests_total: counter('Request heads that could not be read.'),
  core_pattern_memory_bytes: gauge(
    'Memory of the WebAssembly cores that compile patterns and mask texts.',
  ),
  core_traps_total: counter('Traps of the WebAssembly core; each is a bug.'),
  access_log_dropped_lines_total: counter('Access log lines lost because nobody read them.'),
  trace_spans_exported_total: counter('Spans that a collector has taken.'),
  trace_spans_dropped_total: counter(
    'Spans that were lost: a collector refused them or did not keep up.',
  ),
  config_sequence: gauge(
    'What is in force in all workers: a position of the log; of a proxy of a controller, the number of the change set.',
  ),
  config_rejected_resources: gauge('Configuration resources that are not in force.', ['code']),
  digest_checks_total: counter(
    'Where gateways share a log: comparisons of the own state with that of another at the same position (equal, different).',
    ['result'],
  ),
  log_followed: gauge(
    'Without a controller: 1 while events of the log are taken up, 0 once it cannot be gone on with.',
  ),
  controller_connected: gauge('1 while a controller configures the proxy.'),
  controller_connections_total: counter('Configuration streams that a controller has answered.'),
  controller_connection_failures_total: counter(
    'Configuration streams that ended or never came to be.',
  ),
  controller_position: gauge("Position of the controller's log that is in force."),
  last_good_saves_total: counter('Times that the configuration was written to disk.'),
  last_good_save_failures_total: counter('Times that it could not be.'),
  listener_ports_unbound: gauge('Ports that listeners want and that are not bound.'),
  workers: gauge('Worker threads that carry traffic.'),
  worker_restarts_total: counter('Worker threads that died and were replaced.'),
  process_resident_memory_bytes: gauge('Resident memory of the process.'),
  process_cpu_seconds_total: counter('User and system CPU time of the process.'),
} as const satisfies Record<string, MetricDefinition>

export type MetricName = keyof typeof metricDefinitions

/**
 * One label combination. `values` is the number of a counter or gauge; of a histogram the count of
 * each bucket (not cumulative, the last one beyond all bounds) and then the sum.
 */
export interface Series {
  readonly labels: readonly string[]
  readonly values: readonly number[]
}

/** What a worker answers to a scrape. */
export type MetricsSnapshot = Partial<Record<MetricName, readonly Series[]>>
