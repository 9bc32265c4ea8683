/** `sluice run`: a standalone gateway on manifests, until a signal ends it. */
import { existsSync } from 'node:fs'
import { LockedError } from '../base/file-lock.ts'
import { type Standalone, startStandalone } from '../control-plane/standalone.ts'
import type { ProxyOptions } from '../proxy/workers/supervisor.ts'
import { controllerSettings } from '../settings/controller.ts'
import type { SettingName } from '../settings/index.ts'
import { formatProblem } from '../watch/index.ts'
import { OperationalLog } from './operational-log.ts'
import { exitCode, type Output, UsageError } from './output.ts'
import { heedSignals } from './signals.ts'
import { announce, trafficOptions } from './traffic.ts'

interface RunOptions {
  readonly file: readonly string[]
  readonly logFile?: string
  readonly nats?: string
  readonly ephemeral?: boolean
  /** Values of settings by name, as given on the command line. */
  readonly flags: Partial<Record<SettingName, string>>
}

/** Runs until SIGINT, SIGTERM or POST /quitquitquit; resolves with the exit code. */
export async function run(options: RunOptions, output: Output): Promise<number> {
  const missing = options.file.find((path) => !existsSync(path))
  if (missing !== undefined) throw new UsageError(`${missing} does not exist`)
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const log = new OperationalLog(output)
  // On one's own machine the loopback addresses are ordinary destinations.
  const proxy = trafficOptions(options.flags, { log, loopback: true, onQuit: end })
  heedSignals(end, log)
  const gateway = await start(options, proxy, log)
  if (gateway.logPath !== undefined) log.write('info', `event log: ${gateway.logPath}`)
  announce(gateway.proxy, log)
  await ended
  log.write('info', 'draining')
  if (await gateway.stop()) return exitCode.fine
  log.write('warn', 'the log does not answer: what it lacks by now costs history')
  // Connections to it would go on being tried.
  process.exit(exitCode.fine)
}

async function start(
  { file, logFile, nats, ephemeral }: RunOptions,
  proxy: Omit<ProxyOptions, 'channel' | 'name'>,
  log: OperationalLog,
): Promise<Standalone> {
  try {
    return await startStandalone({
      paths: file,
      ...(logFile !== undefined && { logFile }),
      ...(nats !== undefined && { nats }),
      ...(ephemeral !== undefined && { ephemeral }),
      ...leaseDuration(),
      ...digestKeyFile(),
      proxy,
      onProblem: (problem) =>
        log.write(problem.severity === 'error' ? 'error' : 'warn', formatProblem(problem)),
      notify: (severity, text) => log.write(severity, text),
      onFault: (error) =>
        log.write('fatal', error instanceof Error ? String(error.stack) : String(error)),
    })
  } catch (error) {
    if (error instanceof LockedError) throw new UsageError(error.message)
    throw error
  }
}

/** Gateways that share a log need one key, or they do not know each other's Secrets. */
function digestKeyFile(): { digestKeyFile?: string } {
  const path = process.env.SLUICE_DIGEST_KEY_FILE
  return path === undefined || path === '' ? {} : { digestKeyFile: path }
}

/** As `sluice controller` reads it. */
function leaseDuration(): { leaseDurationMs?: number } {
  const { env, read, form } = controllerSettings.leaseDurationMs
  const text = process.env[env]
  if (text === undefined) return {}
  const leaseDurationMs = read(text)
  if (leaseDurationMs === undefined) throw new UsageError(`${env}: ${text} is not ${form}`)
  return { leaseDurationMs }
}
