import { closeSync, existsSync, openSync, truncateSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

/** Thrown if another process holds the lock. */
export class LockedError extends Error {}

/** SQLITE_BUSY: another process holds the lock. */
const busy = 5
/** SQLITE_CORRUPT and SQLITE_NOTADB: the file has content, which a lock does not need. */
const notOurs: readonly unknown[] = [11, 26]

/**
 * Locks `path` until this process ends or calls the returned function. The lock is SQLite's lock on
 * `path.lock`, which the operating system releases when the process ends.
 * @throws LockedError if another process holds it, or the system's error
 */
export function takeFileLock(path: string): () => void {
  createPrivate(`${path}.lock`)
  try {
    return lockFile(path)
  } catch (error) {
    if (!notOurs.includes((error as { errcode?: unknown }).errcode)) throw error
  }
  // No process holds the lock of such a file, since none can have taken it.
  truncateSync(`${path}.lock`)
  return lockFile(path)
}

function lockFile(path: string): () => void {
  // The wait is for `isLocked`, which reads the file for a moment.
  const lock = new DatabaseSync(`${path}.lock`, { timeout: 100 })
  try {
    // The journal in memory needs no space on the disk.
    lock.exec('PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
  } catch (error) {
    lock.close()
    const { errcode } = error as { errcode?: number }
    if (errcode === busy) throw new LockedError(`${path} is in use by another process`)
    throw error
  }
  return () => lock.close()
}

/** Whether a process holds the lock of `path`. */
export function isLocked(path: string): boolean {
  if (!existsSync(`${path}.lock`)) return false
  const lock = new DatabaseSync(`${path}.lock`, { readOnly: true })
  try {
    lock.prepare('SELECT count(*) FROM sqlite_schema').get()
    return false
  } catch (error) {
    return (error as { errcode?: number }).errcode === busy
  } finally {
    lock.close()
  }
}

/** Creates a file that only this user can open, because any process that can open it could lock it. */
function createPrivate(path: string): void {
  try {
    closeSync(openSync(path, 'ax', 0o600))
  } catch {
    // The file exists already, or it cannot be created; SQLite reports the latter.
  }
}
