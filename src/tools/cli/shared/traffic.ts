/** The settings and log lines of the commands that serve traffic. */
import { openAnswerBucket } from '../../../control/log/answer-bucket.ts'
import { DecisionPublisher } from '../../../control/log/nats-decisions.ts'
import type { ProxyEvent, ProxyOptions } from '../../../gateway/proxy/workers/proxy-options.ts'
import type { RunningProxy } from '../../../gateway/proxy/workers/supervisor.ts'
import {
  type ForwardProxies,
  type ForwardProxy,
  readForwardProxies,
} from '../../../ground/base/forward-proxies.ts'
import { readFileBytes } from '../../../ground/base/read-whole-file.ts'
import type { SettingTexts } from '../../../ground/settings/config-file.ts'
import {
  drainDeadlines,
  type SettingName,
  settings as table,
} from '../../../ground/settings/index.ts'
import { readTable, type ValuesOf } from '../../../ground/settings/table.ts'
import { metricExport, recordExporter } from './collectors.ts'
import { lateGrantStore } from './grant-store.ts'
import type { OperationalLog, Severity } from './operational-log.ts'
import { UsageError } from './output.ts'
import { valuesOf } from './settings.ts'
import { packageVersion } from './version.ts'

type Line = readonly [severity: Severity, text: string]

function describe(event: ProxyEvent): Line | undefined {
  switch (event.type) {
    case 'ready':
      return ['info', 'ready']
    case 'listening':
      return ['info', `listening on port ${event.port}`]
    case 'port-lost':
      return ['warn', `no longer listening on port ${event.port}`]
    case 'rejected': {
      const { key, code, message } = event.rejection
      return code === 'resource_partly_known'
        ? ['warn', `${key}: ${message}; the rest of it is in force`]
        : ['error', `${key} is not in force: ${message}`]
    }
    case 'worker-died':
      return ['fatal', `worker ${event.worker} died and is replaced: ${event.error.message}`]
    case 'health': {
      const { backend, endpoint, isHealthy, problem } = event.change
      return isHealthy
        ? ['info', `health check of ${backend}: ${endpoint} is healthy`]
        : ['warn', `health check of ${backend}: ${endpoint} is unhealthy: ${problem}`]
    }
    case 'fault':
      return ['fatal', `worker ${event.worker}: ${event.message}`]
    case 'catalog-problem':
      return ['error', `catalog of models: ${event.message}`]
    case 'catalogs':
      return ['info', `catalogs of models are in force: ${event.digest}`]
    case 'not-recording':
      return ['error', `decisions are not recorded: ${event.error.message}`]
    case 'series-not-written':
      return ['warn', `time series are not written to disk: ${event.error.message}`]
    case 'metrics-not-exported':
      return ['warn', `metrics are not exported: ${event.message}`]
    case 'grant-not-revoked':
      return [
        'error',
        `tokens of a removed grant at ${event.service} may still be valid at the service: ${event.problem}; revoke them there`,
      ]
    default:
      return undefined
  }
}

interface TrafficContext {
  readonly log: OperationalLog
  /** Whether dynamic forward proxies may reach loopback addresses that `--dynamic-allow` does not list. */
  readonly loopback: boolean
  /** Settings that flags do not set; if omitted, they are read from the environment. */
  readonly texts?: SettingTexts
  /** Where decisions are recorded, unless a setting says so. */
  readonly records: {
    readonly folder: string | undefined
    /** Whether the controller collects the sample. If so, it is written to disk only if a setting names a folder. */
    readonly isCollected?: boolean
    /** NATS servers to which the records are also published. */
    readonly nats?: string
  }
  /** Where grants of users are kept unless a setting says so: a file or NATS servers. */
  readonly grants: string | undefined
  /** Folder for the time series; if undefined, they are in memory only. */
  readonly seriesFolder: string | undefined
  /** Where commands of MCP targets run; nowhere if omitted. */
  readonly stdio?: ProxyOptions['stdio']
  /** Called when the admin server receives POST /quitquitquit. */
  onQuit(): void
}

/** Reads the proxies of the environment, and logs which are used. @throws UsageError */
function environmentProxies(
  env: Readonly<Record<string, string | undefined>>,
  log: OperationalLog,
): ForwardProxies | undefined {
  let proxies: ForwardProxies | undefined
  try {
    proxies = readForwardProxies(env)
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
  const line = (what: string, { scheme, host, port }: ForwardProxy) =>
    log.write('info', `${what} to external hosts use ${scheme}://${host}:${port}`, 'sluice::proxy')
  if (proxies?.https !== undefined) line('connections with TLS', proxies.https)
  if (proxies?.http !== undefined) line('connections without TLS', proxies.http)
  return proxies
}

/** Reads the settings, configures the log, and returns the options of a proxy that logs its events. */
export function trafficOptions(
  flags: Partial<Record<SettingName, string>>,
  {
    log,
    loopback,
    records,
    seriesFolder,
    stdio,
    grants,
    onQuit,
    texts = { env: process.env, sources: {} },
  }: TrafficContext,
): Omit<ProxyOptions, 'channel' | 'name'> {
  const settings = valuesOf(readTable(table, flags, texts.env, texts.sources))
  const { trustedProxies, ambiguousPaths, proxyProtocolFrom, maxConnections } = settings
  const kept = recordOptions(settings, records)
  const nats = settings.recordNats ?? records.nats
  log.level = settings.logLevel
  log.form = settings.logFormat
  return {
    workers: settings.workers,
    bindAddress: settings.bindAddress,
    adminAddress: settings.adminAddress,
    statsAddress: settings.statsAddress,
    readinessAddress: settings.readinessAddress,
    clusterDomain: settings.clusterDomain,
    nameServers: settings.nameServers,
    forwardProxies: environmentProxies(texts.env, log),
    maxBackendRequests: settings.maxBackendRequests,
    accessLogFormat: settings.accessLog,
    tlsSessionSeconds: settings.tlsSessionLifetimeMs / 1_000,
    destinations: { allow: settings.dynamicAllow, refuse: settings.dynamicRefuse, loopback },
    edge: {
      trustedProxies,
      ambiguousPaths,
      proxyProtocolFrom,
      maxConnections,
      sessionKey: readSessionKey(settings.sessionKeyFile),
    },
    locality: { zone: settings.zone, node: settings.node },
    streamLimits: {
      idleTimeoutMs: settings.streamIdleMs,
      udpIdleTimeoutMs: settings.udpIdleMs,
      udpMaxSessions: settings.udpSessions,
    },
    limits: {
      minBodyBytesPerSecond: settings.minBodyRate,
      underscoreHeaders: settings.underscoreHeaders,
    },
    modelCatalogs: settings.modelCatalog,
    answerCacheBytes: settings.answerCacheMegabytes * 1_000_000,
    answerServer: settings.answerStore,
    records: kept,
    ...grantsOf(settings.grantStore ?? grants),
    ...answersOf(settings.answerStore),
    ...(seriesFolder !== undefined && { seriesFolder }),
    ...(stdio && { stdio }),
    ...metricExport(settings),
    ...recordExporter(settings, log),
    publisher: kept && decisionPublisher(nats, log),
    version: packageVersion(),
    drain: drainDeadlines(settings),
    log,
    onEvent: (event) => {
      if (event.type === 'quit-requested') onQuit()
      const line = describe(event)
      if (line !== undefined) log.write(...line, 'sluice::proxy')
    },
  }
}

type Settings = ValuesOf<typeof table>

function decisionPublisher(
  servers: string | undefined,
  log: OperationalLog,
): DecisionPublisher | undefined {
  if (servers === undefined) return undefined
  const onProblem = (text: string) => log.write('warn', text, 'sluice::proxy')
  return new DecisionPublisher({ servers, onProblem })
}

/** @throws UsageError */
function recordOptions(
  settings: Pick<
    Settings,
    'record' | 'recordDir' | 'recordExport' | 'recordHide' | 'recordMegabytes'
  >,
  byDefault: TrafficContext['records'],
): ProxyOptions['records'] {
  const { record: share } = settings
  if (share === 'off') return undefined
  const maxBytes = settings.recordMegabytes * 1_000_000
  const bounds = { share, maxBytes, hidden: settings.recordHide }
  const isCollected = share === 'sample' && byDefault.isCollected === true
  const folder = settings.recordDir ?? (isCollected ? undefined : byDefault.folder)
  if (folder !== undefined) return { ...bounds, folder }
  if (settings.recordExport !== 'off') return bounds
  if (share === 'sample') return isCollected ? bounds : undefined
  throw new UsageError('--record needs --record-dir')
}

/** Minimum size of the session key. A shorter key could be guessed. */
const minKeyBytes = 16
const maxKeyBytes = 65_536

function readSessionKey(path: string | undefined): Uint8Array | undefined {
  if (path === undefined) return undefined
  let key: Uint8Array
  try {
    key = readFileBytes(path, maxKeyBytes)
  } catch (error) {
    throw new UsageError(`--session-key-file: ${error instanceof Error ? error.message : path}`)
  }
  if (key.length >= minKeyBytes) return key
  throw new UsageError(`--session-key-file: ${path} has fewer than ${minKeyBytes} bytes`)
}

/** Logs the addresses of a proxy, so that ports chosen by the system can be found. */
export function logAddresses({ addresses }: RunningProxy, log: OperationalLog): void {
  const { admin, stats, readiness } = addresses
  if (readiness !== undefined) log.write('info', `readiness: http://${readiness}/healthz/ready`)
  if (stats !== undefined) log.write('info', `metrics: http://${stats}/metrics`)
  if (admin !== undefined) log.write('info', `admin: http://${admin}`)
}

/** Opens the store of answers on NATS. For Redis, each worker opens its own connection. */
const answersOf = (server: string | undefined): Pick<ProxyOptions, 'answers'> =>
  server === undefined || server.startsWith('redis') ? {} : { answers: openAnswerBucket(server) }

/** The store is opened when the first user needs it, because most gateways have no grants. */
function grantsOf(place: string | undefined): Pick<ProxyOptions, 'grants'> {
  return place === undefined ? {} : { grants: lateGrantStore(place) }
}
