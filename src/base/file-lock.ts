import { closeSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

/** Another process holds what was to be locked. */
export class LockedError extends Error {}

/**
 * Takes `path` for this process until it ends, however it ends, and returns what gives it back. The
 * lock is SQLite's own on a file beside it, which the system releases with the process.
 * @throws LockedError where another process has it, or the system's error.
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

/** Whoever may open the file can hold it, and so keep this process from starting: nobody else may. */
function createPrivate(path: string): void {
  try {
    closeSync(openSync(path, 'ax', 0o600))
  } catch {
    // It exists, or cannot be made, which SQLite tells.
  }
}
