/** What the commands that carry traffic have in common: settings, what happens, what was bound. */
import { readFileSync } from 'node:fs'
import type { ProxyEvent, ProxyOptions, RunningProxy } from '../proxy/workers/supervisor.ts'
import type { SettingTexts } from '../settings/config-file.ts'
import {
  drainDeadlines,
  readSettings,
  type SettingName,
  type SettingProblem,
} from '../settings/index.ts'
import type { OperationalLog, Severity } from './operational-log.ts'
import { UsageError } from './output.ts'
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
    case 'fault':
      return ['fatal', `worker ${event.worker}: ${event.message}`]
    default:
      return undefined
  }
}

interface Surroundings {
  readonly log: OperationalLog
  /** May a dynamic forward proxy reach loopback addresses without being told so? */
  readonly loopback: boolean
  /** Where settings come from beside flags; the environment where absent. */
  readonly texts?: SettingTexts
  /** POST /quitquitquit. */
  onQuit(): void
}

type TrafficOptions = Omit<ProxyOptions, 'channel' | 'name'>

/** The error that names every problem, a line each. */
export function usageProblems(problems: readonly SettingProblem[]): UsageError {
  return new UsageError(problems.map(({ source, message }) => `${source}: ${message}`).join('\n'))
}

/** Settings of a proxy from flags and environment; what happens in it goes to the log. */
export function trafficOptions(
  flags: Partial<Record<SettingName, string>>,
  { log, loopback, onQuit, texts = { env: process.env, sources: {} } }: Surroundings,
): TrafficOptions {
  const settings = readSettings(flags, texts.env, texts.sources)
  if (!settings.ok) throw usageProblems(settings.problems)
  log.level = settings.value.logLevel
  log.form = settings.value.logFormat
  const deadlines = drainDeadlines(settings.value)
  const { dynamicAllow, dynamicRefuse, accessLog, ...others } = settings.value
  const { trustedProxies, ambiguousPaths, proxyProtocolFrom, maxConnections, ...more } = others
  const { streamIdleMs, udpIdleMs, udpSessions, ...rest } = more
  const { logLevel: _, logFormat: __, sessionKeyFile, tlsSessionLifetimeMs, ...remaining } = rest
  const { zone, node, maxBackendRequests, minBodyRate, underscoreHeaders, ...proxy } = remaining
  return {
    ...proxy,
    accessLogFormat: accessLog,
    tlsSessionSeconds: tlsSessionLifetimeMs / 1_000,
    destinations: { allow: dynamicAllow, refuse: dynamicRefuse, loopback },
    edge: {
      trustedProxies,
      ambiguousPaths,
      proxyProtocolFrom,
      ...(maxConnections !== undefined && { maxConnections }),
      ...(sessionKeyFile !== undefined && { sessionKey: readSessionKey(sessionKeyFile) }),
    },
    ...(maxBackendRequests !== undefined && { maxBackendRequests }),
    locality: { ...(zone !== undefined && { zone }), ...(node !== undefined && { node }) },
    streamLimits: {
      idleTimeoutMs: streamIdleMs,
      udpIdleTimeoutMs: udpIdleMs,
      udpMaxSessions: udpSessions,
    },
    limits: { minBodyBytesPerSecond: minBodyRate, underscoreHeaders },
    version: packageVersion(),
    drain: deadlines,
    log,
    onEvent: (event) => {
      if (event.type === 'quit-requested') onQuit()
      const line = describe(event)
      if (line !== undefined) log.write(...line, 'sluice::proxy')
    },
  }
}

/** Fewer bytes could be found by trying. */
const shortestKey = 16

function readSessionKey(path: string): Uint8Array {
  let key: Uint8Array
  try {
    key = readFileSync(path)
  } catch (error) {
    throw new UsageError(`--session-key-file: ${error instanceof Error ? error.message : path}`)
  }
  if (key.length >= shortestKey) return key
  throw new UsageError(`--session-key-file: ${path} has fewer than ${shortestKey} bytes`)
}

/** Where everything is, so that a port that was chosen by the system can be found. */
export function announce({ addresses }: RunningProxy, log: OperationalLog): void {
  const { admin, stats, readiness } = addresses
  if (readiness !== undefined) log.write('info', `readiness: http://${readiness}/healthz/ready`)
  if (stats !== undefined) log.write('info', `metrics: http://${stats}/metrics`)
  if (admin !== undefined) log.write('info', `admin: http://${admin}`)
}
