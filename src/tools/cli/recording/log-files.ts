/** Tells logs from other files by their first bytes. */
import { closeSync, constants, openSync, readSync } from 'node:fs'
import { isExport } from '../../../control/log/export.ts'

/** Returns true if the first bytes of a file are those of a log or of an export. */
export function isLogFile(path: string): boolean {
  return isDatabase(path) || isExport(path)
}

const sqliteMagic = 'SQLite format 3\0'

/** Whether the first bytes of a file are those of a log. */
export function isDatabase(path: string): boolean {
  const head = Buffer.alloc(sqliteMagic.length)
  const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    readSync(file, head, 0, head.length, 0)
  } finally {
    closeSync(file)
  }
  return head.toString('latin1') === sqliteMagic
}
