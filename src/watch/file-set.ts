import { createHash } from 'node:crypto'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, normalize, sep } from 'node:path'
import { ClaimBook } from './claim-book.ts'
import { isFolder, isLink, isManifestName, listFolder, unreadable } from './file-tree.ts'
import { LinkWays } from './link-ways.ts'
import { parseManifest } from './manifest.ts'
import { type Claim, type ObserveOptions, observe } from './observed.ts'
import type { IndexEntry } from './resource-index.ts'
import type { SourceProblem } from './source-problem.ts'

/** What was read of one file. */
interface FileState {
  /** Of the file that was read; empty where it could not be. */
  readonly stamp: string
  readonly hash: string
  readonly claims: readonly Claim[]
  readonly problems: readonly SourceProblem[]
}

interface FileSetOptions extends ObserveOptions {
  /** Files and folders, as the user gave them. */
  readonly paths: readonly string[]
  /** What the log knows already: kept for files that cannot be read now. */
  readonly known: () => Iterable<IndexEntry>
}

/** What a refresh has touched. */
export interface Refreshed {
  /** Keys of the objects about which some file now says something else. */
  readonly keys: ReadonlySet<string>
  /** Files with new content, which counts if a second look finds it again. */
  readonly unconfirmed: readonly string[]
  /** The same, of files that seem to have lost objects: their writer may have paused. */
  readonly unsettled: readonly string[]
  /** May there be other folders than before, or others behind the same names? */
  readonly mayHaveMoved: boolean
}

interface FoundContent {
  readonly hash: string
  parsed?: Pick<FileState, 'claims' | 'problems'>
}

/** Files of which this is the second look, after a wait. */
interface SecondLook {
  has(file: string): boolean
}

export const everyFile: SecondLook = { has: () => true }
const noFile: SecondLook = { has: () => false }

/** In place of a hash. */
const gone = 'gone'

/**
 * The manifests below some paths, and what they say. Reads a file again only when its stamp has
 * changed, and parses it only when its bytes have. A file that is broken or unreadable keeps what
 * it said before. Content counts once the same bytes were found by two looks, since a writer may be
 * at work; until then the file says what it said before.
 */
export class FileSet {
  readonly book = new ClaimBook()
  #options: FileSetOptions
  #roots: readonly string[]
  #files = new Map<string, FileState>()
  #folders = new Set<string>()
  #ways = new LinkWays()
  /** Contents that were found and do not count yet, by file. */
  #found = new Map<string, FoundContent>()
  /** The files of which something is wrong; few, where the files may be many. */
  #troubled = new Map<string, readonly SourceProblem[]>()
  /** Problems of folders and of roots that are not there. */
  #treeProblems = new Map<string, SourceProblem>()

  constructor(options: FileSetOptions) {
    this.#options = options
    this.#roots = [...new Set(options.paths.map(withoutTrailingSlash))]
  }

  /** Folders in which something may appear, those around the given paths included. */
  folders(): ReadonlySet<string> {
    const around = this.#roots.map((root) => dirname(root))
    return new Set([...around, ...this.#folders, ...this.#ways.folders()])
  }

  /** Everything that is wrong at present, by file. */
  problems(): SourceProblem[] {
    const ofFiles = [...this.#troubled.values()].flat()
    return [...this.#treeProblems.values(), ...ofFiles, ...this.book.duplicates(existsSync)]
  }

  /** Could a change of this path matter? The folder around a root may be a busy one. */
  concerns(path: string): boolean {
    const folder = dirname(path)
    if (this.#roots.includes(path) || this.#folders.has(folder)) return true
    if (this.#ways.usersOf(path).size > 0) return true
    return basename(path).startsWith('.') && this.#roots.some((root) => dirname(root) === folder)
  }

  /** Looks at everything again; stamps decide what is read. */
  refreshAll(second: SecondLook = noFile): Refreshed {
    const change = new Change(second)
    for (const root of this.#roots) this.#refreshRoot(root, change)
    return change
  }

  /** Looks at paths that a watch has named; others than manifests below the roots are ignored. */
  refresh(paths: Iterable<string>, second: SecondLook = noFile): Refreshed {
    const change = new Change(second)
    for (const path of paths) this.#refreshPath(path, change)
    return change
  }

  #refreshPath(path: string, change: Change): void {
    const folder = dirname(path)
    this.#refreshUsers(path, change)
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

  /** What is reached through a place, or through one in a folder that was not watched before. */
  #refreshUsers(place: string, change: Change): void {
    for (const path of new Set([...this.#ways.usersOf(place), ...this.#ways.usersIn(place)])) {
      if (this.#roots.includes(path)) this.#refreshRoot(path, change)
      else if (this.#folders.has(path) || isFolder(path)) this.#refreshFolder(path, change)
      else this.#refreshFile(path, change)
    }
  }

  /** A mounted volume swaps a hidden link, and every visible file beside it leads through it. */
  #refreshBeside(folder: string, change: Change): void {
    for (const root of this.#roots) if (dirname(root) === folder) this.#refreshRoot(root, change)
    if (this.#folders.has(folder)) this.#refreshFolder(folder, change)
  }

  #refreshRoot(root: string, change: Change): void {
    this.#note(root, change)
    if (isFolder(root) || this.#folders.has(root)) {
      this.#refreshFolder(root, change)
      return
    }
    this.#refreshFile(root, change)
    const state = this.#files.get(root)
    if (state === undefined) this.#treeProblems.set(root, unreadable(root, { code: 'ENOENT' }))
    else this.#treeProblems.delete(root)
    // It may be a folder that nothing can be said of.
    if (state?.stamp === '') this.#retain(root, change)
  }

  #refreshFolder(folder: string, change: Change): void {
    change.mayHaveMoved = true
    const exists = isFolder(folder)
    const listing = exists ? listFolder(folder) : nothingListed
    const isHidden = (path: string) => listing.unreadable.some((above) => isBelow(path, above))
    for (const path of [...this.#treeProblems.keys()]) {
      if (isBelow(path, folder)) this.#treeProblems.delete(path)
    }
    for (const problem of listing.problems) this.#treeProblems.set(problem.file, problem)
    if (!exists && this.#roots.includes(folder)) {
      this.#treeProblems.set(folder, unreadable(folder, { code: 'ENOENT' }))
    }
    for (const known of [...this.#folders]) {
      if (isBelow(known, folder) && !isHidden(known)) this.#folders.delete(known)
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
      if (isBelow(file, folder) && !found.has(file) && !isHidden(file)) {
        this.#refreshFile(file, change)
      }
    }
  }

  #note(path: string, change: Change): void {
    if (this.#ways.note(path, this.#roots.includes(path))) change.mayHaveMoved = true
  }

  #refreshFile(file: string, change: Change): void {
    this.#note(file, change)
    // One look may come to a file on several ways.
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
        this.#replace(file, { stamp: '', hash: '', claims, problems }, change)
        return
      }
      case 'read': {
        const { stamp, hash, content } = read
        if (this.#isConfirmed(file, hash, change)) {
          const parsed = this.#found.get(file)?.parsed ?? this.#parse(content, file, before)
          this.#replace(file, { stamp, hash, ...parsed }, change)
        } else this.#await(file, content, before, change)
      }
    }
  }

  #lose(file: string, before: FileState | undefined, change: Change): void {
    const isDangling = isLink(file) && !this.#roots.includes(file)
    if (before === undefined && !isDangling) return
    const isLost = before !== undefined && before.claims.length > 0
    if (isLost && !this.#isConfirmed(file, gone, change)) change.unsettled.push(file)
    else this.#replace(file, isDangling ? danglingState(file) : undefined, change)
  }

  /** Until content that was found for the first time is confirmed, the file says what it said before. */
  #await(file: string, content: Uint8Array, before: FileState | undefined, change: Change): void {
    const found = this.#found.get(file)
    if (before === undefined || found === undefined) {
      // What the log has of the file stays if there is no listing without it.
      if (change.second.has(file)) this.#retainFile(file, change)
      change.unconfirmed.push(file)
      return
    }
    found.parsed ??= this.#parse(content, file, before)
    const isLosing = losesObjects(before.claims, found.parsed)
    ;(isLosing ? change.unsettled : change.unconfirmed).push(file)
  }

  #retainFile(file: string, change: Change): void {
    const found = this.#found.get(file)
    const claims = this.#retainedClaims(file)
    if (claims.length === 0) return
    this.#replace(file, { stamp: '', hash: '', claims, problems: [] }, change)
    if (found !== undefined) this.#found.set(file, found)
  }

  /** Has a look before this one found the same, and is this the second one? */
  #isConfirmed(file: string, hash: string, change: Change): boolean {
    const isSame = this.#found.get(file)?.hash === hash
    if (isSame && change.second.has(file)) return true
    if (!isSame) this.#found.set(file, { hash })
    return false
  }

  #parse(
    content: Uint8Array,
    file: string,
    before: FileState | undefined,
  ): Omit<FileState, 'stamp' | 'hash'> {
    const parsed = parseManifest(content, file)
    if (!parsed.ok) {
      return { claims: before?.claims ?? this.#retainedClaims(file), problems: parsed.problems }
    }
    const observed = parsed.value.map((written) => observe(written, file, this.#options))
    const claims = observed.flatMap(({ claim }) => claim ?? [])
    const problems = observed.flatMap((each) => each.problems)
    const isAttributed = observed.every((each) => each.claim || each.problems.every(isWarning))
    if (isAttributed) return { claims, problems }
    // An object without a readable name may be any of those that the file had.
    const keys = new Set(claims.map(({ key }) => key))
    const lost = (before?.claims ?? this.#retainedClaims(file)).filter(({ key }) => !keys.has(key))
    return { claims: [...claims, ...lost], problems }
  }

  #replace(file: string, state: FileState | undefined, change: Change): void {
    const before = this.#files.get(file)?.claims ?? []
    this.#found.delete(file)
    if (state === undefined) this.#files.delete(file)
    else this.#files.set(file, state)
    if (state === undefined || state.problems.length === 0) this.#troubled.delete(file)
    else this.#troubled.set(file, state.problems)
    if (before === state?.claims) return
    for (const { key } of [...before, ...(state?.claims ?? [])]) change.keys.add(key)
    this.book.replace(file, state?.claims ?? [])
  }

  /** Files in an unreadable folder of which only the log knows: what it has of them stays. */
  #retain(folder: string, change: Change): void {
    for (const { origin } of this.#options.known()) {
      if (origin === undefined || !isBelow(origin.file, folder)) continue
      if (this.#files.has(origin.file)) continue
      const claims = this.#retainedClaims(origin.file)
      this.#replace(origin.file, { stamp: '', hash: '', claims, problems: [] }, change)
    }
  }

  #retainedClaims(file: string): Claim[] {
    const claims: Claim[] = []
    for (const { kind, namespace, name, origin } of this.#options.known()) {
      if (origin?.file !== file) continue
      const key = `${kind}/${namespace}/${name}`
      const identity = { kind, namespace, name }
      claims.push({ key, name: identity, origin, column: 1, content: { state: 'retained' } })
    }
    return claims
  }
}

class Change implements Refreshed {
  readonly keys = new Set<string>()
  readonly unconfirmed: string[] = []
  readonly unsettled: string[] = []
  readonly second: SecondLook
  readonly seen = new Set<string>()
  mayHaveMoved = false

  constructor(second: SecondLook) {
    this.second = second
  }
}

/** A link to nothing has no objects, and is told: somebody expects them. */
function danglingState(file: string): FileState {
  const problems = [unreadable(file, { message: 'a link that leads nowhere' })]
  return { stamp: 'dangling', hash: '', claims: [], problems }
}

const nothingListed = { files: [], folders: [], unreadable: [], problems: [] }

type Read =
  | { readonly outcome: 'unchanged' | 'gone' }
  /** Another stamp, the same bytes. */
  | { readonly outcome: 'touched'; readonly stamp: string }
  | { readonly outcome: 'unreadable'; readonly error: unknown }
  | {
      readonly outcome: 'read'
      readonly stamp: string
      readonly hash: string
      readonly content: Uint8Array
    }

function readFile(file: string, before: FileState | undefined): Read {
  try {
    const { mtimeNs, ctimeNs, size, ino } = statSync(file, { bigint: true })
    const stamp = `${mtimeNs} ${ctimeNs} ${size} ${ino}`
    if (stamp === before?.stamp) return { outcome: 'unchanged' }
    const bytes = readFileSync(file)
    const hash = createHash('sha256').update(bytes).digest('base64')
    if (hash === before?.hash) return { outcome: 'touched', stamp }
    return { outcome: 'read', stamp, hash, content: bytes }
  } catch (error) {
    const isGone = (error as NodeJS.ErrnoException).code === 'ENOENT'
    return isGone ? { outcome: 'gone' } : { outcome: 'unreadable', error }
  }
}

const isWarning = ({ severity }: SourceProblem) => severity === 'warning'

/** Would objects be deleted? */
function losesObjects(before: readonly Claim[], after: { claims: readonly Claim[] }): boolean {
  const keys = new Set(after.claims.map(({ key }) => key))
  return before.some(({ key }) => !keys.has(key))
}

function isBelow(path: string, folder: string): boolean {
  return (
    path === folder ||
    path.startsWith(folder.endsWith(sep) ? folder : folder + sep) ||
    folder === '.'
  )
}

function withoutTrailingSlash(path: string): string {
  const normal = normalize(path)
  return normal.length > 1 && normal.endsWith(sep) ? normal.slice(0, -1) : normal
}
