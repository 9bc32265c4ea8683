/** `sluice controller`: the control plane of a cluster, until a signal ends it. */

import { LockedError } from '../base/file-lock.ts'
import { within } from '../base/within.ts'
import { startController } from '../control-plane/controller/controller.ts'
import { ClusterConfigError, openCluster } from '../kube/index.ts'
import { LogError } from '../log/index.ts'
import { type ControllerSettingName, readControllerSettings } from '../settings/controller.ts'
import { OperationalLog } from './operational-log.ts'
import { exitCode, type Output, UsageError } from './output.ts'
import { heedSignals } from './signals.ts'
import { packageVersion } from './version.ts'

/** How long the end waits for a log that does not answer; below the grace period of a pod. */
const stopLimitMs = 10_000

/** Runs until SIGINT or SIGTERM; resolves with the exit code. */
export async function controller(
  flags: Partial<Record<ControllerSettingName, string>>,
  output: Output,
): Promise<number> {
  const settings = readControllerSettings(flags, process.env)
  if (!settings.ok) {
    throw new UsageError(
      settings.problems.map(({ source, message }) => `${source}: ${message}`).join('\n'),
    )
  }
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const log = new OperationalLog(output, settings.value.logLevel)
  heedSignals(end, log)
  const running = await usage(async () =>
    startController({
      cluster: openCluster(settings.value.kubeconfig),
      settings: settings.value,
      version: packageVersion(),
      notify: (severity, text) => log.write(severity, text),
    }),
  )
  log.write('info', `health: http://${running.healthAddress}/readyz`)
  log.write('info', `metrics: http://${running.metricsAddress}/metrics`)
  try {
    await usage(() => Promise.race([running.started, ended]))
    await ended
    log.write('info', 'stopping')
  } catch (error) {
    await running.stop()
    throw error
  }
  if (await within(stopLimitMs, () => running.stop())) return exitCode.fine
  log.write('warn', 'the log does not answer: what it lacks by now costs history')
  // Connections to it would go on being tried.
  process.exit(exitCode.fine)
}

/** Turns what only an operator can repair into a line without a stack. */
async function usage<Value>(work: () => Promise<Value>): Promise<Value> {
  try {
    return await work()
  } catch (error) {
    const code = (error as { code?: string } | null)?.code
    const isTheirs =
      error instanceof ClusterConfigError ||
      error instanceof LockedError ||
      error instanceof LogError ||
      code === 'EACCES'
    if (isTheirs && error instanceof Error) throw new UsageError(error.message)
    throw error
  }
}
