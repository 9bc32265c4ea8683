import { inOrder } from './claim-book.ts'
import { everyFile, FileSet } from './file-set.ts'
import type { Claim, ObserveOptions } from './observed.ts'
import type { SourceProblem } from './source-problem.ts'

/** What some files say, read once. */
export interface Manifests {
  /** Of each object the claim that counts, valid or refused, in the order of files and documents. */
  readonly claims: readonly Claim[]
  readonly problems: readonly SourceProblem[]
}

/** Reads files and folders without a log and without watching: for `sluice validate`. */
export function readManifests(paths: readonly string[], options: ObserveOptions): Manifests {
  const files = new FileSet({ ...options, paths, known: () => [] })
  files.refreshAll()
  files.refreshAll(everyFile)
  const claims = [...files.book.keys()].flatMap((key) => files.book.first(key) ?? [])
  return { claims: claims.sort(inOrder), problems: files.problems() }
}
