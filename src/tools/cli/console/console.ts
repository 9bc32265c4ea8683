/** `sluice console` serves the web console for a log of somewhere else. */
import { spawn } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { consoleSettings } from '../../../ground/settings/console.ts'
import { readTable } from '../../../ground/settings/table.ts'
import { isDatabase, isLogFile } from '../recording/log-files.ts'
import { recordFolderOf } from '../recording/newest-log.ts'
import { OperationalLog } from '../shared/operational-log.ts'
import { exitCode, type Output, UsageError } from '../shared/output.ts'
import { valuesOf } from '../shared/settings.ts'
import { handleSignals } from '../shared/signals.ts'
import type { CommandPlace } from './console-command.ts'
import { commandsOf, type OwnSource, recordsOf, serveConsole } from './open.ts'

export interface ConsoleOptions extends Partial<Record<keyof typeof consoleSettings, string>> {
  readonly logFile?: string
  readonly nats?: string
  readonly recordDir?: string
  readonly open: boolean
}

/**
 * Serves until a signal stops it; resolves to the exit code.
 * @throws UsageError if not exactly one log is named, or if it is unreadable
 */
export async function serveConsoleOf(
  exportFile: string | undefined,
  options: ConsoleOptions,
  output: Output,
): Promise<number> {
  const { consoleAddress } = valuesOf(readTable(consoleSettings, { ...options }, process.env))
  if (consoleAddress === 'off') throw new UsageError('--console-address off: nothing to serve')
  const source = await openSource(exportFile, options)
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  handleSignals(end, new OperationalLog(output))
  let isFirst = true
  const running = await serveConsole(consoleAddress, source, (url) => {
    if (!isFirst) return output.report(`console: ${url}`)
    isFirst = false
    output.print(`console: ${url}`)
    if (options.open) openBrowser(url)
  })
  await ended
  await running?.close()
  await source.log?.()?.close()
  return exitCode.success
}

async function openSource(
  exportFile: string | undefined,
  { logFile, nats, recordDir }: ConsoleOptions,
): Promise<OwnSource> {
  const named = [exportFile, logFile, nats].filter((input) => input !== undefined)
  if (named.length !== 1) {
    throw new UsageError('name exactly one of --log-file, --nats and an export')
  }
  if (nats !== undefined) {
    const { openNatsLog } = await import('../../../control/log/nats.ts')
    const log = await openNatsLog({ servers: nats, create: false })
    return { log: () => log, isOwnLog: true, isLive: false, ...dataOf({ nats, recordDir }) }
  }
  const path = exportFile ?? logFile ?? ''
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined) throw new UsageError(`${path} does not exist`)
  if (!found.isFile()) throw new UsageError(`${path} is not a log file`)
  if (!isLogFile(path)) throw new UsageError(`${path} is neither a log file nor an export of one`)
  const beside = recordFolderOf(path)
  const place = {
    logFile: path,
    recordDir: recordDir ?? (existsSync(beside) ? beside : undefined),
  }
  if (!isDatabase(path)) return { exportFile: path, isLive: false, ...dataOf(place) }
  const { readEmbeddedLog } = await import('../../../control/log/index.ts')
  const log = readEmbeddedLog(path)
  return { log: () => log, isLive: false, ...dataOf(place) }
}

const dataOf = (place: CommandPlace) => ({ ...recordsOf(place), ...commandsOf(() => place) })

const openers: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
}

/** Opens the default browser. If there is none, the printed URL is enough. */
function openBrowser(url: string): void {
  const [program, ...before] = openers[process.platform] ?? ['xdg-open']
  const child = spawn(program, [...before, url], { detached: true, stdio: 'ignore' })
  child.on('error', () => undefined)
  child.unref()
}
