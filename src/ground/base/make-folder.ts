import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Creates a folder and its missing parents, each with `mode`. Node's `recursive` option is not used: it loops
 * forever in file systems such as /proc, which report an existing parent as missing.
 * @throws the system's error
 */
export function makeFolder(path: string, mode = 0o777): void {
  try {
    makeOneFolder(path, mode)
  } catch (error) {
    const parent = dirname(path)
    if ((error as { code?: string }).code !== 'ENOENT' || parent === path) throw error
    makeFolder(parent, mode)
    makeOneFolder(path, mode)
  }
}

/** Creates a folder whose parent exists, unless it exists itself. */
function makeOneFolder(path: string, mode: number): void {
  try {
    mkdirSync(path, { mode })
  } catch (error) {
    if ((error as { code?: string }).code === 'ENOENT') throw error
    // Some file systems report EROFS or EACCES for a folder that exists.
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() !== true) throw error
  }
}
