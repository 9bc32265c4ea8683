import { lstatSync, readdirSync, realpathSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { SourceProblem } from './source-problem.ts'

/** The content of a folder and its subfolders. Paths begin with the folder as it was given. */
interface FolderListing {
  readonly files: readonly string[]
  /** The folder itself and every folder below it. */
  readonly folders: readonly string[]
  /** Folders that could not be read. */
  readonly unreadable: readonly string[]
  readonly problems: readonly SourceProblem[]
}

const extensions = ['.yaml', '.yml', '.json']

/** Whether a file of this name in a folder is read as a manifest. Hidden files are not. */
export function isManifestName(name: string): boolean {
  return !name.startsWith('.') && extensions.some((extension) => name.endsWith(extension))
}

/**
 * Lists the manifests in a folder and its subfolders. Links are followed, since a mounted ConfigMap consists
 * of them. Names that begin with a dot are ignored, since mounted volumes keep their versions there.
 */
export function listFolder(folder: string): FolderListing {
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
    // A link to a folder above it would be a cycle.
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

/** Creates the problem that reports a file or folder as unreadable. */
export function unreadable(path: string, error: unknown): SourceProblem {
  const message = `cannot be read: ${reasonOf(error)}`
  return { severity: 'error', reason: 'unreadable', file: path, message }
}

/** Says why the system cannot read a file. */
export function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  return reasons[code ?? ''] ?? message
}

const reasons: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  ENOENT: 'no such file or folder',
  ENOTDIR: 'a part of the path is not a folder',
  ELOOP: 'too many links',
}

/** Whether the path is a folder or a link to one. Returns false if the path cannot be read. */
export function isFolder(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true
  } catch {
    return false
  }
}

/** Whether the path is a link, even a dangling one. */
export function isLink(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true
  } catch {
    return false
  }
}
