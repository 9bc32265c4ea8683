/**
 * Finds the log that a command reads if the user names none: that of the running gateway, else the newest one of
 * the state folder.
 */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { isLocked } from '../../../control/plane/file-lock.ts'
import { stateFolder } from '../../../control/plane/open-log.ts'
import type { Output } from '../shared/output.ts'

/** The default folder for the records of a gateway, next to its event log. */
export const recordFolderOf = (logFile: string): string => `${logFile}.decisions`

/** The folder for the time series of a gateway. */
export const seriesFolderOf = (logFile: string): string => `${logFile}.series`

/** Returns the path of the log and reports it; undefined, which is reported too, if there is none. */
export function newestLog(report: Output['report']): string | undefined {
  const [newest] = logsByAge()
  report(
    newest === undefined
      ? `no event log was found in ${stateFolder()}; sluice run stores one there`
      : `event log: ${newest.path} (${newest.isRunning ? 'of the running gateway' : 'the newest'}; --log-file names another one)`,
  )
  return newest?.path
}

/** Like `newestLog`, for the records next to the newest log that has any. */
export function newestRecords(report: Output['report']): string | undefined {
  const folder = logsByAge()
    .map(({ path }) => recordFolderOf(path))
    .find(isFolder)
  if (folder !== undefined) {
    report(`decision records: ${folder} (the newest; --record-dir names others)`)
  }
  return folder
}

const isFolder = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false

interface FoundLog {
  readonly path: string
  readonly isRunning: boolean
}

/** All logs in the state folder: those of running gateways first, then the one that was written last. */
function logsByAge(): FoundLog[] {
  const root = stateFolder()
  return foldersIn(root)
    .map((folder) => join(root, folder, 'events.db'))
    .map((path) => ({ path, writtenMs: writtenMs(path), isRunning: isLocked(path) }))
    .filter(({ writtenMs }) => writtenMs > 0)
    .sort((a, b) => Number(b.isRunning) - Number(a.isRunning) || b.writtenMs - a.writtenMs)
}

function foldersIn(root: string): string[] {
  try {
    return readdirSync(root)
  } catch {
    return []
  }
}

/** When a log was written last, in milliseconds since the epoch; 0 if it does not exist. */
function writtenMs(path: string): number {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found === undefined || !found.isFile()) return 0
  // While a gateway runs, new events are in the write-ahead log.
  const ahead = statSync(`${path}-wal`, { throwIfNoEntry: false })
  return Math.max(found.mtimeMs, ahead?.mtimeMs ?? 0)
}
