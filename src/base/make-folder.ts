import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/**
 * Makes a folder and those above it that are not there. Node's own way tries forever where the
 * system says of a folder that is there that nothing can be made in it because it is not, as in /proc.
 * `mode`: of each one that is made. Throws the system's error.
 */
export function makeFolder(path: string, mode = 0o777): void {
  if (tryToMake(path, mode) === undefined) return
  const parent = dirname(path)
  if (parent !== path) makeFolder(parent, mode)
  const problem = tryToMake(path, mode)
  if (problem !== undefined) throw problem
}

/** What the system says where a folder above is absent. */
function tryToMake(path: string, mode: number): unknown {
  try {
    mkdirSync(path, { mode })
    return undefined
  } catch (error) {
    if ((error as { code?: string }).code === 'ENOENT') return error
    // Some file systems say EROFS or EACCES of what is there.
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return undefined
    throw error
  }
}
