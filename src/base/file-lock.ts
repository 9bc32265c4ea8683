import { closeSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

/** Thrown if another process holds the lock. */
export class LockedError extends Error {}

/**
 * Locks `path` until this process ends or calls the returned function. The lock is SQLite's lock on
 * `path.lock`, which the operating system releases when the process ends.
 * @throws LockedError if another process holds it, or the system's error
 */
export function takeFileLock(path: string): () => void {
  createPrivate(`${path}.lock`)
  const lock = new DatabaseSync(`${path}.lock`)
  try {
    lock.exec('PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
  } catch {
    lock.close()
    throw new LockedError(`${path} is in use by another process`)
  }
  return () => lock.close()
}

/** Creates a file that only this user can open, because any process that can open it could lock it. */
function createPrivate(path: string): void {
  try {
    closeSync(openSync(path, 'ax', 0o600))
  } catch {
    // The file exists already, or it cannot be created; SQLite reports the latter.
  }
}
