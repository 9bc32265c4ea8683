import { setTimeout as delay } from 'node:timers/promises'
import type { ResourceEvent } from '../../events/index.ts'
import type { Clock } from '../base/clock.ts'
import { builtInFile, inOrder } from './claim-book.ts'
import { asRelist, type Change, differences, type WriterContext } from './difference.ts'
import { DirectoryWatch } from './directory-watch.ts'
import { everyFile, FileSet, type Refreshed } from './file-set.ts'
import { type Claim, type ObserveOptions, observe } from './observed.ts'
import type { IndexEntry, ResourceIndex } from './resource-index.ts'
import { formatProblem, type SourceProblem } from './source-problem.ts'

export interface FileSourceOptions extends ObserveOptions {
  /** Files and folders; folders are searched to the bottom for *.yaml, *.yml and *.json. */
  readonly paths: readonly string[]
  readonly clock: Clock
  /** What this source has put into the log so far; kept up to date by the source from here on. */
  readonly index: ResourceIndex
  readonly cluster: string
  /** Lease epoch of this process; 0 where there is no lease. */
  readonly epoch?: () => number
  /** Objects that exist although no file defines them; a file may define them differently. */
  readonly builtIn?: readonly object[]
  /** Takes events in order, to be appended all or none; resolves once they are in the log. */
  onChange(events: readonly ResourceEvent[]): Promise<void>
  /** Told of each problem once, when it comes up. */
  onProblem(problem: SourceProblem): void
  readonly timing?: Partial<FileSourceTiming>
}

/** All in milliseconds. */
interface FileSourceTiming {
  /** Quiet time after a notification: one save makes several of them. */
  readonly debounceMs: number
  /** Longest wait when notifications never cease. */
  readonly atMostMs: number
  /** Time between the two looks that must find the same content. */
  readonly confirmMs: number
  /** The same if objects would be deleted. */
  readonly settleMs: number
  /** How often everything is looked at without a notification (network file systems send none). */
  readonly rescanMs: number
  /** The same while a folder cannot be watched. */
  readonly unwatchedRescanMs: number
  /** Wait before an append that failed is tried again. */
  readonly retryMs: number
}

const defaultTiming: FileSourceTiming = {
  debounceMs: 10,
  atMostMs: 100,
  confirmMs: 15,
  settleMs: 100,
  rescanMs: 30_000,
  unwatchedRescanMs: 1_000,
  retryMs: 1_000,
}

/**
 * Manifests as a source of events, with the semantics of a list and a watch:
 *
 * ```
 *   start ── list everything, append the differences to the index ──► following
 *   following ── a notification, then quiet ──► look at those paths, append what changed
 *            ├── objects are missing ──► look again after a while, then believe it
 *            ├── a watch lost, or time for a rescan ──► look at everything
 *            └── the append failed ──► the same objects again after a while
 * ```
 */
export class FileSource {
  #options: FileSourceOptions
  #timing: FileSourceTiming
  #files: FileSet
  #watch: DirectoryWatch
  /** Paths that were named by the watch, and whether to look at everything. */
  #dirty = new Set<string>()
  #isAllDirty = false
  #settled = new Set<string>()
  /** Objects whose last change is not in the log yet. */
  #pending = new Set<string>()
  #reported = new Set<string>()
  #timers = new Map<string, NodeJS.Timeout>()
  #firstNotice: number | undefined
  #running: Promise<void> = Promise.resolve()
  #unwatched = new Set<string>()
  #warned = new Set<string>()
  #isClosed = false

  constructor(options: FileSourceOptions) {
    this.#options = options
    this.#timing = { ...defaultTiming, ...options.timing }
    this.#files = new FileSet({ ...options, known: () => options.index.entries() })
    this.#watch = new DirectoryWatch({
      onPath: (path) => this.#notice(path),
      onLost: (folder, error) => this.#lose(folder, error),
    })
  }

  /**
   * Lists everything, appends the differences to the index between RelistStarted and
   * RelistFinished, and follows changes from then on. Rejects when that first append fails.
   */
  start(): Promise<void> {
    const begun = this.#begin()
    this.#running = begun.catch(() => {})
    return begun
  }

  async #begin(): Promise<void> {
    this.#claimBuiltIn()
    this.#files.refreshAll()
    this.#watch.follow(this.#files.folders())
    await delay(this.#timing.confirmMs)
    // Once more, now that no change can fall between looking and watching.
    const { unconfirmed, unsettled } = this.#files.refreshAll(everyFile)
    this.#settleLater([...unconfirmed, ...unsettled])
    const { index, paths } = this.#options
    const context = this.#context()
    const changes = differences(index, this.#changeOf(this.#allKeys(), 'relist'), context)
    await this.#append(asRelist(index, changes, { source: 'files', scope: paths }, context))
    this.#report()
    this.#scheduleRescan()
  }

  /** Everything that is wrong at present. */
  problems(): SourceProblem[] {
    return this.#files.problems()
  }

  /** Digests of all secret values that the files hold at present. */
  secretDigests(): Set<string> {
    const digests = new Set<string>()
    for (const { content } of this.#files.book.claims()) {
      if (content.state === 'valid') for (const digest of content.secrets) digests.add(digest)
    }
    return digests
  }

  /** Looks at everything again; resolves when what was found is in the log. */
  async rescan(): Promise<void> {
    this.#isAllDirty = true
    await this.#work()
  }

  /** Stops following and waits for an append under way. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#watch.close()
    for (const timer of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
    await this.#running
  }

  #notice(path: string): void {
    if (!this.#files.concerns(path)) return
    this.#dirty.add(path)
    const now = performance.now()
    this.#firstNotice ??= now
    const { debounceMs, atMostMs } = this.#timing
    const remaining = this.#firstNotice + atMostMs - now
    this.#later('notice', Math.max(0, Math.min(debounceMs, remaining)), () => this.#work())
  }

  #lose(folder: string, error: Error): void {
    this.#unwatched.add(folder)
    if (!this.#warned.has(folder)) {
      this.#warned.add(folder)
      const message = `cannot be watched (${error.message}); changes are found by looking every second`
      this.#options.onProblem({ severity: 'warning', reason: 'unwatched', file: folder, message })
    }
    this.#scheduleRescan()
  }

  /** Runs after the work that is under way; what was noticed meanwhile is done in one go. */
  #work(): Promise<void> {
    this.#running = this.#running.then(() => this.#process())
    return this.#running
  }

  async #process(): Promise<void> {
    if (this.#isClosed) return
    this.#firstNotice = undefined
    const cause = this.#isAllDirty ? 'relist' : 'watch'
    const refreshed = await this.#refreshTwice()
    if (this.#isClosed) return
    this.#settleLater(refreshed.unsettled)
    for (const key of refreshed.keys) this.#pending.add(key)
    this.#report()
    const keys = [...this.#pending]
    const { index, paths } = this.#options
    const context = this.#context()
    const events = differences(index, this.#changeOf(keys, cause), context)
    const isRelist = cause === 'relist' && events.length > 0
    try {
      if (events.length > 0) {
        await this.#append(
          isRelist ? asRelist(index, events, { source: 'files', scope: paths }, context) : events,
        )
      }
      for (const key of keys) this.#pending.delete(key)
    } catch (error) {
      const message = `changes could not be recorded, and will be again: ${String(error)}`
      this.#options.onProblem({
        severity: 'error',
        reason: 'unrecorded',
        file: this.#options.paths.join(', '),
        message,
      })
      this.#later('retry', this.#timing.retryMs, () => this.#work())
    }
  }

  /** What one look has found counts if the next one finds the same. */
  async #refreshTwice(): Promise<Refreshed> {
    const first = this.#refresh()
    if (first.unconfirmed.length === 0) return first
    await delay(this.#timing.confirmMs)
    const second = this.#files.refresh(first.unconfirmed, new Set(first.unconfirmed))
    return {
      keys: new Set([...first.keys, ...second.keys]),
      unconfirmed: [],
      unsettled: [...first.unsettled, ...second.unconfirmed, ...second.unsettled],
      mayHaveMoved: second.mayHaveMoved,
    }
  }

  #refresh(): Refreshed {
    const [paths, settled, isAll] = [this.#dirty, this.#settled, this.#isAllDirty]
    this.#dirty = new Set()
    this.#settled = new Set()
    this.#isAllDirty = false
    let looked = isAll ? this.#files.refreshAll(settled) : this.#files.refresh(paths, settled)
    while (looked.mayHaveMoved) {
      // What came into a new folder before it was watched was not noticed.
      const entered = this.#watch.follow(this.#files.folders())
      if (entered.length === 0) break
      const again = this.#files.refresh(entered, settled)
      const keys = new Set([...looked.keys, ...again.keys])
      const unconfirmed = [...looked.unconfirmed, ...again.unconfirmed]
      looked = { ...again, keys, unconfirmed, unsettled: [...looked.unsettled, ...again.unsettled] }
    }
    return looked
  }

  #settleLater(files: readonly string[]): void {
    for (const file of files) {
      // Anew with every look that found something else: the whole time must pass in silence.
      const name = `settle ${file}`
      this.#later(name, this.#timing.settleMs, () => {
        this.#dirty.add(file)
        this.#settled.add(file)
        return this.#work()
      })
    }
  }

  #scheduleRescan(): void {
    const { rescanMs, unwatchedRescanMs } = this.#timing
    const wait = this.#unwatched.size > 0 ? unwatchedRescanMs : rescanMs
    const timer = this.#later('rescan', wait, async () => {
      this.#unwatched.clear()
      await this.rescan()
      this.#scheduleRescan()
    })
    timer?.unref()
  }

  #later(name: string, waitMs: number, task: () => Promise<void>): NodeJS.Timeout | undefined {
    if (this.#isClosed) return undefined
    clearTimeout(this.#timers.get(name))
    const timer = setTimeout(() => {
      this.#timers.delete(name)
      void task()
    }, waitMs)
    this.#timers.set(name, timer)
    return timer
  }

  #changeOf(keys: Iterable<string>, cause: Change['cause']): Change {
    const claims: Claim[] = []
    const gone: IndexEntry[] = []
    for (const key of keys) {
      const claim = this.#files.book.first(key)
      const entry = this.#options.index.get(key)
      if (claim !== undefined) claims.push(claim)
      else if (entry !== undefined) gone.push(entry)
    }
    return { claims: claims.sort(inOrder), gone, cause }
  }

  *#allKeys(): Iterable<string> {
    const known = [...this.#options.index.entries()]
    yield* this.#files.book.keys()
    for (const { kind, namespace, name } of known) {
      const key = `${kind}/${namespace}/${name}`
      if (this.#files.book.first(key) === undefined) yield key
    }
  }

  async #append(events: readonly ResourceEvent[]): Promise<void> {
    await this.#options.onChange(events)
    this.#options.index.applyAll(events)
  }

  #report(): void {
    const current = new Map(this.problems().map((problem) => [formatProblem(problem), problem]))
    for (const [text, problem] of current) {
      if (!this.#reported.has(text)) this.#options.onProblem(problem)
    }
    this.#reported = new Set(current.keys())
  }

  #claimBuiltIn(): void {
    const place = { line: 1, column: 1 }
    const claims = (this.#options.builtIn ?? []).flatMap((value) => {
      const written = { value, place, placeOf: () => place }
      return observe(written, builtInFile, this.#options).claim ?? []
    })
    this.#files.book.replace(builtInFile, claims)
  }

  #context(): WriterContext {
    const { index, cluster, clock, epoch } = this.#options
    const time = new Date(clock.now()).toISOString()
    return { source: index.source, time, epoch: epoch?.() ?? 0, cluster }
  }
}
