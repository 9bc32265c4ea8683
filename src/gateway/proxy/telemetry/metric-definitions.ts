import { costBounds } from '../../../engines/messages/cost/cost-bounds.ts'
import { usdNumber } from '../../../engines/messages/cost/money.ts'
import type { Exemplar } from './exemplar.ts'
import type { ExponentialCounts } from './exponential.ts'
import {
  connects,
  durations,
  firstTokens,
  modelDurations,
  perToken,
  streamDurations,
  tokenCounts,
} from './metric-buckets.ts'

/**
 * All metrics, for the workers, the Prometheus writer and the docs. Exported names have the prefix
 * `sluice_`.
 */
export interface MetricDefinition {
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly labels: readonly string[]
  /** Upper bounds of a histogram in ascending order, without `+Inf`. */
  readonly buckets?: readonly number[]
}

const routeLabels = ['bind', 'gateway', 'listener', 'route', 'route_rule'] as const
const requestLabels = ['backend', 'protocol', 'method', 'status', 'reason', ...routeLabels] as const
const mcpLabels = ['backend', 'method', 'target', 'type', 'result', ...routeLabels] as const
const a2aLabels = ['backend', 'method', 'binding', 'state', 'result', ...routeLabels] as const
const toolLabels = ['backend', 'target', 'tool', 'result'] as const
const streamLabels = ['backend', 'protocol', 'reason', ...routeLabels] as const
const connectionLabels = ['bind', 'gateway', 'listener', 'protocol'] as const

/** `gen_ai_system` is the old name of the provider label. */
const modelLabels = [
  'gen_ai_operation_name',
  'gen_ai_provider_name',
  'gen_ai_system',
  'gen_ai_request_model',
  'gen_ai_response_model',
  ...routeLabels,
] as const

const tunnelLabels = ['reason', 'gateway', 'listener', 'route'] as const

const identityLabels = [
  'dimension',
  'value',
  'gen_ai_provider_name',
  'gen_ai_response_model',
] as const

type Row = MetricDefinition
type Plain<Type> = Row & { readonly type: Type }
const counter = (help: string, labels: readonly string[] = []): Plain<'counter'> => ({
  type: 'counter',
  help,
  labels,
})
const gauge = (help: string, labels: readonly string[] = []): Plain<'gauge'> => ({
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

const budgetLabels = ['budget', 'unit', 'value'] as const

/** What the ledger knows of budgets. It runs in `sluice run` or in controllers, whose replicas show the same. */
export const ledgerMetrics = {
  budget_limit: gauge(
    'Amount of a budget in this window, with adjustments. Only the first 100 values of `each` have separate series; all others are `_OTHER`.',
    budgetLabels,
  ),
  budget_spent: gauge('What is spent of it.', budgetLabels),
  budget_reserved: gauge('What proxies hold as allowances for further requests.', budgetLabels),
  budget_remaining: gauge('What may still be spent of it.', budgetLabels),
  budget_values_over_soft_limit: gauge(
    'Number of values of a budget of which a soft limit is reached, in percent of the amount.',
    ['budget', 'percent'],
  ),
  budget_warnings_total: counter(
    'Warnings of soft limits that this process has passed on. `outcome` is `delivered` or `failed` for webhooks, and `logged` without one.',
    ['budget', 'outcome'],
  ),
} as const satisfies Record<string, Plain<'counter' | 'gauge'>>
export type LedgerMetric = keyof typeof ledgerMetrics

export const metricDefinitions = {
  build_info: gauge('Version of the proxy.', ['tag']),
  requests_total: counter('Completed requests.', requestLabels),
  request_duration_seconds: histogram(
    'Time from the complete request head to the last byte of the response.',
    requestLabels,
    durations,
  ),
  response_bytes_total: counter('Response body bytes sent to clients.', requestLabels),
  streams_total: counter('Completed TCP and TLS connections and UDP sessions.', streamLabels),
  stream_duration_seconds: histogram(
    'Duration of TCP and TLS connections and UDP sessions.',
    streamLabels,
    streamDurations,
  ),
  tunnels: gauge('Tunnels of CONNECT requests that are open or being opened.'),
  tunnel_duration_seconds: histogram(
    'Time from a CONNECT request to the end of its tunnel. Requests without a tunnel are only in `requests_total`.',
    tunnelLabels,
    streamDurations,
  ),
  tunnel_received_bytes_total: counter('Bytes that clients have sent in tunnels.', tunnelLabels),
  tunnel_sent_bytes_total: counter('Bytes that were sent to clients in tunnels.', tunnelLabels),
  datagrams_dropped_total: counter('Dropped datagrams: too many sessions, or a full queue.', [
    'reason',
  ]),
  retries_total: counter('Retries. Each retry of a request is counted.', requestLabels),
  mcp_requests_total: counter(
    'MCP messages from clients. `result` is `error` if the answer was an error.',
    mcpLabels,
  ),
  a2a_requests_total: counter(
    'Requests of A2A clients. `result` is `error` if the response was an error; `state` is that of the task, or the last one of a stream.',
    a2aLabels,
  ),
  mcp_guard_checks_total: counter(
    'Decisions of guards and processors about messages of MCP, by policy and rule, which is the position in its list, from 0. At most 2,000 combinations.',
    ['policy', 'phase', 'rule', 'guard', 'action'],
  ),
  mcp_tool_call_duration_seconds: histogram(
    'Duration of requests with calls of MCP tools. Only the first tools of which a call has succeeded have separate series; all others are `_OTHER`.',
    toolLabels,
    durations,
  ),
  identity_requests_total: counter(
    'Completed requests by who they belong to. `class` is the first digit of the status. Only the first values of a dimension have separate series; all others are `_OTHER`.',
    ['dimension', 'value', 'class'],
  ),
  policy_refusals_total: counter(
    'Requests that a policy refused with 4xx. `field` is the field of the policy, such as `traffic.authorization`. At most 2,000 combinations; all others are `_OTHER`.',
    ['policy', 'field', 'route'],
  ),
  dns_lookups_total: counter('DNS lookups of backend host names. Cached answers are not counted.', [
    'result',
  ]),
  upstream_ejections_total: counter('Ejections of Service endpoints.'),
  upstream_circuit_refusals_total: counter(
    'Requests that a circuit breaker refused, and retries that it prevented. `limit` is `requests` or `retries`. Only the first 1,000 backends have separate series; all others are `_OTHER`.',
    ['backend', 'limit'],
  ),
  upstream_health_checks_total: counter(
    'Probes of active health checks. `result` is `ok` or `failed`. Only the first 1,000 backends have separate series; all others are `_OTHER`.',
    ['backend', 'result'],
  ),
  upstream_unhealthy_endpoints: gauge('Endpoints that fail their active health checks.', [
    'backend',
  ]),
  inference_picks_total: counter(
    'Calls to the endpoint picker of an InferencePool. `outcome` is `picked`, `answered` (the picker refused the request), `fail_open` or `fail_closed`.',
    ['pool', 'failure_mode', 'outcome'],
  ),
  inference_pick_duration_seconds: histogram(
    'Duration of calls to the endpoint picker of an InferencePool.',
    ['pool', 'failure_mode', 'outcome'],
    durations,
  ),
  gen_ai_client_token_usage: histogram(
    'Tokens of requests to language models by token type. Input tokens include cache reads and writes.',
    ['gen_ai_token_type', ...modelLabels],
    tokenCounts,
  ),
  gen_ai_client_cost_usd_total: counter(
    'Cost of requests to language models in USD, as far as it is known.',
    modelLabels,
  ),
  gen_ai_client_request_cost_usd: histogram(
    'Cost of each request to a language model in USD, as far as it is known.',
    modelLabels,
    costBounds.map(usdNumber),
  ),
  identity_model_cost_usd_total: counter(
    'Known cost in USD of requests to language models by who they belong to. Only the first values of a dimension have separate series; all others are `_OTHER`.',
    identityLabels,
  ),
  identity_model_requests_total: counter(
    'Billed requests to language models by who they belong to, also those whose cost is not known.',
    identityLabels,
  ),
  identity_model_tokens_total: counter(
    'Input and output tokens of requests to language models by who they belong to.',
    identityLabels,
  ),
  model_cost_lookups_total: counter(
    'Billed requests to language models by what is known of their cost. `status` is `exact`, `partial` (part of the usage has no price), `estimated` (the provider did not report all of the usage) or `unknown`.',
    ['status', ...modelLabels],
  ),
  model_cache_requests_total: counter(
    'Requests to language models whose policy has a cache of answers. `result` is `hit`, `stored` (the new answer was kept), `miss` (it was not) or `bypass` (the cache does not apply).',
    ['result', ...modelLabels],
  ),
  model_cache_saved_usd_total: counter(
    'What hits of the cache of answers would have cost, in USD, as far as it is known.',
    modelLabels,
  ),
  model_cache_embeddings_total: counter(
    'Embeddings of requests for the comparison with similar ones. `result` is `made` or `failed` (the backend failed, or was not called because it had failed shortly before).',
    ['result', ...modelLabels],
  ),
  model_cache_store_requests_total: counter(
    'Requests to the server that keeps answers for several proxies (`--answer-store`). `operation` is `get` or `set`; `result` is `found`, `missing`, `stored`, `too_large` (the server does not take answers of this size) or `failed` (the server failed, or was not called because it had failed shortly before).',
    ['operation', 'result'],
  ),
  gen_ai_client_operation_duration: histogram(
    'Seconds from the request to the provider that answered to the end of its response.',
    ['error_type', ...modelLabels],
    modelDurations,
  ),
  gen_ai_server_request_duration: histogram(
    'Seconds that a client waits for a request to a language model, including guards and failover.',
    ['error_type', ...modelLabels],
    modelDurations,
  ),
  gen_ai_server_time_to_first_token: histogram(
    'Seconds from the request to the first token of a streamed response.',
    modelLabels,
    firstTokens,
  ),
  gen_ai_server_time_per_output_token: histogram(
    'Seconds per output token of a streamed response, after the first token.',
    modelLabels,
    perToken,
  ),
  budget_refusals_total: counter(
    'Requests that a budget refused: `exhausted`, `pending` (another allowance is needed), `unreachable` (the ledger is away), `full` (too many values), `unpriced`, or `failed` (`each` failed).',
    ['budget', 'reason'],
  ),
  budget_unpriced_requests_total: counter(
    'Requests whose cost was not known, by budget. `action` is `refused` or `counted`.',
    ['budget', 'action'],
  ),
  ...ledgerMetrics,
  guardrail_checks_total: counter('Decisions of prompt guards.', ['phase', 'guard', 'action']),
  guardrail_rule_checks_total: counter(
    'Decisions of prompt guards by policy and rule, which is the position in its list, from 0. At most 2,000 combinations.',
    ['policy', 'phase', 'rule', 'guard', 'action'],
  ),
  guardrail_matches_total: counter(
    'Decisions of prompt guards by what matched, such as `builtin Email` or a category of a service. `rule` is the position in the list of the policy. At most 2,000 combinations.',
    ['policy', 'phase', 'rule', 'guard', 'match', 'action'],
  ),
  model_provider_ejections_total: counter('Ejections of model providers by reason.', [
    'backend',
    'provider',
    'reason',
  ]),
  model_provider_ejected: gauge(
    'Number of workers in which a model provider is currently ejected, by reason.',
    ['backend', 'provider', 'reason'],
  ),
  upstream_connect_duration_seconds: histogram(
    'Time to connect to a backend.',
    ['transport'],
    connects,
  ),
  upstream_call_duration_seconds: histogram(
    'Duration of calls from policies to other services. For streams, how long they were open.',
    ['kind', 'subtype'],
    durations,
  ),
  downstream_connections_total: counter('Client connections accepted.', connectionLabels),
  downstream_connections: gauge('Open client connections.', connectionLabels),
  downstream_received_bytes_total: counter('Bytes read from clients.', connectionLabels),
  downstream_sent_bytes_total: counter('Bytes written to clients.', connectionLabels),
  tls_handshake_duration_seconds: histogram(
    'Time from accepting a client connection to the end of its TLS handshake.',
    connectionLabels,
    connects,
  ),
  tls_handshakes_failed_total: counter(
    'TLS handshakes with clients that failed, timed out or were aborted.',
  ),
  tls_sessions_resumed_total: counter('TLS handshakes that resumed a session.'),
  downstream_http2_connections: gauge('Open HTTP/2 client connections.'),
  downstream_http2_streams: gauge('Open HTTP/2 client streams.'),
  downstream_http2_streams_stalled_total: counter(
    'HTTP/2 streams that were reset because the client did not read the response (`reset`), or refused because too many of its streams were stalled (`refused`).',
    ['action'],
  ),
  downstream_http2_floods_total: counter(
    'HTTP/2 connections closed because the peer exceeded a limit, by kind of limit.',
    ['kind'],
  ),
  proxy_headers_refused_total: counter(
    'Connections from load balancers that were closed because the PROXY header was missing or invalid.',
  ),
  downstream_connections_refused_total: counter(
    'Client connections that were reset because the connection limit was reached.',
  ),
  downstream_connections_unauthorized_total: counter(
    'Client connections that were reset because `frontend.networkAuthorization` refused their address.',
  ),
  upstream_race_attempts_total: counter(
    'Additional connection attempts to a backend name with several addresses, made because an earlier attempt failed or took longer than 250 ms.',
  ),
  upstream_races_won_total: counter(
    'Connections to backend names with several addresses, by the address family that was used.',
    ['family'],
  ),
  upstream_connections_total: counter('Connections established to backends.'),
  upstream_pool_connections: gauge(
    'Open connections to a backend address, `idle` or `busy`. Beyond 1,000 addresses, the others are summed up.',
    ['endpoint', 'state'],
  ),
  upstream_pool_streams: gauge(
    'Open HTTP/2 streams to a backend address, with the same limit of addresses.',
    ['endpoint'],
  ),
  read_buffers: gauge('Read buffers of 68 KiB in use by HTTP/1.1 connections to backends.'),
  upstream_connections: gauge('Open connections to backends.'),
  malformed_requests_total: counter('Malformed request heads.'),
  core_pattern_memory_bytes: gauge(
    'Memory of the WebAssembly cores that compile regular expressions and mask text.',
  ),
  core_traps_total: counter('Traps of the WebAssembly core; each is a bug.'),
  access_log_dropped_lines_total: counter('Access log lines dropped because stdout was blocked.'),
  decisions_recorded_total: counter('Decision records that were written.'),
  decisions_lost_total: counter(
    'Decision records that were lost because the disk was full or slow.',
  ),
  decision_blocks_unpublished_total: counter(
    'Blocks of records that the NATS server did not take in time. They are still on disk.',
  ),
  decisions_exported_total: counter('Decision records that a collector has accepted.'),
  decisions_export_dropped_total: counter(
    'Decision records that were dropped because the collector rejected them or was too slow.',
  ),
  metric_exports_total: counter('Exports of metrics that a collector has accepted.'),
  metric_export_failures_total: counter('Exports of metrics that failed.'),
  metric_export_points_dropped_total: counter('Data points that a collector has rejected.'),
  trace_spans_exported_total: counter('Spans exported to a collector.'),
  trace_spans_dropped_total: counter(
    'Spans dropped because a collector refused them or was too slow.',
  ),
  access_log_records_exported_total: counter('Entries of the access log sent to a collector.'),
  access_log_records_dropped_total: counter(
    'Entries of the access log that were dropped because the collector rejected them or was too slow.',
  ),
  config_sequence: gauge(
    'Version of the configuration that is active in all workers: the log position, or the change-set number if a controller configures the proxy.',
  ),
  config_rejected_resources: gauge(
    'Configuration resources that the proxy rejected, by error code.',
    ['code'],
  ),
  digest_checks_total: counter(
    "Comparisons of this gateway's state with that of another gateway at the same position of a shared log (`equal`, `different`).",
    ['result'],
  ),
  log_followed: gauge(
    '1 while the gateway follows its event log, 0 after the log failed. Only set without a controller.',
  ),
  controller_connected: gauge('1 while the proxy is connected to a controller.'),
  controller_connections_total: counter('xDS streams established with a controller.'),
  controller_connection_failures_total: counter(
    'xDS streams that ended or could not be established.',
  ),
  controller_position: gauge("Position in the controller's log of the active configuration."),
  last_good_saves_total: counter('Successful writes of the last good configuration to disk.'),
  last_good_save_failures_total: counter('Failed writes of the last good configuration to disk.'),
  listener_ports_unbound: gauge('Listener ports that could not be bound.'),
  workers: gauge('Worker threads that serve traffic.'),
  worker_restarts_total: counter('Worker threads that crashed and were restarted.'),
  process_resident_memory_bytes: gauge('Resident memory of the process.'),
  process_cpu_seconds_total: counter('User and system CPU time of the process.'),
} as const satisfies Record<string, MetricDefinition>

export type MetricName = keyof typeof metricDefinitions

/**
 * The values of one label combination. A counter or gauge has one value. A histogram has the count of each
 * bucket (not cumulative; the last count is for values beyond all bounds), followed by the sum.
 */
export interface Series {
  readonly labels: readonly string[]
  readonly values: readonly number[]
  /** The counts of a histogram in exponential buckets, if it has them. */
  readonly exponential?: ExponentialCounts
  /** At most one for each bucket. Undefined if no traced request was recorded. */
  readonly exemplars?: readonly Exemplar[]
}

/** All series of a worker or of the main thread. */
export type MetricsSnapshot = Partial<Record<MetricName, readonly Series[]>>
