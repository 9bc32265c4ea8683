import { setTimeout as delay } from 'node:timers/promises'
import type { EventContext, ResourceEvent } from '../../../events/index.ts'
import { type Clock, systemClock } from '../../ground/base/clock.ts'
import { builtInFile, inOrder } from './claim-book.ts'
import { asRelist, differences, type SourceChange } from './difference.ts'
import { DirectoryWatch } from './directory-watch.ts'
import { everyFile, type Refreshed } from './file-change.ts'
import type { FileRecords } from './file-records.ts'
import { FileSet } from './file-set.ts'
import { digestsOf, type ObjectClaim, type ObserveOptions, observe } from './observed.ts'
import { type IndexEntry, keyOf, ResourceIndex } from './resource-index.ts'
import { formatProblem, type SourceProblem } from './source-problem.ts'

export interface FileSourceOptions extends ObserveOptions {
  /** Files and folders. Folders are searched with their subfolders for *.yaml, *.yml and *.json. */
  readonly paths: readonly string[]
  /** If omitted, the system's clock is used. */
  readonly clock?: Clock
  /** Whether other replicas write the same log, so that this one may have to follow. */
  readonly isShared?: boolean
  /** Objects that exist although no file defines them; a file may define them differently. */
  readonly builtIn?: readonly object[]
  /** Records of files whose objects the log has, which need not be parsed again. If omitted, all files are parsed. */
  readonly records?: FileRecords | undefined
  /** Called with events to append, in order and all or none. Resolves once they are in the log. */
  onChange(events: readonly ResourceEvent[]): Promise<void>
  /** Called once for each problem, when it appears. */
  onProblem(problem: SourceProblem): void
  readonly timing?: Partial<typeof defaultTiming>
}

/** All in milliseconds. */
const defaultTiming = {
  /** Quiet time after a notification; one save causes several. */
  debounceMs: 10,
  /** Longest wait after a notification, even if more keep coming. */
  atMostMs: 100,
  /** Time between the two reads that must find the same content. */
  confirmMs: 15,
  /** Time between the two reads if a file is gone, or a file that replaces it has fewer objects. */
  settleMs: 100,
  /** Time between the two reads if the writer of the file may have paused. */
  quietMs: 1_000,
  /** Interval of complete reads, needed because network file systems send no notifications. */
  rescanMs: 30_000,
  /** Interval of complete reads while a folder cannot be watched. */
  unwatchedRescanMs: 1_000,
  /** Wait before a failed append is retried. */
  retryMs: 1_000,
}

/**
 * Manifests as a source of events, with the semantics of a list and a watch:
 *
 * ```
 *   lead ── list everything, append the differences to the index ──► following the files
 *   following ── a notification, then quiet ──► read those paths, append what changed
 *            ├── objects are missing ──► read again after a while, then delete them
 *            ├── the file may be unfinished ──► read again after a longer while without a change
 *            ├── a watch was lost, or a rescan is due ──► read everything
 *            └── the append failed ──► append the same objects again after a while
 * ```
 *
 * While another replica leads, this one reads its manifests but appends nothing: it needs the values
 * of their Secrets, and reports their problems on the machine where they are.
 */
export class FileSource {
  /** Always true, since `lead` lists the manifests itself. */
  readonly isListed = true
  readonly #options: FileSourceOptions
  readonly #timing: typeof defaultTiming
  readonly #watch: DirectoryWatch
  /** The objects of this source in the log. The source updates it when it appends. */
  #index = new ResourceIndex('')
  /** Lease epoch of this replica; undefined while another one leads. */
  #epoch: number | undefined
  #files: FileSet
  /** Paths that the watch has reported since the last read. */
  #dirty = new Set<string>()
  /** Whether the next read must read everything. */
  #isAllDirty = false
  #settled = new Set<string>()
  /** Objects whose last change is not in the log yet. */
  readonly #pending = new Set<string>()
  #reported = new Set<string>()
  readonly #timers = new Map<string, NodeJS.Timeout>()
  #firstNotice: number | undefined
  #running: Promise<void> = Promise.resolve()
  readonly #unwatched = new Set<string>()
  readonly #warned = new Set<string>()
  /** Whether the records may differ from the log. */
  #isUnsaved = false
  #isClosed = false

  constructor(options: FileSourceOptions) {
    this.#options = options
    this.#timing = { ...defaultTiming, ...options.timing }
    this.#files = this.#createFileSet()
    this.#watch = new DirectoryWatch({
      onPath: (path) => this.#notice(path),
      onLost: (folder, error) => this.#lose(folder, error),
    })
  }

  /** Reads the manifests now if other replicas share the log; otherwise, `lead` reads them. */
  start(): Promise<void> {
    if (this.#options.isShared === true) this.follow()
    return this.#running
  }

  /**
   * Lists everything, and appends what differs from `index` between RelistStarted and RelistFinished. Rejects
   * if this append fails. Changes are appended from then on.
   */
  lead(index: ResourceIndex, epoch = 0): Promise<void> {
    return this.#restart(index, epoch)
  }

  /** Stops appending. Events of an append under way may still reach the log, where they are ignored. */
  follow(): void {
    this.#restart(new ResourceIndex(this.#index.source), undefined).catch(() => undefined)
  }

  #restart(index: ResourceIndex, epoch: number | undefined): Promise<void> {
    const restarted = this.#running.then(() => this.#list(index, epoch))
    this.#running = restarted.catch(() => undefined)
    return restarted
  }

  async #list(index: ResourceIndex, epoch: number | undefined): Promise<void> {
    this.#clearTimers()
    this.#pending.clear()
    this.#index = index
    this.#epoch = epoch
    // The new file set keeps the objects of files that it cannot read, from `#index`.
    this.#files = this.#createFileSet()
    this.#claimBuiltIn()
    this.#files.refreshAll()
    this.#watch.follow(this.#files.folders())
    await delay(this.#timing.confirmMs)
    // The second read also finds changes that were made before the watch began.
    const refreshed = this.#files.refreshAll(everyFile)
    this.#watch.follow(this.#files.folders())
    this.#settleLater([...refreshed.unconfirmed, ...refreshed.unsettled], refreshed.unfinished)
    const context = this.#context()
    const changes = differences(index, this.#changeOf(this.#allKeys(), 'relist'), context)
    await this.#append(this.#asListing(changes, context))
    this.#saveRecords()
    this.#report()
    this.#scheduleRescan()
  }

  #createFileSet(): FileSet {
    const { records } = this.#options
    return new FileSet({
      ...this.#options,
      known: () => this.#index.entries(),
      ...(records && {
        recorded: (file, content, parse) => records.find(this.#index, file, content, parse),
      }),
    })
  }

  /** All current problems. */
  problems(): SourceProblem[] {
    return this.#files.problems()
  }

  /** Digests of all secret values that the files have now, including those of unconfirmed content. */
  secretDigests(): Set<string> {
    return digestsOf(this.#files.claims())
  }

  /** Reads the files again that define these secret values, and keeps the values again. */
  observeAgain(digests: ReadonlySet<string>): void {
    this.#files.keepAgain(digests)
  }

  /** Reads everything again and appends what changed. */
  async rescan(): Promise<void> {
    this.#isAllDirty = true
    await this.#work()
  }

  /** Stops watching and waits for an append under way. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#watch.close()
    this.#clearTimers()
    await this.#running
    if (this.#isUnsaved) this.#saveRecords()
  }

  #saveRecords(): void {
    this.#isUnsaved = false
    if (this.#epoch !== undefined) this.#options.records?.save(this.#index, this.#files.states())
  }

  #clearTimers(): void {
    for (const timer of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
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

  /** Processes changes after the work under way. All notifications until then are handled together. */
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
    this.#settleLater(refreshed.unsettled, refreshed.unfinished)
    for (const key of refreshed.keys) this.#pending.add(key)
    this.#report()
    const keys = [...this.#pending]
    const context = this.#context()
    const events = differences(this.#index, this.#changeOf(keys, cause), context)
    try {
      if (events.length > 0) {
        await this.#append(cause === 'relist' ? this.#asListing(events, context) : events)
      }
      for (const key of keys) this.#pending.delete(key)
    } catch (error) {
      const message = `failed to record changes; retrying: ${String(error)}`
      const file = this.#options.paths.join(', ')
      this.#options.onProblem({ severity: 'error', reason: 'unrecorded', file, message })
      this.#later('retry', this.#timing.retryMs, () => this.#work())
    }
  }

  /** Reads changed files, and those with new content a second time: it is used only if both reads agree. */
  async #refreshTwice(): Promise<Refreshed> {
    const first = this.#refresh()
    if (first.unconfirmed.length === 0) return first
    await delay(this.#timing.confirmMs)
    const second = this.#files.refresh(first.unconfirmed, new Set(first.unconfirmed))
    // The new content may take values from files in other folders.
    if (second.mayHaveMoved) this.#watch.follow(this.#files.folders())
    return {
      keys: new Set([...first.keys, ...second.keys]),
      unconfirmed: [],
      unsettled: [...first.unsettled, ...second.unconfirmed, ...second.unsettled],
      unfinished: [...first.unfinished, ...second.unfinished],
      mayHaveMoved: second.mayHaveMoved,
    }
  }

  #refresh(): Refreshed {
    const [paths, settled, isAll] = [this.#dirty, this.#settled, this.#isAllDirty]
    this.#dirty = new Set()
    this.#settled = new Set()
    this.#isAllDirty = false
    let result = isAll ? this.#files.refreshAll(settled) : this.#files.refresh(paths, settled)
    while (result.mayHaveMoved) {
      // A new folder may have changed before it was watched, without a notification.
      const entered = this.#watch.follow(this.#files.folders())
      if (entered.length === 0) break
      const again = this.#files.refresh(entered, settled)
      const keys = new Set([...result.keys, ...again.keys])
      const unconfirmed = [...result.unconfirmed, ...again.unconfirmed]
      const unsettled = [...result.unsettled, ...again.unsettled]
      const unfinished = [...result.unfinished, ...again.unfinished]
      result = { ...again, keys, unconfirmed, unsettled, unfinished }
    }
    return result
  }

  #settleLater(unsettled: readonly string[], unfinished: readonly string[]): void {
    const { settleMs, quietMs } = this.#timing
    this.#readAgainLater(unsettled, settleMs)
    this.#readAgainLater(unfinished, quietMs)
  }

  #readAgainLater(files: readonly string[], waitMs: number): void {
    for (const file of files) {
      // The wait starts again after each read that finds other content, since the content must stay the same.
      const name = `settle ${file}`
      this.#later(name, waitMs, () => {
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

  #changeOf(keys: Iterable<string>, cause: SourceChange['cause']): SourceChange {
    const claims: ObjectClaim[] = []
    const gone: IndexEntry[] = []
    for (const key of keys) {
      const claim = this.#files.book.first(key)
      const entry = this.#index.get(key)
      if (claim !== undefined) claims.push(claim)
      else if (entry !== undefined) gone.push(entry)
    }
    return { claims: claims.sort(inOrder), gone, cause }
  }

  *#allKeys(): Iterable<string> {
    yield* this.#files.book.keys()
    for (const entry of this.#index.entries()) {
      const key = keyOf(entry)
      if (this.#files.book.first(key) === undefined) yield key
    }
  }

  async #append(events: readonly ResourceEvent[]): Promise<void> {
    if (this.#epoch !== undefined) await this.#options.onChange(events)
    this.#index.applyAll(events)
    this.#isUnsaved = true
  }

  #asListing(events: readonly ResourceEvent[], context: EventContext): ResourceEvent[] {
    return asRelist(this.#index, events, { source: 'files', scope: this.#options.paths }, context)
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

  #context(): EventContext {
    const { clock = systemClock } = this.#options
    const time = new Date(clock.now()).toISOString()
    return { source: this.#index.source, time, epoch: this.#epoch ?? 0 }
  }
}
