/** `sluice run`: a standalone gateway on manifests, until a signal ends it. */
import { existsSync } from 'node:fs'
import { LogInUseError } from '../pipeline/open-log.ts'
import { type Pipeline, startPipeline } from '../pipeline.ts'
import type { ProxyEvent, ProxyOptions } from '../proxy/supervisor.ts'
import { drainDeadlines, readSettings, type SettingName } from '../settings.ts'
import { formatProblem } from '../watch/index.ts'
import { OperationalLog, type Severity } from './operational-log.ts'
import { exitCode, type Output, UsageError } from './output.ts'
import { packageVersion } from './version.ts'

export interface RunOptions {
  readonly file: readonly string[]
  readonly logFile?: string
  readonly nats?: string
  readonly ephemeral?: boolean
  /** Values of settings by name, as given on the command line. */
  readonly flags: Partial<Record<SettingName, string>>
}

type Line = readonly [severity: Severity, text: string]

function describe(event: ProxyEvent): Line | undefined {
  switch (event.type) {
    case 'ready':
      return ['info', 'ready']
    case 'listening':
      return ['info', `listening on port ${event.port}`]
    case 'port-lost':
      return ['warn', `no longer listening on port ${event.port}`]
    case 'rejected':
      return ['error', `${event.rejection.key} is not in force: ${event.rejection.message}`]
    case 'worker-died':
      return ['fatal', `worker ${event.worker} died and is replaced: ${event.error.message}`]
    case 'fault':
      return ['fatal', `worker ${event.worker}: ${event.message}`]
    default:
      return undefined
  }
}

/** Settings of the proxy from flags and environment. */
function proxyOptions(
  { flags }: RunOptions,
  onEvent: (event: ProxyEvent) => void,
): Omit<ProxyOptions, 'channel' | 'name'> {
  const settings = readSettings(flags, process.env)
  if (!settings.ok) {
    throw new UsageError(
      settings.problems.map(({ source, message }) => `${source}: ${message}`).join('\n'),
    )
  }
  const deadlines = drainDeadlines(settings.value)
  const { dynamicAllow, dynamicRefuse, accessLog, streamIdleMs, udpIdleMs, udpSessions, ...proxy } =
    settings.value
  return {
    ...proxy,
    accessLogFormat: accessLog,
    // On one's own machine the loopback addresses are ordinary destinations.
    destinations: { allow: dynamicAllow, refuse: dynamicRefuse, loopback: true },
    streamLimits: {
      idleTimeoutMs: streamIdleMs,
      udpIdleTimeoutMs: udpIdleMs,
      udpMaxSessions: udpSessions,
    },
    version: packageVersion(),
    drain: deadlines,
    onEvent,
  }
}

/** Runs until SIGINT, SIGTERM or POST /quitquitquit; resolves with the exit code. */
export async function run(options: RunOptions, output: Output): Promise<number> {
  const missing = options.file.find((path) => !existsSync(path))
  if (missing !== undefined) throw new UsageError(`${missing} does not exist`)
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const log = new OperationalLog(output)
  const proxy = proxyOptions(options, (event) => {
    if (event.type === 'quit-requested') end()
    const line = describe(event)
    if (line !== undefined) log.write(...line)
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => end())
  const pipeline = await start(options, { ...proxy, log }, log)
  announce(pipeline, log)
  await ended
  log.write('info', 'draining')
  await pipeline.stop()
  return exitCode.fine
}

async function start(
  { file, logFile, nats, ephemeral }: RunOptions,
  proxy: Omit<ProxyOptions, 'channel' | 'name'>,
  log: OperationalLog,
): Promise<Pipeline> {
  try {
    return await startPipeline({
      paths: file,
      ...(logFile !== undefined && { logFile }),
      ...(nats !== undefined && { nats }),
      ...(ephemeral !== undefined && { ephemeral }),
      proxy,
      onProblem: (problem) =>
        log.write(problem.severity === 'error' ? 'error' : 'warn', formatProblem(problem)),
      onNotice: (text) => log.write('warn', text),
      onFault: (error) =>
        log.write('fatal', error instanceof Error ? String(error.stack) : String(error)),
    })
  } catch (error) {
    if (error instanceof LogInUseError) throw new UsageError(error.message)
    throw error
  }
}

/** Where everything is, so that a port that was chosen by the system can be found. */
function announce({ proxy, logPath }: Pipeline, log: OperationalLog): void {
  const { admin, stats, readiness } = proxy.addresses
  if (logPath !== undefined) log.write('info', `event log: ${logPath}`)
  if (readiness !== undefined) log.write('info', `readiness: http://${readiness}/healthz/ready`)
  if (stats !== undefined) log.write('info', `metrics: http://${stats}/metrics`)
  if (admin !== undefined) log.write('info', `admin: http://${admin}`)
}
