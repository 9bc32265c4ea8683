/** `sluice controller` runs the control plane of a cluster until a signal stops it. */

import { ClusterConfigError, openCluster } from '../../../control/kube/index.ts'
import { LogError } from '../../../control/log/index.ts'
import { Controller } from '../../../control/plane/controller/controller.ts'
import { LockedError } from '../../../control/plane/file-lock.ts'
import { within } from '../../../ground/base/within.ts'
import type { HasEnded } from '../../../ground/model/ended-sessions.ts'
import { controllerConsoleSettings } from '../../../ground/settings/console.ts'
import {
  type ControllerSettingName,
  readControllerSettings,
} from '../../../ground/settings/controller.ts'
import { readTable } from '../../../ground/settings/table.ts'
import { kubernetesSignIn } from '../console/kubernetes-sign-in.ts'
import { oidcSignIn } from '../console/oidc-sign-in.ts'
import { commandsOf, type OwnSource, openConsole, recordsOf } from '../console/open.ts'
import { OperationalLog } from '../shared/operational-log.ts'
import { exitCode, type Output, UsageError } from '../shared/output.ts'
import { valuesOf } from '../shared/settings.ts'
import { endAfterLogTimeout, handleSignals } from '../shared/signals.ts'
import { packageVersion } from '../shared/version.ts'

/** Maximum time to wait for the event log at shutdown; shorter than the grace period of a pod. */
const stopLimitMs = 10_000

/** Runs until SIGINT or SIGTERM; resolves to the exit code. */
export async function controller(
  flags: Partial<Record<ControllerSettingName | keyof typeof controllerConsoleSettings, string>>,
  output: Output,
): Promise<number> {
  const settings = valuesOf(readControllerSettings(flags, process.env))
  const access = valuesOf(readTable(controllerConsoleSettings, flags, process.env))
  const { consoleAddress, consoleActions } = access
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const log = new OperationalLog(output, settings.logLevel)
  handleSignals(end, log)
  const hasEnded: HasEnded = (...session) => running.hasEnded(...session)
  const oidc = access.consoleSignIn === 'oidc' ? await oidcSignIn(access, hasEnded) : undefined
  const cluster = await reportUserErrors(async () => openCluster(settings.kubeconfig))
  const running = await reportUserErrors(async () =>
    new Controller({
      cluster,
      settings,
      version: packageVersion(),
      notify: (severity, text) => log.write(severity, text),
    }).start(),
  )
  log.write('info', `health: http://${running.healthAddress}/readyz`)
  log.write('info', `metrics: http://${running.metricsAddress}/metrics`)
  const signIn = access.consoleSignIn === 'kubernetes' ? kubernetesSignIn(cluster) : oidc
  const source: OwnSource = {
    log: () => running.log?.log,
    isOwnLog: true,
    isLive: true,
    metrics: async () => running.metrics(),
    series: (question) => running.series(question),
    ...recordsOf(settings),
    ...commandsOf(
      () =>
        settings.nats === undefined ? { logFile: running.log?.path } : { nats: settings.nats },
      consoleActions,
    ),
  }
  const webConsole = await openConsole(consoleAddress, log, source, signIn)
  try {
    await reportUserErrors(() => Promise.race([running.started, ended]))
    await ended
    log.write('info', 'stopping')
  } catch (error) {
    await webConsole?.close()
    await running.stop()
    throw error
  }
  await webConsole?.close()
  if (!(await within(stopLimitMs, () => running.stop()))) endAfterLogTimeout(log)
  return exitCode.success
}

/** Converts errors that an operator must fix into usage errors, which are printed without a stack trace. */
async function reportUserErrors<Value>(work: () => Promise<Value>): Promise<Value> {
  try {
    return await work()
  } catch (error) {
    const isUserError =
      error instanceof ClusterConfigError ||
      error instanceof LockedError ||
      error instanceof LogError ||
      (error as NodeJS.ErrnoException | null)?.code === 'EACCES'
    if (isUserError && error instanceof Error) throw new UsageError(error.message)
    throw error
  }
}
