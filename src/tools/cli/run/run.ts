/** `sluice run` runs a standalone gateway from manifests until a signal stops it. */

import { existsSync } from 'node:fs'
import { LockedError } from '../../../control/plane/file-lock.ts'
import { defaultLogPath } from '../../../control/plane/open-log.ts'
import type { Standalone } from '../../../control/plane/standalone.ts'
import { formatProblem } from '../../../control/watch/source-problem.ts'
import { prepareThreads } from '../../../gateway/proxy/workers/prepared-threads.ts'
import type { ProxyOptions } from '../../../gateway/proxy/workers/proxy-options.ts'
import type { HasEnded } from '../../../ground/model/ended-sessions.ts'
import { gatewayConsoleSettings } from '../../../ground/settings/console.ts'
import { controllerSettings } from '../../../ground/settings/controller.ts'
import type { SettingName } from '../../../ground/settings/index.ts'
import { protectionSettings } from '../../../ground/settings/protection.ts'
import { stdioSettings } from '../../../ground/settings/stdio.ts'
import { readTable } from '../../../ground/settings/table.ts'
import { oidcSignIn } from '../console/oidc-sign-in.ts'
import { commandsOf, type OwnSource, openConsole, recordsOf, sendingTo } from '../console/open.ts'
import { recordFolderOf, seriesFolderOf } from '../recording/newest-log.ts'
import { grantFileOf } from '../shared/grant-store.ts'
import { OperationalLog } from '../shared/operational-log.ts'
import { exitCode, type Output, UsageError } from '../shared/output.ts'
import { valuesOf } from '../shared/settings.ts'
import { endAfterLogTimeout, handleSignals } from '../shared/signals.ts'
import { logAddresses, trafficOptions } from '../shared/traffic.ts'
import { packageVersion } from '../shared/version.ts'
import { ConditionReports } from './condition-reports.ts'

/** Options of the command; settings are texts as given on the command line. */
export interface RunOptions
  extends Partial<
    Record<
      | SettingName
      | keyof typeof gatewayConsoleSettings
      | keyof typeof protectionSettings
      | keyof typeof stdioSettings,
      string
    >
  > {
  readonly file: readonly string[]
  readonly logFile?: string
  readonly nats?: string
  readonly ephemeral?: boolean
}

/** Runs until SIGINT, SIGTERM or POST /quitquitquit; resolves to the exit code. */
export async function run(options: RunOptions, output: Output): Promise<number> {
  const missing = options.file.find((path) => !existsSync(path))
  if (missing !== undefined) throw new UsageError(`${missing} does not exist`)
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  const log = new OperationalLog(output)
  const commands = await startCommands(options, log)
  // A standalone gateway may connect to loopback addresses, because its backends may run on the same machine.
  const proxy = trafficOptions(options, {
    log,
    loopback: true,
    records: { folder: stateFolderOf(options, recordFolderOf), nats: options.nats },
    seriesFolder: stateFolderOf(options, seriesFolderOf),
    ...(commands && { stdio: commands.settings }),
    grants: options.nats ?? stateFolderOf(options, grantFileOf),
    onQuit: end,
  })
  const access = valuesOf(readTable(gatewayConsoleSettings, options, process.env))
  const { consoleAddress, consoleActions } = access
  const hasEnded: HasEnded = (...session) => gateway.hasEnded(...session)
  const signIn = access.consoleSignIn === 'oidc' ? await oidcSignIn(access, hasEnded) : undefined
  handleSignals(end, log)
  prepareThreads(proxy.workers)
  const gateway = await start(options, proxy, log, commands?.network).catch(async (error) => {
    await commands?.child.stop()
    throw error
  })
  if (gateway.logPath !== undefined) log.write('info', `event log: ${gateway.logPath}`)
  logAddresses(gateway.proxy, log)
  const place = {
    logFile: options.nats === undefined ? gateway.logPath : undefined,
    nats: options.nats,
    recordDir: proxy.records?.folder,
    stats: gateway.proxy.addresses.stats,
  }
  const source: OwnSource = {
    log: () => gateway.log,
    isOwnLog: true,
    isLive: true,
    metrics: () => gateway.proxy.metrics(),
    series: (question) => gateway.proxy.series(question),
    ...recordsOf(place),
    ...(consoleActions && sendingTo(proxy.bindAddress, () => gateway.proxy.ports())),
    ...(gateway.logPath !== undefined && commandsOf(() => place, consoleActions)),
  }
  const webConsole = await openConsole(consoleAddress, log, source, signIn)
  await ended
  log.write('info', 'draining')
  await webConsole?.close()
  const isStopped = await gateway.stop()
  await commands?.child.stop()
  if (!isStopped) endAfterLogTimeout(log)
  return exitCode.success
}

/** Starts the process that runs commands of MCP targets, if that is enabled. */
async function startCommands(options: RunOptions, log: OperationalLog) {
  const { stdioServers, stdioUser } = valuesOf(readTable(stdioSettings, options, process.env))
  if (!stdioServers) return undefined
  if (stdioUser !== undefined && process.getuid?.() !== 0) {
    throw new UsageError('--stdio-user: only root can start servers as another user')
  }
  const { describeIsolation, findIsolation } = await import('../../../gateway/stdio/isolation.ts')
  const { StdioChild } = await import('./stdio-child.ts')
  const isolation = findIsolation(stdioUser)
  const { inForce, missing } = describeIsolation(isolation)
  log.write('info', `commands: ${inForce}`)
  for (const text of missing) log.write('warn', `commands: ${text}`)
  const network =
    isolation.namespaces === undefined
      ? 'their network is not off: this machine has no namespaces'
      : ''
  const child = new StdioChild(stdioUser, log)
  return { child, network, settings: await child.start() }
}

/** A default folder of the gateway: next to the event log, unless that is in memory. */
function stateFolderOf(
  { file, logFile, ephemeral }: RunOptions,
  folderOf: (logFile: string) => string,
): string | undefined {
  if (ephemeral === true) return undefined
  return folderOf(logFile ?? defaultLogPath(file))
}

async function start(
  options: RunOptions,
  proxy: Omit<ProxyOptions, 'channel' | 'name'>,
  log: OperationalLog,
  stdioNetwork: string | undefined,
): Promise<Standalone> {
  const { file: paths, logFile, nats, ephemeral } = options
  const { changeProtection } = valuesOf(readTable(protectionSettings, options, process.env))
  // These variables have the same meaning as for `sluice controller`.
  const { leaseDurationMs, ledgerRetentionMs } = controllerSettings
  const { startStandalone } = await import('../../../control/plane/standalone.ts')
  try {
    return await startStandalone({
      version: packageVersion(),
      paths,
      logFile,
      nats,
      ephemeral,
      ...valuesOf(readTable({ leaseDurationMs, ledgerRetentionMs }, {}, process.env)),
      digestKeyFile: process.env.SLUICE_DIGEST_KEY_FILE || undefined,
      changeProtection,
      proxy,
      ...(stdioNetwork !== undefined && { stdioNetwork }),
      onProblem: (problem) =>
        log.write(problem.severity === 'error' ? 'error' : 'warn', formatProblem(problem)),
      conditions: new ConditionReports(log, paths),
      notify: (severity, text) => log.write(severity, text),
      onFault: (error) =>
        log.write('fatal', error instanceof Error ? String(error.stack) : String(error)),
    })
  } catch (error) {
    if (error instanceof LockedError) throw new UsageError(error.message)
    throw error
  }
}
