/**
 * The settings of a process that serves traffic. The variables of the two drain deadlines and `LOG_FORMAT`
 * have the names that GatewayParameters documents.
 */
import { longestDelayMs } from '../base/timer-delay.ts'
import { metricExportSettings } from './metric-export.ts'
import { row, type ValuesOf } from './table.ts'
import {
  address,
  answerServer,
  count,
  delay,
  host,
  localAddress,
  logFilter,
  nameServers,
  names,
  oneOf,
  path,
  paths,
  positiveDelay,
  ranges,
  rate,
  recordShare,
  sessionLifetime,
  text,
  workers,
} from './types.ts'

export const settings = {
  bindAddress: row(localAddress, {
    flag: 'bind-address',
    env: 'SLUICE_BIND_ADDRESS',
    default: '::',
    doc: 'IP address on which listener ports are bound. `::` means all addresses of both families, or all IPv4 addresses if the system has no IPv6.',
  }),
  workers: row(workers, {
    flag: 'workers',
    env: 'SLUICE_WORKERS',
    default: 1,
    doc: 'Number of worker threads that serve traffic. More than one requires Linux, where all workers share each port. `auto` means one per CPU on Linux and one elsewhere.',
  }),
  adminAddress: row(address, {
    flag: 'admin-address',
    env: 'SLUICE_ADMIN_ADDRESS',
    default: 'localhost:15000',
    doc: 'Address of the admin server: `/config_dump`, `/series`, `/logging`, `/rotate_tls_session_keys` and `/quitquitquit`. Anyone who can reach it can stop the process.',
  }),
  statsAddress: row(address, {
    flag: 'stats-address',
    env: 'SLUICE_STATS_ADDRESS',
    default: ':15020',
    doc: 'Address of the metrics server. Prometheus scrapes `/metrics` or `/stats/prometheus`.',
  }),
  readinessAddress: row(address, {
    flag: 'readiness-address',
    env: 'SLUICE_READINESS_ADDRESS',
    default: ':15021',
    doc: 'Address of the readiness server: `/healthz/ready`.',
  }),
  accessLog: row(oneOf('text', 'json'), {
    flag: 'access-log',
    env: 'LOG_FORMAT',
    default: 'text',
    doc: 'Format of the access log on stdout, one line per request.',
  }),
  logLevel: row(logFilter, {
    env: 'RUST_LOG',
    default: 'info',
    doc: 'Log level for stderr: `trace`, `debug`, `info`, `warn`, `error` or `off`, for the whole process or for one of the modules `sluice`, `sluice::proxy` and `sluice::xds`.',
  }),
  logFormat: row(oneOf('text', 'json'), {
    env: 'SLUICE_LOG_FORMAT',
    default: 'text',
    doc: 'Format of log lines on stderr.',
  }),
  dynamicAllow: row(ranges, {
    flag: 'dynamic-allow',
    env: 'SLUICE_DYNAMIC_ALLOW',
    default: [],
    defaultText: 'none',
    doc: 'Destinations that dynamic forward proxies and tunnels may reach although they are refused by default, such as `10.20.0.0/16`.',
  }),
  dynamicRefuse: row(ranges, {
    flag: 'dynamic-refuse',
    env: 'SLUICE_DYNAMIC_REFUSE',
    default: [],
    defaultText: 'none',
    doc: 'Destinations that dynamic forward proxies and tunnels may not reach, in addition to the addresses that are refused by default: link-local, cloud metadata, private and other internal ones and, in a cluster, loopback.',
  }),
  clusterDomain: row(host('a domain name'), {
    flag: 'cluster-domain',
    env: 'SLUICE_CLUSTER_DOMAIN',
    default: 'cluster.local',
    doc: 'DNS suffix of Service names.',
  }),
  nameServers: row(nameServers, {
    flag: 'name-servers',
    env: 'SLUICE_NAME_SERVERS',
    defaultText: 'the DNS servers of the machine',
    doc: 'DNS servers that resolve backend host names. If set, the proxy uses only these servers and the hosts file, and ignores search domains.',
  }),
  trustedProxies: row(ranges, {
    flag: 'trusted-proxies',
    env: 'SLUICE_TRUSTED_PROXIES',
    default: [],
    defaultText: 'none',
    doc: 'Proxies in front of the gateway whose `X-Forwarded-For` header is trusted. `source.address` and `src.addr` are then the last address in that header that is not a trusted proxy.',
  }),
  ambiguousPaths: row(oneOf('keep', 'normalize', 'refuse'), {
    flag: 'ambiguous-paths',
    env: 'SLUICE_AMBIGUOUS_PATHS',
    default: 'keep',
    doc: 'How the proxy treats request paths that servers may interpret differently. `keep`: routes and expressions compare the path as sent. `normalize`: dot segments, doubled slashes, backslashes and escapes of unreserved characters (RFC 3986 6.2.2) are resolved before routing and forwarding; a path that stays ambiguous is answered 400. `refuse`: such paths, and those with an escaped slash, backslash or control character, are answered 400.',
  }),
  proxyProtocolFrom: row(ranges, {
    flag: 'proxy-protocol-from',
    env: 'SLUICE_PROXY_PROTOCOL_FROM',
    default: [],
    defaultText: 'none',
    doc: 'Load balancers that send a PROXY protocol header (version 1 or 2). The header is trusted, and connections from these addresses without it are closed. From any other address the header is a protocol error.',
  }),
  maxConnections: row(count, {
    flag: 'max-connections',
    env: 'SLUICE_MAX_CONNECTIONS',
    defaultText: 'limited by the system only',
    doc: 'Maximum number of client connections across all workers. Further connections are reset immediately.',
  }),
  maxBackendRequests: row(count, {
    env: 'SLUICE_BACKEND_MAX_REQUESTS',
    defaultText: 'no limit',
    doc: 'Maximum number of concurrent requests (and therefore connections) to one backend address, across all workers. Further requests fail with 503.',
  }),
  minBodyRate: row(rate, {
    env: 'SLUICE_MIN_REQUEST_BODY_RATE',
    default: 240,
    doc: 'Minimum rate of request bodies, after a grace period of 20 seconds. Slower requests fail with 408. Time during which the gateway itself does not read is not counted; gRPC calls and requests whose response has started are exempt. 0 disables the limit.',
  }),
  underscoreHeaders: row(oneOf('keep', 'drop', 'refuse'), {
    flag: 'underscore-headers',
    env: 'SLUICE_UNDERSCORE_HEADERS',
    default: 'keep',
    doc: 'How the proxy treats request headers with `_` in the name, which some backends treat as `-`. `keep` forwards them, `drop` removes them before anything reads them, `refuse` fails the request with 400. `keep` also refuses `Transfer_Encoding` and `Content_Length`, because such backends would see another end of the body.',
  }),
  zone: row(host('a zone name'), {
    env: 'SLUICE_ZONE',
    defaultText: 'unknown',
    doc: 'Zone of this process. Endpoints with a matching zone hint in their EndpointSlice are preferred.',
  }),
  node: row(host('a node name'), {
    env: 'SLUICE_NODE',
    defaultText: 'unknown',
    doc: 'Node of this process. Endpoints with a matching node hint in their EndpointSlice are preferred.',
  }),
  tlsSessionLifetimeMs: row(sessionLifetime, {
    env: 'SLUICE_TLS_SESSION_LIFETIME',
    default: 3_600_000,
    defaultText: '`1h`',
    doc: 'How long a TLS session can be resumed. Session-ticket keys rotate at the same interval, and each key decrypts old tickets for one more interval.',
  }),
  sessionKeyFile: row(path, {
    flag: 'session-key-file',
    env: 'SLUICE_SESSION_KEY_FILE',
    defaultText: 'a key that the control plane derives',
    doc: "File with a secret of at least 16 bytes that seals ids of MCP sessions and of what providers of models store. Proxies with the same secret accept each other's ids, even under different control planes.",
  }),
  streamIdleMs: row(positiveDelay, {
    env: 'SLUICE_STREAM_IDLE_TIMEOUT',
    default: 3_600_000,
    defaultText: '`1h`',
    doc: 'Idle timeout of TCPRoute and TLSRoute connections. Idle connections are reset.',
  }),
  udpIdleMs: row(positiveDelay, {
    env: 'SLUICE_UDP_IDLE_TIMEOUT',
    default: 60_000,
    defaultText: '`60s`',
    doc: 'Idle timeout of UDPRoute sessions. After it, the next datagram of the client may reach another backend.',
  }),
  udpSessions: row(count, {
    env: 'SLUICE_UDP_MAX_SESSIONS',
    default: 10_000,
    doc: 'Maximum number of UDPRoute sessions per worker. Each session uses a socket. Datagrams of further clients are dropped.',
  }),
  record: row(recordShare, {
    flag: 'record',
    env: 'SLUICE_RECORD',
    default: 'sample',
    defaultText: '`sample`',
    doc: 'Requests whose decision is recorded. `errors`: those whose response has a status of 400 or more or is incomplete. `sample` adds a small weighted sample of all others, and a percentage that share of them. Responses of failed requests, and of those that a percentage selects, carry `x-request-id`.',
  }),
  recordDir: row(path, {
    flag: 'record-dir',
    env: 'SLUICE_RECORD_DIR',
    defaultText: 'next to the event log, or `decisions` in `--state-dir`',
    doc: 'Folder for the decision records. A proxy without one only sends a sample to the controller.',
  }),
  grantStore: row(text('a path, or a NATS address'), {
    flag: 'grant-store',
    env: 'SLUICE_GRANT_STORE',
    defaultText:
      'for `sluice run`, the servers of `--nats`, or a file beside the event log; for `sluice proxy`, a file in `--state-dir`',
    doc: 'Where the tokens are kept that users allow the gateway to have (`backend.auth.oauthUserConsent`), sealed: a file, or NATS servers (`nats://…`), which several proxies share.',
  }),
  recordNats: row(text('a NATS address'), {
    flag: 'record-nats',
    env: 'SLUICE_RECORD_NATS',
    defaultText: 'that of `--nats` for `sluice run`, none for `sluice proxy`',
    doc: 'NATS servers to which decision records are also published, in the stream `SLUICE_DECISIONS`.',
  }),
  recordMegabytes: row(count, {
    env: 'SLUICE_RECORD_MEGABYTES',
    default: 64,
    doc: 'Maximum size of the decision records in MB. The oldest are deleted first.',
  }),
  recordHide: row(names, {
    env: 'SLUICE_RECORD_HIDE',
    default: [],
    defaultText: 'none',
    doc: 'Names of further request headers and query parameters that carry credentials, so that their values never enter a record.',
  }),
  recordExport: row(oneOf('off', 'basic', 'full'), {
    flag: 'record-export',
    env: 'SLUICE_RECORD_EXPORT',
    default: 'off',
    defaultText: '`off`',
    doc: 'Whether decision records are also sent to an OpenTelemetry collector (`OTEL_EXPORTER_OTLP_LOGS_ENDPOINT`, or `OTEL_EXPORTER_OTLP_ENDPOINT`). `basic` leaves out addresses of clients, queries, header fields and identities.',
  }),
  modelCatalog: row(paths, {
    flag: 'model-catalog',
    env: 'SLUICE_MODEL_CATALOG',
    default: [],
    defaultText: 'none',
    doc: 'Catalogs of language models in JSON, as comma-separated paths, in addition to the one that ships with the release. Of several that describe a model, the last one wins. A changed file is read within seconds.',
  }),
  answerCacheMegabytes: row(count, {
    env: 'SLUICE_ANSWER_CACHE_MEGABYTES',
    default: 64,
    doc: 'Memory for answers of models that are served again (`backend.ai.cache`), in MB, of all workers together. The oldest answers are dropped first.',
  }),
  answerStore: row(answerServer, {
    flag: 'answer-store',
    env: 'SLUICE_ANSWER_STORE',
    defaultText: 'memory only',
    doc: 'Server that keeps answers of models (`backend.ai.cache`) for several proxies, sealed with their session key: `redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]` for one that is compatible with Redis, `nats://[USER:PASSWORD@]HOST[:PORT]` for NATS with JetStream, `rediss://` and `tls://` for TLS. Set the variable, not the flag, if the address has a password.',
  }),
  ...metricExportSettings,
  minTerminationMs: row(delay, {
    env: 'CONNECTION_MIN_TERMINATION_DEADLINE',
    default: 0,
    defaultText: '`0s`',
    doc: 'Drain delay: how long the proxy still accepts connections after a stop signal.',
  }),
  maxTerminationMs: row(delay, {
    env: 'CONNECTION_TERMINATION_DEADLINE',
    defaultText: 'from `TERMINATION_GRACE_PERIOD_SECONDS`, else `5s`',
    doc: 'Drain timeout: how long requests in flight may take after a stop signal before they are aborted.',
  }),
  gracePeriodMs: row(delay, {
    env: 'TERMINATION_GRACE_PERIOD_SECONDS',
    doc: 'Time after the stop signal at which the platform kills the process. Requests are aborted 5 s before that, or 1 s before it if it is 10 s or less.',
  }),
} as const

export type SettingName = keyof typeof settings

/** The deadlines of a drain, in milliseconds after the stop signal. */
interface DrainDeadlines {
  /** Time at which the proxy stops accepting connections. */
  readonly minMs: number
  /** Time at which requests in flight are aborted. */
  readonly maxMs: number
}

/**
 * Computes the deadlines of a drain. An explicit maximum overrides the one derived from the grace period.
 * Requests are never aborted while connections are still accepted, and accepting ends at least one second
 * before the platform kills the process.
 */
export function drainDeadlines(
  from: Pick<ValuesOf<typeof settings>, 'minTerminationMs' | 'maxTerminationMs' | 'gracePeriodMs'>,
): DrainDeadlines {
  const { gracePeriodMs: killMs = longestDelayMs } = from
  const minMs = Math.min(from.minTerminationMs, Math.max(killMs - 1_000, 0), longestDelayMs)
  const maxMs = Math.max(from.maxTerminationMs ?? maxTimeBefore(from.gracePeriodMs), minMs)
  return { minMs, maxMs: Math.min(maxMs, longestDelayMs) }
}

/** Returns how long requests may take if the platform kills the process after a grace period. */
function maxTimeBefore(graceMs: number | undefined): number {
  if (graceMs === undefined) return 5_000
  return Math.max(graceMs - (graceMs <= 10_000 ? 1_000 : 5_000), 1_000)
}
