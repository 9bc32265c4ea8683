import { lstatSync, readdirSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { SourceProblem } from './source-problem.ts'

/** What lies below a folder. Paths begin with the folder as it was given. */
interface Listing {
  readonly files: readonly string[]
  /** The folder itself and every folder below it. */
  readonly folders: readonly string[]
  /** Folders that could not be read: nothing is known of what lies in them. */
  readonly unreadable: readonly string[]
  readonly problems: readonly SourceProblem[]
}

const extensions = ['.yaml', '.yml', '.json']

/** Is it a file that a folder is searched for? Hidden ones are not. */
export function isManifestName(name: string): boolean {
  return !name.startsWith('.') && extensions.some((extension) => name.endsWith(extension))
}

/**
 * The manifests in a folder and below it. Links are followed (a mounted ConfigMap consists of
 * them), names that begin with a dot are not: a mount keeps its versions there.
 */
export function listFolder(folder: string): Listing {
  const listing = { files: [], folders: [], unreadable: [], problems: [] }
  walk(folder, listing, new Set())
  return listing
}

interface MutableListing {
  readonly files: string[]
  readonly folders: string[]
  readonly unreadable: string[]
  readonly problems: SourceProblem[]
}

function walk(folder: string, listing: MutableListing, above: ReadonlySet<string>): void {
  try {
    const real = realpathSync(folder)
    // A link to a folder that it lies in would lead round for ever.
    if (above.has(real)) return
    const names = readdirSync(folder).filter((name) => !name.startsWith('.'))
    listing.folders.push(folder)
    for (const name of names) {
      const path = join(folder, name)
      if (isFolder(path)) walk(path, listing, new Set([...above, real]))
      else if (isManifestName(name)) listing.files.push(path)
    }
  } catch (error) {
    listing.unreadable.push(folder)
    listing.problems.push(unreadable(folder, error))
  }
}

/** The problem of a file or folder that the system does not let us read. */
export function unreadable(path: string, error: unknown): SourceProblem {
  const { code, message } = error as NodeJS.ErrnoException
  const reason = reasons[code ?? ''] ?? message
  return {
    severity: 'error',
    reason: 'unreadable',
    file: path,
    message: `cannot be read: ${reason}`,
  }
}

const reasons: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ENOENT: 'no such file or folder',
  ENOTDIR: 'a part of the path is not a folder',
  ELOOP: 'too many links',
}

/** Is there a folder, or a link to one? What cannot be looked at is taken for a file. */
export function isFolder(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
  } catch {
    return false
  }
}

/** Is there a link, wherever it leads? */
export function isLink(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true
  } catch {
    return false
  }
}
