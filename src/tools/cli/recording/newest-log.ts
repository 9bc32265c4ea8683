/** Finds the log that a command reads if the user names none: the newest one of the state folder. */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { stateFolder } from '../../../control/plane/open-log.ts'
import type { Output } from '../shared/output.ts'

/** The default folder for the records of a gateway, next to its event log. */
export const recordFolderOf = (logFile: string): string => `${logFile}.decisions`

/** Returns the path of the newest log and reports it; undefined if there is no log. */
export function newestLog(report: Output['report']): string | undefined {
  const [newest] = logsByAge()
  if (newest !== undefined)
    report(`event log: ${newest} (the newest; --log-file names another one)`)
  return newest
}

/** Like `newestLog`, for the records next to the newest log that has any. */
export function newestRecords(report: Output['report']): string | undefined {
  const folder = logsByAge().map(recordFolderOf).find(isFolder)
  if (folder !== undefined) {
    report(`decision records: ${folder} (the newest; --record-dir names others)`)
  }
  return folder
}

const isFolder = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false

/** The paths of all logs in the state folder; the one that was written last is first. */
function logsByAge(): string[] {
  const root = stateFolder()
  return foldersIn(root)
    .map((folder) => join(root, folder, 'events.db'))
    .map((path) => ({ path, writtenMs: writtenMs(path) }))
    .filter(({ writtenMs }) => writtenMs > 0)
    .sort((a, b) => b.writtenMs - a.writtenMs)
    .map(({ path }) => path)
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
