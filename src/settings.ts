/**
 * The settings of a process that carries traffic: one row is a command-line option, an environment
 * variable and a line of docs/settings.md. A flag wins over the environment, which wins over the
 * default. The two deadlines and LOG_FORMAT keep the names that GatewayParameters documents.
 */
import { parseLogFilter } from './base/log-filter.ts'
import { failAll, type Outcome, succeed } from './base/outcome.ts'
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
} from './settings/readers.ts'
import { remoteSettings } from './settings/remote.ts'
import { row, type SettingProblem, type SettingRow } from './settings/row.ts'

export type { SettingProblem, SettingRow }
export { remoteSettings }

export const settings = {
  bindAddress: row({
    flag: 'bind-address',
    env: 'SLUICE_BIND_ADDRESS',
    form: 'an IP address or `localhost`',
    read: readLocalAddress,
    default: '0.0.0.0',
    doc: 'Address on which the ports of listeners are bound.',
  }),
  workers: row<number | 'auto'>({
    flag: 'workers',
    env: 'SLUICE_WORKERS',
    form: '1 to 256, or `auto`',
    read: readWorkers,
    default: 1,
    doc: 'Threads that carry traffic. More than one needs Linux, where they share each port; `auto` is one for each processor there, and one elsewhere.',
  }),
  adminAddress: row({
    flag: 'admin-address',
    env: 'SLUICE_ADMIN_ADDRESS',
    form: addressForm,
    read: readAddress,
    default: '127.0.0.1:15000',
    doc: 'Serves `/config_dump`, `/logging`, `/rotate_tls_session_keys` and `/quitquitquit`; whoever reaches it can stop the process.',
  }),
  statsAddress: row({
    flag: 'stats-address',
    env: 'SLUICE_STATS_ADDRESS',
    form: addressForm,
    read: readAddress,
    default: '0.0.0.0:15020',
    doc: 'Serves metrics for Prometheus on `/metrics` and `/stats/prometheus`.',
  }),
  readinessAddress: row({
    flag: 'readiness-address',
    env: 'SLUICE_READINESS_ADDRESS',
    form: addressForm,
    read: readAddress,
    default: '0.0.0.0:15021',
    doc: 'Serves `/healthz/ready`.',
  }),
  accessLog: row({
    flag: 'access-log',
    env: 'LOG_FORMAT',
    form: '`text` or `json`',
    read: readWord('text', 'json'),
    default: 'text' as const,
    doc: 'Format of the access log on standard output, one line for each request.',
  }),
  logLevel: row({
    env: 'RUST_LOG',
    form: 'levels with commas between, such as `info,sluice::xds=debug`',
    read: (text) => (parseLogFilter(text) === undefined ? undefined : text),
    default: 'info',
    doc: 'What is told on standard error: `trace`, `debug`, `info`, `warn`, `error` or `off`, for everything or for the modules `sluice`, `sluice::proxy` and `sluice::xds`.',
  }),
  logFormat: row({
    env: 'SLUICE_LOG_FORMAT',
    form: '`text` or `json`',
    read: readWord('text', 'json'),
    default: 'text' as const,
    doc: 'Form of the lines on standard error.',
  }),
  dynamicAllow: row<readonly string[]>({
    flag: 'dynamic-allow',
    env: 'SLUICE_DYNAMIC_ALLOW',
    form: 'addresses and CIDRs, with commas between',
    isList: true,
    read: readRanges,
    default: [],
    defaultText: 'none',
    doc: 'What a dynamic forward proxy may reach although it is refused by default, such as `127.0.0.0/8`.',
  }),
  dynamicRefuse: row<readonly string[]>({
    flag: 'dynamic-refuse',
    env: 'SLUICE_DYNAMIC_REFUSE',
    form: 'addresses and CIDRs, with commas between',
    isList: true,
    read: readRanges,
    default: [],
    defaultText: 'none',
    doc: 'What a dynamic forward proxy may not reach, beside link-local and cloud metadata addresses.',
  }),
  clusterDomain: row({
    flag: 'cluster-domain',
    env: 'SLUICE_CLUSTER_DOMAIN',
    form: 'a domain',
    read: readHost,
    default: 'cluster.local',
    doc: 'Last part of the names of Services.',
  }),
  nameServers: row<readonly string[] | undefined>({
    flag: 'name-servers',
    env: 'SLUICE_NAME_SERVERS',
    form: 'addresses, each with `:port` or without, with commas between',
    isList: true,
    read: readServers,
    default: undefined,
    defaultText: 'those of the machine',
    doc: 'DNS servers that are asked for the hosts of backends. Where they are given, nobody else is asked but the hosts file: search domains mean nothing then.',
  }),
  trustedProxies: row<readonly string[]>({
    flag: 'trusted-proxies',
    env: 'SLUICE_TRUSTED_PROXIES',
    form: 'addresses and CIDRs, with commas between',
    isList: true,
    read: readRanges,
    default: [],
    defaultText: 'none',
    doc: 'Proxies in front whose `X-Forwarded-For` is believed: `source.address` and `src.addr` are then the last address in it that is not one of theirs.',
  }),
  ambiguousPaths: row({
    flag: 'ambiguous-paths',
    env: 'SLUICE_AMBIGUOUS_PATHS',
    form: '`keep`, `normalize` or `refuse`',
    read: readWord('keep', 'normalize', 'refuse'),
    default: 'keep' as const,
    doc: 'What happens to request paths that servers may read in different ways. `keep`: routes and expressions compare them as sent. `normalize`: dot segments, doubled slashes, backslashes and escapes of unreserved characters (RFC 3986 6.2.2) are resolved before routing and forwarding; a path that stays ambiguous is answered 400. `refuse`: such paths, and those with an escaped slash, backslash or control character, are answered 400.',
  }),
  proxyProtocolFrom: row<readonly string[]>({
    flag: 'proxy-protocol-from',
    env: 'SLUICE_PROXY_PROTOCOL_FROM',
    form: 'addresses and CIDRs, with commas between',
    isList: true,
    read: readRanges,
    default: [],
    defaultText: 'none',
    doc: 'Load balancers whose connections must begin with a header of the PROXY protocol (version 1 or 2), which is believed; one without is dropped. From all others such a header is nothing but bad bytes.',
  }),
  maxConnections: row<number | undefined>({
    flag: 'max-connections',
    env: 'SLUICE_MAX_CONNECTIONS',
    form: '1 to 1000000',
    read: readCount,
    default: undefined,
    defaultText: 'as many as the system allows',
    doc: 'Client connections that the proxy holds at a time, all workers together; more are reset at once.',
  }),
  maxBackendRequests: row<number | undefined>({
    env: 'SLUICE_BACKEND_MAX_REQUESTS',
    form: '1 to 1000000',
    read: readCount,
    default: undefined,
    defaultText: 'no limit',
    doc: 'Most requests, and so connections, that are under way to one address of a backend, all workers together. Others are answered 503.',
  }),
  minBodyRate: row({
    env: 'SLUICE_MIN_REQUEST_BODY_RATE',
    form: 'bytes per second, 0 to 1000000000',
    read: readRate,
    default: 240,
    doc: 'Lowest speed of the body of a request, with 20 seconds of grace; slower ones are answered 408. Time in which the gateway does not read, calls of gRPC and requests whose response has begun do not count. 0 is no limit.',
  }),
  underscoreHeaders: row({
    flag: 'underscore-headers',
    env: 'SLUICE_UNDERSCORE_HEADERS',
    form: '`keep`, `drop` or `refuse`',
    read: readWord('keep', 'drop', 'refuse'),
    default: 'keep' as const,
    doc: 'Header fields of requests with `_` in their names, which some backends take for the same names with `-`: they are passed on, left out before anything reads them, or the request is answered 400.',
  }),
  zone: row<string | undefined>({
    env: 'SLUICE_ZONE',
    form: 'the name of a zone',
    read: readHost,
    default: undefined,
    defaultText: 'unknown',
    doc: 'Zone that this process runs in. Endpoints whose EndpointSlices name it in their hints are preferred.',
  }),
  node: row<string | undefined>({
    env: 'SLUICE_NODE',
    form: 'the name of a node',
    read: readHost,
    default: undefined,
    defaultText: 'unknown',
    doc: 'Node that this process runs on; as `SLUICE_ZONE`, for hints that name nodes.',
  }),
  tlsSessionLifetimeMs: row({
    env: 'SLUICE_TLS_SESSION_LIFETIME',
    form: sessionLifetimeForm,
    read: readSessionLifetime,
    default: 3_600_000,
    defaultText: '`1h`',
    doc: 'How long a TLS session can be resumed. The keys of session tickets are changed as often, and open what was sealed before for as long again.',
  }),
  sessionKeyFile: row<string | undefined>({
    flag: 'session-key-file',
    env: 'SLUICE_SESSION_KEY_FILE',
    form: 'a path',
    read: readPath,
    default: undefined,
    defaultText: 'a key of the control plane: of its log, or of all its replicas',
    doc: 'At least 16 secret bytes. Processes with the same ones carry on the MCP sessions of each other, whoever configures them.',
  }),
  streamIdleMs: row({
    env: 'SLUICE_STREAM_IDLE_TIMEOUT',
    form: delayForm,
    read: readPositiveDelay,
    default: 3_600_000,
    defaultText: '`1h`',
    doc: 'A connection of a TCPRoute or TLSRoute on which nothing moves for this long is reset.',
  }),
  udpIdleMs: row({
    env: 'SLUICE_UDP_IDLE_TIMEOUT',
    form: delayForm,
    read: readPositiveDelay,
    default: 60_000,
    defaultText: '`60s`',
    doc: 'A client of a UDPRoute without datagrams for this long is forgotten; its next one may reach another backend.',
  }),
  udpSessions: row({
    env: 'SLUICE_UDP_MAX_SESSIONS',
    form: '1 to 1000000',
    read: readCount,
    default: 10_000,
    doc: 'Clients of UDPRoutes that one worker serves at a time, each with a socket of its own; datagrams of more are dropped.',
  }),
  minTerminationMs: row({
    env: 'CONNECTION_MIN_TERMINATION_DEADLINE',
    form: delayForm,
    read: readDelay,
    default: 0,
    defaultText: '`0s`',
    doc: 'When told to stop, how long new connections are still accepted.',
  }),
  maxTerminationMs: row<number | undefined>({
    env: 'CONNECTION_TERMINATION_DEADLINE',
    form: delayForm,
    read: readDelay,
    default: undefined,
    defaultText: 'from `TERMINATION_GRACE_PERIOD_SECONDS`, else `5s`',
    doc: 'When told to stop, how long requests in flight may take before they are cut.',
  }),
  gracePeriodMs: row<number | undefined>({
    env: 'TERMINATION_GRACE_PERIOD_SECONDS',
    form: delayForm,
    read: readDelay,
    default: undefined,
    defaultText: 'none',
    doc: 'When the platform kills the process. Requests are cut 5 s before it, or 1 s before it where it is at most 10 s.',
  }),
} as const

type Table = Readonly<Record<string, SettingRow<unknown>>>
type ValuesOf<Rows extends Table> = {
  readonly [Name in keyof Rows]: Rows[Name] extends SettingRow<infer Value> ? Value : never
}

export type SettingName = keyof typeof settings
export type Settings = ValuesOf<typeof settings>
export type RemoteSettingName = keyof typeof remoteSettings
export type RemoteSettings = ValuesOf<typeof remoteSettings>

/** How long to wait for what when told to stop, in milliseconds. */
export interface DrainDeadlines {
  readonly minMs: number
  readonly maxMs: number
}

/** Environment variable -> where its text is really from, such as a file; for messages. */
export type Sources = Readonly<Record<string, string>>

/** A timer of the platform knows no longer time, of some 24 days. */
const longestMs = 2_147_483_647

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
  const { gracePeriodMs: killMs = longestMs } = from
  const minMs = Math.min(from.minTerminationMs, Math.max(killMs - 1_000, 0), longestMs)
  const maxMs = Math.max(from.maxTerminationMs ?? leftOf(from.gracePeriodMs), minMs)
  return { minMs, maxMs: Math.min(maxMs, longestMs) }
}

function leftOf(graceMs: number | undefined): number {
  if (graceMs === undefined) return 5_000
  return Math.max(graceMs - (graceMs <= 10_000 ? 1_000 : 5_000), 1_000)
}
