/**
 * Notices if the file of a log is deleted or replaced while it is in use, or if a part of it is missing at the
 * next start. SQLite continues with the deleted file, so that its events would be lost without a message.
 *
 * While the log is in use, `FILE.open` has the number (inode) of the file. It is removed when the log is closed.
 */
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'

/** Milliseconds between two checks of a log in use. */
const checkMs = 2_000

const markerOf = (path: string) => `${path}.open`

/** The number of the file; undefined if it does not exist or cannot be read. */
function fileNumber(path: string): string | undefined {
  try {
    return String(statSync(path, { bigint: true }).ino)
  } catch {
    return undefined
  }
}

function markedNumber(path: string): string | undefined {
  try {
    return readFileSync(markerOf(path), 'utf8').trim()
  } catch {
    return undefined
  }
}

/** Returns what the last run has lost. Must be called before the log is opened. */
export function lossNotice(path: string): string | undefined {
  const marked = markedNumber(path)
  if (marked === undefined) return undefined
  if (marked !== fileNumber(path)) {
    return `${path} was deleted or replaced while a gateway used it; the history of that run is lost, the manifests are listed again`
  }
  if (existsSync(`${path}-wal`)) return undefined
  return `${path}-wal is missing, although the last run did not close the log; its last events are lost, the manifests are listed again`
}

/** Watches the file of an open log, and removes the marker when it is closed. */
export class LogPresence {
  readonly #path: string
  readonly #number: string | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(path: string) {
    this.#path = path
    this.#number = fileNumber(path)
    // Without the second file, its absence at the next start would mean nothing.
    if (this.#number === undefined || !existsSync(`${path}-wal`)) return
    try {
      writeFileSync(markerOf(path), `${this.#number}\n`, { mode: 0o600 })
    } catch {
      // The disk is full or protected, which the next append reports.
    }
  }

  /** Calls `notify` once if the file is deleted or replaced. */
  watch(notify: (text: string) => void): void {
    if (this.#number === undefined) return
    this.#timer = setInterval(() => {
      if (this.#isSame()) return
      clearInterval(this.#timer)
      notify(
        `${this.#path} was deleted or replaced: events are written to the old file and will be lost. Restart to begin a new log.`,
      )
    }, checkMs).unref()
  }

  /** The marker of a lost file stays, so that the next start reports it. */
  close(): void {
    clearInterval(this.#timer)
    if (this.#isSame()) rmSync(markerOf(this.#path), { force: true })
  }

  #isSame(): boolean {
    return fileNumber(this.#path) === this.#number
  }
}
