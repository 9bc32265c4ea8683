import { type FSWatcher, statSync, watch } from 'node:fs'
import { join } from 'node:path'

/** A folder under watch; the identity tells when another folder has taken its place. */
interface WatchedFolder {
  readonly identity: string
  readonly watcher: FSWatcher
}

interface DirectoryWatchOptions {
  /** Something happened to this path, whatever it is; nothing may have happened too. */
  onPath(path: string): void
  /** A folder cannot be watched, or no longer; what happens there must be found by looking. */
  onLost(folder: string, error: Error): void
}

/**
 * Watches folders, not files: a watch on a file follows the inode, and so misses every editor that
 * writes a new file and renames it, and every swap of a mounted volume after the first.
 */
export class DirectoryWatch {
  #options: DirectoryWatchOptions
  #folders = new Map<string, WatchedFolder>()

  constructor(options: DirectoryWatchOptions) {
    this.#options = options
  }

  /**
   * Watches exactly these folders from now on. Gives those that were not watched before: what
   * happened there until now was not seen.
   */
  follow(folders: ReadonlySet<string>): string[] {
    for (const folder of [...this.#folders.keys()]) if (!folders.has(folder)) this.#leave(folder)
    return [...folders].filter((folder) => this.#enter(folder))
  }

  close(): void {
    for (const folder of [...this.#folders.keys()]) this.#leave(folder)
  }

  #enter(folder: string): boolean {
    const identity = identityOf(folder)
    if (identity !== undefined && identity === this.#folders.get(folder)?.identity) return false
    this.#leave(folder)
    if (identity === undefined) return false
    try {
      const watcher = watch(folder, (_, name) => {
        this.#options.onPath(name === null ? folder : join(folder, name))
      })
      watcher.on('error', (error) => this.#lose(folder, error))
      this.#folders.set(folder, { identity, watcher })
      return true
    } catch (error) {
      this.#lose(folder, error as Error)
      return false
    }
  }

  #lose(folder: string, error: Error): void {
    this.#leave(folder)
    this.#options.onLost(folder, error)
  }

  #leave(folder: string): void {
    this.#folders.get(folder)?.watcher.close()
    this.#folders.delete(folder)
  }
}

/** The time of birth stands beside the inode, since file systems give inodes out again. */
function identityOf(folder: string): string | undefined {
  try {
    const { dev, ino, birthtimeNs } = statSync(folder, { bigint: true })
    return `${dev} ${ino} ${birthtimeNs}`
  } catch {
    return undefined
  }
}
