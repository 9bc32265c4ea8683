import { type FSWatcher, statSync, watch } from 'node:fs'
import { join } from 'node:path'

/** A watched folder. `identity` changes if another folder replaces it at the same path. */
interface WatchedFolder {
  readonly identity: string
  readonly watcher: FSWatcher
}

interface DirectoryWatchOptions {
  /** Called when this path may have changed. */
  onPath(path: string): void
  /** Called if a folder cannot be watched; changes in it must be found by reading it. */
  onLost(folder: string, error: Error): void
}

/**
 * Watches folders, not files. A watch on a file follows its inode, so it would miss editors that write a new
 * file and rename it, and every swap of a mounted volume after the first.
 */
export class DirectoryWatch {
  #options: DirectoryWatchOptions
  #folders = new Map<string, WatchedFolder>()

  constructor(options: DirectoryWatchOptions) {
    this.#options = options
  }

  /**
   * Watches exactly these folders from now on. Returns those that were not watched before; their earlier
   * changes may have been missed.
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

/** Undefined if the folder cannot be read. Includes the creation time, since inodes are reused. */
function identityOf(folder: string): string | undefined {
  try {
    const { dev, ino, birthtimeNs } = statSync(folder, { bigint: true })
    return `${dev} ${ino} ${birthtimeNs}`
  } catch {
    return undefined
  }
}
