import { existsSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { SetMap } from '../../ground/base/set-map.ts'
import { ClaimBook } from './claim-book.ts'
import { FileChange, noFile, type Refreshed, type SecondRead } from './file-change.ts'
import { isReplaced, readFile } from './file-read.ts'
import {
  danglingState,
  type FileState,
  isBelow,
  nothingListed,
  unreadState,
  withoutTrailingSlash,
} from './file-state.ts'
import { isFolder, isLink, isManifestName, listFolder, unreadable } from './file-tree.ts'
import { LinkTracker } from './link-tracker.ts'
import { parseManifest } from './manifest.ts'
import { hasSecret, type ObjectClaim, type ObserveOptions, observe } from './observed.ts'
import { type IndexEntry, keyOf } from './resource-index.ts'
import type { SourceProblem } from './source-problem.ts'
import { endsLine, losesObjects, mayBeUnfinished } from './unfinished.ts'

type Parsed = Omit<FileState, 'stamp' | 'hash'>
/** What a manifest defines. */
export type ParsedFile = Omit<Parsed, 'endsLine'>

const isWarning = ({ severity }: SourceProblem) => severity === 'warning'

interface FileSetOptions extends ObserveOptions {
  /** Files and folders as given by the user. */
  readonly paths: readonly string[]
  /** Returns the objects in the log, which are kept for files that cannot be read now. */
  readonly known: () => Iterable<IndexEntry>
  /** Returns what a file defines if the log has exactly that. `parse` is called later if an object of it is read. */
  readonly recorded?: (
    file: string,
    content: Uint8Array,
    parse: () => ParsedFile,
  ) => ParsedFile | undefined
}

interface FoundContent {
  readonly hash: string
  parsed?: Parsed
}

/** Used as the hash of a file that does not exist. */
const gone = 'gone'

/**
 * The manifests below some paths, and the objects that they define. Reads a file again only if its stamp has
 * changed, and parses it only if its bytes have changed. Objects of a broken or unreadable file are kept. New
 * content is used once two reads have found it, since a writer may not have finished.
 */
export class FileSet {
  readonly book = new ClaimBook()
  #options: FileSetOptions
  #roots: readonly string[]
  #files = new Map<string, FileState>()
  #folders = new Set<string>()
  #links = new LinkTracker()
  /** The manifests that take values from a file. */
  #referrers = new SetMap<string, string>()
  /** New content that is not confirmed yet, by file. */
  #found = new Map<string, FoundContent>()
  /** Problems by file; files without problems have no entry. */
  #problems = new Map<string, readonly SourceProblem[]>()
  /** Problems of folders, and of roots that do not exist. */
  #treeProblems = new Map<string, SourceProblem>()

  constructor(options: FileSetOptions) {
    this.#options = options
    this.#roots = [...new Set(options.paths.map(withoutTrailingSlash))]
  }

  /** Folders to watch: those that may contain manifests, and those of the given paths, of links and of references. */
  folders(): ReadonlySet<string> {
    const around = [...this.#roots, ...this.#referrers.keys()].map((path) => dirname(path))
    return new Set([...around, ...this.#folders, ...this.#links.folders()])
  }

  /** All current problems, by file. */
  problems(): SourceProblem[] {
    const ofFiles = [...this.#problems.values()].flat()
    return [...this.#treeProblems.values(), ...ofFiles, ...this.book.duplicates(existsSync)]
  }

  /** The files as last read. */
  states(): Iterable<readonly [string, FileState]> {
    return this.#files
  }

  /** Every claim in use, and those of new content that is not confirmed yet. */
  *claims(): Iterable<ObjectClaim> {
    yield* this.book.claims()
    for (const { parsed } of this.#found.values()) yield* parsed?.claims ?? []
  }

  /** Parses the files again that define any of these secret values, so that the values are kept again. */
  keepAgain(digests: ReadonlySet<string>): void {
    const files = [...this.claims()].filter((claim) => hasSecret(claim, digests))
    for (const file of new Set(files.map(({ origin }) => origin.file))) {
      const read = readFile(file)
      if (read.outcome === 'read') this.#parse(read.content, file, undefined)
    }
  }

  /** Whether a change of this path is relevant. Most files in the parent folder of a root are not. */
  concerns(path: string): boolean {
    const folder = dirname(path)
    if (this.#roots.includes(path) || this.#folders.has(folder)) return true
    if (this.#links.usersOf(path).size + this.#referrers.get(path).size > 0) return true
    return basename(path).startsWith('.') && this.#roots.some((root) => dirname(root) === folder)
  }

  /** Checks every file again; reads those whose stamps have changed. */
  refreshAll(second: SecondRead = noFile): Refreshed {
    const change = new FileChange(second)
    for (const root of this.#roots) this.#refreshRoot(root, change)
    return change
  }

  /** Checks paths that a watch has reported. Only manifests below the roots are used. */
  refresh(paths: Iterable<string>, second: SecondRead = noFile): Refreshed {
    const change = new FileChange(second)
    for (const path of paths) this.#refreshPath(path, change)
    return change
  }

  #refreshPath(path: string, change: FileChange): void {
    const folder = dirname(path)
    this.#refreshUsers(path, change)
    this.#refreshReferrers(path, change)
    if (this.#roots.includes(path)) {
      this.#refreshRoot(path, change)
    } else if (this.#files.has(path) && !isFolder(path)) {
      this.#refreshFile(path, change)
    } else if (basename(path).startsWith('.')) {
      if (isLink(path)) this.#refreshBeside(folder, change)
    } else if (this.#folders.has(folder)) {
      if (isFolder(path) || this.#folders.has(path)) this.#refreshFolder(path, change)
      else if (isManifestName(basename(path))) this.#refreshFile(path, change)
    }
  }

  /** Refreshes what is reached through a link at this path, or through one in this new folder. */
  #refreshUsers(link: string, change: FileChange): void {
    for (const path of new Set([...this.#links.usersOf(link), ...this.#links.usersIn(link)])) {
      if (this.#refreshReferrers(path, change)) continue
      if (this.#roots.includes(path)) this.#refreshRoot(path, change)
      else if (this.#folders.has(path) || isFolder(path)) this.#refreshFolder(path, change)
      else this.#refreshFile(path, change)
    }
  }

  /** Refreshes the manifests that take values from this file. Returns whether it is only such a file. */
  #refreshReferrers(path: string, change: FileChange): boolean {
    const referrers = [...this.#referrers.get(path)]
    for (const file of referrers) this.#refreshFile(file, change)
    return referrers.length > 0 && !this.#files.has(path)
  }

  /** Refreshes the files in the folder of a hidden link, because all files of a mounted volume refer to it. */
  #refreshBeside(folder: string, change: FileChange): void {
    for (const root of this.#roots) if (dirname(root) === folder) this.#refreshRoot(root, change)
    if (this.#folders.has(folder)) this.#refreshFolder(folder, change)
  }

  #refreshRoot(root: string, change: FileChange): void {
    this.#note(root, change)
    if (isFolder(root) || this.#folders.has(root)) {
      this.#refreshFolder(root, change)
      return
    }
    this.#refreshFile(root, change)
    const state = this.#files.get(root)
    if (state === undefined) this.#treeProblems.set(root, unreadable(root, { code: 'ENOENT' }))
    else this.#treeProblems.delete(root)
    // An unreadable root may be a folder: keep the objects of all files below it.
    if (state?.stamp === '') this.#retain(root, change)
  }

  #refreshFolder(folder: string, change: FileChange): void {
    change.mayHaveMoved = true
    const exists = isFolder(folder)
    const listing = exists ? listFolder(folder) : nothingListed
    const isUnlisted = (path: string) => listing.unreadable.some((above) => isBelow(path, above))
    for (const path of [...this.#treeProblems.keys()]) {
      if (isBelow(path, folder)) this.#treeProblems.delete(path)
    }
    for (const problem of listing.problems) this.#treeProblems.set(problem.file, problem)
    if (!exists && this.#roots.includes(folder)) {
      this.#treeProblems.set(folder, unreadable(folder, { code: 'ENOENT' }))
    }
    for (const known of [...this.#folders]) {
      if (isBelow(known, folder) && !isUnlisted(known)) this.#folders.delete(known)
      this.#note(known, change)
    }
    for (const found of [...listing.folders, ...listing.unreadable]) {
      this.#folders.add(found)
      this.#note(found, change)
    }
    const found = new Set(listing.files)
    for (const file of found) this.#refreshFile(file, change)
    for (const hidden of listing.unreadable) this.#retain(hidden, change)
    for (const file of [...this.#files.keys()]) {
      if (isBelow(file, folder) && !found.has(file) && !isUnlisted(file)) {
        this.#refreshFile(file, change)
      }
    }
  }

  #note(path: string, change: FileChange): void {
    if (this.#links.note(path, this.#roots.includes(path))) change.mayHaveMoved = true
  }

  #refreshFile(file: string, change: FileChange): void {
    this.#note(file, change)
    // This refresh may have reached the file before, for example through a link.
    if (change.seen.has(file)) return
    change.seen.add(file)
    const before = this.#files.get(file)
    const read = readFile(file, before)
    switch (read.outcome) {
      case 'unchanged':
        this.#found.delete(file)
        return
      case 'touched':
        this.#found.delete(file)
        if (before !== undefined) this.#files.set(file, { ...before, stamp: read.stamp })
        return
      case 'gone':
        this.#lose(file, before, change)
        return
      case 'unreadable': {
        const claims = before?.claims ?? this.#retainedClaims(file)
        const problems = [unreadable(file, read.error)]
        this.#replace(file, unreadState(claims, problems), change)
        return
      }
      case 'read': {
        const { stamp, hash, content } = read
        if (this.#isConfirmed(file, hash, change)) {
          const parsed = this.#found.get(file)?.parsed ?? this.#parse(content, file, before)
          this.#replace(file, { stamp, hash, ...parsed }, change)
        } else this.#await(file, read, before, change)
      }
    }
  }

  #lose(file: string, before: FileState | undefined, change: FileChange): void {
    const isDangling = isLink(file) && !this.#roots.includes(file)
    if (before === undefined && !isDangling) return
    const isLost = before !== undefined && before.claims.length > 0
    if (isLost && !this.#isConfirmed(file, gone, change)) change.unsettled.push(file)
    else this.#replace(file, isDangling ? danglingState(file) : undefined, change)
  }

  /** Keeps the objects of a file until its new content is confirmed. */
  #await(
    file: string,
    { content, stamp }: { readonly content: Uint8Array; readonly stamp: string },
    before: FileState | undefined,
    change: FileChange,
  ): void {
    const found = this.#found.get(file)
    if (before === undefined || found === undefined) {
      // The file is new and its second read differs: keep the objects that the log has of it.
      if (change.second.has(file)) this.#retainFile(file, change)
      change.unconfirmed.push(file)
      return
    }
    found.parsed ??= this.#parse(content, file, before)
    if (isReplaced(before.stamp, stamp)) {
      const isLosing = losesObjects(before.claims, found.parsed.claims)
      ;(isLosing ? change.unsettled : change.unconfirmed).push(file)
    } else {
      const isUnfinished = mayBeUnfinished(before, found.parsed)
      ;(isUnfinished ? change.unfinished : change.unconfirmed).push(file)
    }
  }

  #retainFile(file: string, change: FileChange): void {
    const found = this.#found.get(file)
    const claims = this.#retainedClaims(file)
    if (claims.length === 0) return
    this.#replace(file, unreadState(claims), change)
    if (found !== undefined) this.#found.set(file, found)
  }

  /** Whether this is the second read and the first one found the same content. Records other content. */
  #isConfirmed(file: string, hash: string, change: FileChange): boolean {
    const isSame = this.#found.get(file)?.hash === hash
    if (isSame && change.second.has(file)) return true
    if (!isSame) this.#found.set(file, { hash })
    return false
  }

  #parse(content: Uint8Array, file: string, before: FileState | undefined): Parsed {
    const parse = () => this.#observe(content, file, before)
    const isFirst = before === undefined
    const recorded = isFirst ? this.#options.recorded?.(file, content, parse) : undefined
    return { ...(recorded ?? parse()), endsLine: endsLine(content) }
  }

  #observe(content: Uint8Array, file: string, before: FileState | undefined): ParsedFile {
    const parsed = parseManifest(content, file)
    if (!parsed.ok) {
      const claims = before?.claims ?? this.#retainedClaims(file)
      return { claims, problems: parsed.problems, references: before?.references ?? [] }
    }
    const observed = parsed.value.map((written) => observe(written, file, this.#options))
    const claims = observed.flatMap(({ claim }) => claim ?? [])
    const problems = observed.flatMap((each) => each.problems)
    const references = observed.flatMap((each) => each.references ?? [])
    const isAttributed = observed.every((each) => each.claim || each.problems.every(isWarning))
    if (isAttributed) return { claims, problems, references }
    // An object without a readable name may be any earlier object of the file, so all of them are kept.
    const keys = new Set(claims.map(({ key }) => key))
    const lost = (before?.claims ?? this.#retainedClaims(file)).filter(({ key }) => !keys.has(key))
    return { claims: [...claims, ...lost], problems, references }
  }

  #replace(file: string, state: FileState | undefined, change: FileChange): void {
    const { claims: before = [], references = [] } = this.#files.get(file) ?? {}
    this.#refer(file, references, state?.references ?? [], change)
    this.#found.delete(file)
    if (state === undefined) this.#files.delete(file)
    else this.#files.set(file, state)
    if (state === undefined || state.problems.length === 0) this.#problems.delete(file)
    else this.#problems.set(file, state.problems)
    if (before === state?.claims) return
    for (const { key } of [...before, ...(state?.claims ?? [])]) change.keys.add(key)
    this.book.replace(file, state?.claims ?? [])
  }

  #refer(
    file: string,
    before: readonly string[],
    after: readonly string[],
    change: FileChange,
  ): void {
    for (const path of before) this.#referrers.delete(path, file)
    for (const path of after) {
      this.#referrers.add(path, file)
      this.#note(path, change)
      if (!before.includes(path)) change.mayHaveMoved = true
    }
  }

  /** Keeps the objects in the log that come from files in an unreadable folder. */
  #retain(folder: string, change: FileChange): void {
    for (const { origin } of this.#options.known()) {
      if (origin === undefined || !isBelow(origin.file, folder)) continue
      if (this.#files.has(origin.file)) continue
      const claims = this.#retainedClaims(origin.file)
      this.#replace(origin.file, unreadState(claims), change)
    }
  }

  #retainedClaims(file: string): ObjectClaim[] {
    const claims: ObjectClaim[] = []
    for (const entry of this.#options.known()) {
      const { kind, namespace, name, origin } = entry
      if (origin?.file !== file) continue
      const content = { state: 'retained' } as const
      claims.push({
        key: keyOf(entry),
        name: { kind, namespace, name },
        origin,
        column: 1,
        content,
      })
    }
    return claims
  }
}
