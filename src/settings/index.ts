/**
 * The settings of a process that carries traffic: one row is a command-line option, an environment
 * variable and a line of docs/settings.md. A flag wins over the environment, which wins over the
 * default. The two deadlines and LOG_FORMAT keep the names that GatewayParameters documents.
 */
import { parseLogFilter } from '../base/log-filter.ts'
import { failAll, type Outcome, succeed } from '../base/outcome.ts'
import { longestDelayMs } from '../base/timer-delay.ts'
import {
  addressForm,
  delayForm,
  readAddress,
  readCount,
  readDelay,
  readHost,
  readLocalAddress,
  readPath,
  readPositiveDelay,
  readRanges,
  readRate,
  readServers,
  readSessionLifetime,
  readWord,
  readWorkers,
  sessionLifetimeForm,
} from './readers.ts'
import { remoteSettings } from './remote.ts'
import { row, type SettingProblem, type SettingRow } from './row.ts'

export type { SettingProblem, SettingRow }
export { remoteSettings }

export const settings = {
  bindAddress: row({
    flag: 'bind-address',
    env: 'SLUICE_BIND_ADDRESS',
    form: 'an IP address or `localhost`',
    read: readLocalAddress,
    default: '0.0.0.0',
    doc: 'IP address on which listener ports are bound.',
  }),
  workers: row<number | 'auto'>({
    flag: 'workers',
    env: 'SLUICE_WORKERS',
    form: '1 to 256, or `auto`',
    read: readWorkers,
    default: 1,
    doc: 'Number of worker threads that serve traffic. More than one requires Linux, where all workers share each port. `auto` means one per CPU on Linux and one elsewhere.',
  }),
  adminAddress: row({
    flag: 'admin-address',
    env: 'SLUICE_ADMIN_ADDRESS',
    form: addressForm,
    read: readAddress,
    default: '127.0.0.1:15000',
    doc: 'Address of the admin server: `/config_dump`, `/logging`, `/rotate_tls_session_keys` and `/quitquitquit`. Anyone who can reach it can stop the process.',
  }),
  statsAddress: row({
    flag: 'stats-address',
    env: 'SLUICE_STATS_ADDRESS',
    form: addressForm,
    read: readAddress,
    default: '0.0.0.0:15020',
    doc: 'Address of the metrics server. Prometheus scrapes `/metrics` or `/stats/prometheus`.',
  }),
  readinessAddress: row({
    flag: 'readiness-address',
    env: 'SLUICE_READINESS_ADDRESS',
    form: addressForm,
    read: readAddress,
    default: '0.0.0.0:15021',
    doc: 'Address of the readiness server: `/healthz/ready`.',
  }),
  accessLog: row({
    flag: 'access-log',
    env: 'LOG_FORMAT',
    form: '`text` or `json`',
    read: readWord('text', 'json'),
    default: 'text' as const,
    doc: 'Format of the access log on stdout, one line per request.',
  }),
  logLevel: row({
    env: 'RUST_LOG',
    form: 'comma-separated levels, such as `info,sluice::xds=debug`',
    read: (text) => (parseLogFilter(text) === undefined ? undefined : text),
    default: 'info',
    doc: 'Log level for stderr: `trace`, `debug`, `info`, `warn`, `error` or `off`, for the whole process or for one of the modules `sluice`, `sluice::proxy` and `sluice::xds`.',
  }),
  logFormat: row({
    env: 'SLUICE_LOG_FORMAT',
    form: '`text` or `json`',
    read: readWord('text', 'json'),
    default: 'text' as const,
    doc: 'Format of log lines on stderr.',
  }),
  dynamicAllow: row<readonly string[]>({
    flag: 'dynamic-allow',
    env: 'SLUICE_DYNAMIC_ALLOW',
    form: 'comma-separated IP addresses and CIDRs',
    isList: true,
    read: readRanges,
    default: [],
    defaultText: 'none',
    doc: 'Destinations that dynamic forward proxies may reach although they are refused by default, such as `127.0.0.0/8`.',
  }),
  dynamicRefuse: row<readonly string[]>({
    flag: 'dynamic-refuse',
    env: 'SLUICE_DYNAMIC_REFUSE',
    form: 'comma-separated IP addresses and CIDRs',
    isList: true,
    read: readRanges,
    default: [],
    defaultText: 'none',
    doc: 'Destinations that dynamic forward proxies may not reach, in addition to link-local and cloud metadata addresses.',
  }),
  clusterDomain: row({
    flag: 'cluster-domain',
    env: 'SLUICE_CLUSTER_DOMAIN',
    form: 'a domain name',
    read: readHost,
    default: 'cluster.local',
    doc: 'DNS suffix of Service names.',
  }),
  nameServers: row<readonly string[] | undefined>({
    flag: 'name-servers',
    env: 'SLUICE_NAME_SERVERS',
    form: 'comma-separated IP addresses, each with an optional `:port`',
    isList: true,
    read: readServers,
    default: undefined,
    defaultText: 'the DNS servers of the machine',
    doc: 'DNS servers that resolve backend host names. If set, the proxy uses only these servers and the hosts file, and ignores search domains.',
  }),
  trustedProxies: row<readonly string[]>({
    flag: 'trusted-proxies',
    env: 'SLUICE_TRUSTED_PROXIES',
    form: 'comma-separated IP addresses and CIDRs',
    isList: true,
    read: readRanges,
    default: [],
    defaultText: 'none',
    doc: 'Proxies in front of the gateway whose `X-Forwarded-For` header is trusted. `source.address` and `src.addr` are then the last address in that header that is not a trusted proxy.',
  }),
  ambiguousPaths: row({
    flag: 'ambiguous-paths',
    env: 'SLUICE_AMBIGUOUS_PATHS',
    form: '`keep`, `normalize` or `refuse`',
    read: readWord('keep', 'normalize', 'refuse'),
    default: 'keep' as const,
    doc: 'How the proxy treats request paths that servers may interpret differently. `keep`: routes and expressions compare the path as sent. `normalize`: dot segments, doubled slashes, backslashes and escapes of unreserved characters (RFC 3986 6.2.2) are resolved before routing and forwarding; a path that stays ambiguous is answered 400. `refuse`: such paths, and those with an escaped slash, backslash or control character, are answered 400.',
  }),
  proxyProtocolFrom: row<readonly string[]>({
    flag: 'proxy-protocol-from',
    env: 'SLUICE_PROXY_PROTOCOL_FROM',
    form: 'comma-separated IP addresses and CIDRs',
    isList: true,
    read: readRanges,
    default: [],
    defaultText: 'none',
    doc: 'Load balancers that send a PROXY protocol header (version 1 or 2). The header is trusted, and connections from these addresses without it are closed. From any other address the header is a protocol error.',
  }),
  maxConnections: row<number | undefined>({
    flag: 'max-connections',
    env: 'SLUICE_MAX_CONNECTIONS',
    form: '1 to 1000000',
    read: readCount,
    default: undefined,
    defaultText: 'limited by the system only',
    doc: 'Maximum number of client connections across all workers. Further connections are reset immediately.',
  }),
  maxBackendRequests: row<number | undefined>({
    env: 'SLUICE_BACKEND_MAX_REQUESTS',
    form: '1 to 1000000',
    read: readCount,
    default: undefined,
    defaultText: 'no limit',
    doc: 'Maximum number of concurrent requests (and therefore connections) to one backend address, across all workers. Further requests fail with 503.',
  }),
  minBodyRate: row({
    env: 'SLUICE_MIN_REQUEST_BODY_RATE',
    form: 'bytes per second, 0 to 1000000000',
    read: readRate,
    default: 240,
    doc: 'Minimum rate of request bodies, after a grace period of 20 seconds. Slower requests fail with 408. Time during which the gateway itself does not read is not counted; gRPC calls and requests whose response has started are exempt. 0 disables the limit.',
  }),
  underscoreHeaders: row({
    flag: 'underscore-headers',
    env: 'SLUICE_UNDERSCORE_HEADERS',
    form: '`keep`, `drop` or `refuse`',
    read: readWord('keep', 'drop', 'refuse'),
    default: 'keep' as const,
    doc: 'How the proxy treats request headers with `_` in the name, which some backends treat as `-`. `keep` forwards them, `drop` removes them before anything reads them, `refuse` fails the request with 400.',
  }),
  zone: row<string | undefined>({
    env: 'SLUICE_ZONE',
    form: 'a zone name',
    read: readHost,
    default: undefined,
    defaultText: 'unknown',
    doc: 'Zone of this process. Endpoints with a matching zone hint in their EndpointSlice are preferred.',
  }),
  node: row<string | undefined>({
    env: 'SLUICE_NODE',
    form: 'a node name',
    read: readHost,
    default: undefined,
    defaultText: 'unknown',
    doc: 'Node of this process. Endpoints with a matching node hint in their EndpointSlice are preferred.',
  }),
  tlsSessionLifetimeMs: row({
    env: 'SLUICE_TLS_SESSION_LIFETIME',
    form: sessionLifetimeForm,
    read: readSessionLifetime,
    default: 3_600_000,
    defaultText: '`1h`',
    doc: 'How long a TLS session can be resumed. Session-ticket keys rotate at the same interval, and each key decrypts old tickets for one more interval.',
  }),
  sessionKeyFile: row<string | undefined>({
    flag: 'session-key-file',
    env: 'SLUICE_SESSION_KEY_FILE',
    form: 'a path',
    read: readPath,
    default: undefined,
    defaultText: 'a key that the control plane derives',
    doc: "File with a secret of at least 16 bytes that seals MCP session ids. Proxies with the same secret can continue each other's sessions, even under different control planes.",
  }),
  streamIdleMs: row({
    env: 'SLUICE_STREAM_IDLE_TIMEOUT',
    form: delayForm,
    read: readPositiveDelay,
    default: 3_600_000,
    defaultText: '`1h`',
    doc: 'Idle timeout of TCPRoute and TLSRoute connections. Idle connections are reset.',
  }),
  udpIdleMs: row({
    env: 'SLUICE_UDP_IDLE_TIMEOUT',
    form: delayForm,
    read: readPositiveDelay,
    default: 60_000,
    defaultText: '`60s`',
    doc: 'Idle timeout of UDPRoute sessions. After it, the next datagram of the client may reach another backend.',
  }),
  udpSessions: row({
    env: 'SLUICE_UDP_MAX_SESSIONS',
    form: '1 to 1000000',
    read: readCount,
    default: 10_000,
    doc: 'Maximum number of UDPRoute sessions per worker. Each session uses a socket. Datagrams of further clients are dropped.',
  }),
  minTerminationMs: row({
    env: 'CONNECTION_MIN_TERMINATION_DEADLINE',
    form: delayForm,
    read: readDelay,
    default: 0,
    defaultText: '`0s`',
    doc: 'Drain delay: how long the proxy still accepts connections after a stop signal.',
  }),
  maxTerminationMs: row<number | undefined>({
    env: 'CONNECTION_TERMINATION_DEADLINE',
    form: delayForm,
    read: readDelay,
    default: undefined,
    defaultText: 'from `TERMINATION_GRACE_PERIOD_SECONDS`, else `5s`',
    doc: 'Drain timeout: how long requests in flight may take after a stop signal before they are aborted.',
  }),
  gracePeriodMs: row<number | undefined>({
    env: 'TERMINATION_GRACE_PERIOD_SECONDS',
    form: delayForm,
    read: readDelay,
    default: undefined,
    defaultText: 'none',
    doc: 'Time after the stop signal at which the platform kills the process. Requests are aborted 5 s before that, or 1 s before it if it is 10 s or less.',
  }),
} as const

type Table = Readonly<Record<string, SettingRow<unknown>>>
type ValuesOf<Rows extends Table> = {
  readonly [Name in keyof Rows]: Rows[Name] extends SettingRow<infer Value> ? Value : never
}

export type SettingName = keyof typeof settings
type Settings = ValuesOf<typeof settings>
export type RemoteSettingName = keyof typeof remoteSettings
export type RemoteSettings = ValuesOf<typeof remoteSettings>

/** How long to wait for what when told to stop, in milliseconds. */
interface DrainDeadlines {
  readonly minMs: number
  readonly maxMs: number
}

/** Environment variable -> where its text is really from, such as a file; for messages. */
type Sources = Readonly<Record<string, string>>

/**
 * Reads every setting. `flags` has the texts given on the command line by setting name; `env` is
 * the environment, where an empty variable counts as unset. All problems are named at once.
 */
export function readSettings(
  flags: Partial<Record<SettingName, string | undefined>>,
  env: Readonly<Record<string, string | undefined>>,
  sources: Sources = {},
): Outcome<Settings, SettingProblem> {
  return readTable(settings, flags, env, sources)
}

/** As `readSettings`, for a proxy of a controller; what is required and missing is a problem. */
export function readRemoteSettings(
  flags: Partial<Record<RemoteSettingName, string | undefined>>,
  env: Readonly<Record<string, string | undefined>>,
  sources: Sources = {},
): Outcome<RemoteSettings, SettingProblem> {
  const read = readTable(remoteSettings, flags, env, sources)
  if (!read.ok) return read
  const required = ['xdsAddress', 'gateway'] as const
  const missing = required.filter((name) => read.value[name] === undefined)
  if (missing.length === 0) return read
  return failAll(
    missing.map((name) => {
      const { flag, env: variable, form } = remoteSettings[name]
      return { source: `--${flag}`, message: `is required (or ${variable}): ${form}` }
    }),
  )
}

function readTable<Rows extends Table>(
  table: Rows,
  flags: Partial<Record<keyof Rows, string | undefined>>,
  env: Readonly<Record<string, string | undefined>>,
  sources: Sources,
): Outcome<ValuesOf<Rows>, SettingProblem> {
  const values: Record<string, unknown> = {}
  const problems: SettingProblem[] = []
  for (const [name, setting] of Object.entries(table)) {
    const flag = flags[name]
    const text = flag ?? (env[setting.env] || undefined)
    const value = text === undefined ? setting.default : setting.read(text)
    if (text !== undefined && value === undefined) {
      const source =
        flag === undefined ? (sources[setting.env] ?? setting.env) : `--${setting.flag}`
      problems.push({ source, message: `${JSON.stringify(text)} is not ${setting.form}` })
    }
    values[name] = value
  }
  return problems.length > 0 ? failAll(problems) : succeed(values as ValuesOf<Rows>)
}

/**
 * The deadlines of a drain, both counted from the signal: an explicit maximum wins over what the
 * grace period leaves, cutting never comes before accepting has ended, and accepting ends a second
 * before the platform kills at the latest.
 */
export function drainDeadlines(
  from: Pick<Settings, 'minTerminationMs' | 'maxTerminationMs' | 'gracePeriodMs'>,
): DrainDeadlines {
  const { gracePeriodMs: killMs = longestDelayMs } = from
  const minMs = Math.min(from.minTerminationMs, Math.max(killMs - 1_000, 0), longestDelayMs)
  const maxMs = Math.max(from.maxTerminationMs ?? leftOf(from.gracePeriodMs), minMs)
  return { minMs, maxMs: Math.min(maxMs, longestDelayMs) }
}

function leftOf(graceMs: number | undefined): number {
  if (graceMs === undefined) return 5_000
  return Math.max(graceMs - (graceMs <= 10_000 ? 1_000 : 5_000), 1_000)
}
