/** The content of one manifest as last read, and helpers about paths. */
import { normalize, sep } from 'node:path'
import { unreadable } from './file-tree.ts'
import type { ObjectClaim } from './observed.ts'
import type { SourceProblem } from './source-problem.ts'
import type { WrittenContent } from './unfinished.ts'

export interface FileState extends WrittenContent {
  /** Times, size and inode of the file and of its references; empty if it could not be read. */
  readonly stamp: string
  readonly hash: string
  readonly problems: readonly SourceProblem[]
  /** The files from which its Secrets take values. */
  readonly references: readonly string[]
}

/** The state of a dangling link: it has no objects, and a problem, since a manifest is expected there. */
export function danglingState(file: string): FileState {
  const problems = [unreadable(file, { message: 'a link that leads nowhere' })]
  return { ...unreadState([], problems), stamp: 'dangling' }
}

/** The state of a file that could not be read. */
export function unreadState(
  claims: readonly ObjectClaim[],
  problems: readonly SourceProblem[] = [],
): FileState {
  return { stamp: '', hash: '', claims, problems, endsLine: false, references: [] }
}

export const nothingListed = { files: [], folders: [], unreadable: [], problems: [] }

export function isBelow(path: string, folder: string): boolean {
  return (
    path === folder ||
    path.startsWith(folder.endsWith(sep) ? folder : folder + sep) ||
    folder === '.'
  )
}

export function withoutTrailingSlash(path: string): string {
  const normal = normalize(path)
  return normal.length > 1 && normal.endsWith(sep) ? normal.slice(0, -1) : normal
}
