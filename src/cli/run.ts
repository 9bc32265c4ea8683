/** `sluice run`: a standalone gateway on manifests, until a signal ends it. */
import { existsSync } from 'node:fs'
import { LogInUseError } from '../pipeline/open-log.ts'
import { type Pipeline, startPipeline } from '../pipeline.ts'
import type { ProxyEvent, ProxyOptions } from '../proxy/supervisor.ts'
import { drainDeadlines, readSettings, type SettingName } from '../settings.ts'
import { formatProblem } from '../watch/index.ts'
import { exitCode, type Output, UsageError } from './output.ts'
import { packageVersion } from './version.ts'

export interface RunOptions {
  readonly file: readonly string[]
  readonly logFile?: string
  readonly ephemeral?: boolean
  /** Values of settings by name, as given on the command line. */
  readonly flags: Partial<Record<SettingName, string>>
}

function describe(event: ProxyEvent): string | undefined {
  switch (event.type) {
    case 'ready':
      return 'ready'
    case 'listening':
      return `listening on port ${event.port}`
    case 'port-lost':
      return `no longer listening on port ${event.port}`
    case 'rejected':
      return `${event.rejection.key} is not in force: ${event.rejection.message}`
    case 'worker-died':
      return `worker ${event.worker} died and is replaced: ${event.error.message}`
    case 'fault':
      return `bug in worker ${event.worker}: ${event.message}`
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
  const { dynamicAllow, dynamicRefuse, accessLog, ...proxy } = settings.value
  return {
    ...proxy,
    accessLogFormat: accessLog,
    // On one's own machine the loopback addresses are ordinary destinations.
    destinations: { allow: dynamicAllow, refuse: dynamicRefuse, loopback: true },
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
  const onEvent = (event: ProxyEvent) => {
    if (event.type === 'quit-requested') end()
    const text = describe(event)
    if (text !== undefined) output.report(text)
  }
  const proxy = proxyOptions(options, onEvent)
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => end())
  let pipeline: Pipeline
  try {
    pipeline = await startPipeline({
      paths: options.file,
      ...(options.logFile !== undefined && { logFile: options.logFile }),
      ...(options.ephemeral !== undefined && { ephemeral: options.ephemeral }),
      proxy,
      onProblem: (problem) => output.report(`${problem.severity}: ${formatProblem(problem)}`),
      onNotice: (text) => output.report(text),
      onFault: (error) => output.report(`bug: ${error instanceof Error ? error.stack : error}`),
    })
  } catch (error) {
    if (error instanceof LogInUseError) throw new UsageError(error.message)
    throw error
  }
  if (pipeline.logPath !== undefined) output.report(`event log: ${pipeline.logPath}`)
  await ended
  output.report('draining')
  await pipeline.stop()
  return exitCode.fine
}
