/**
 * The loop of the control plane. It reads the log in order, folds every event, and after each batch
 * publishes changes and appends decisions. Nothing else feeds the fold: every event is folded once and
 * in log order, whatever its writer.
 */
import { conditionsDecided, desiredPublished, type SluiceEvent } from '../../../events/index.ts'
import { type Clock, systemClock } from '../../ground/base/clock.ts'
import { objectKey } from '../../ground/model/names.ts'
import type { DesiredDelta, VersionedResource } from '../../ground/model/resources.ts'
import { type Fold, type FoldChange, foldVersion } from '../actors/fold.ts'
import { maxCauses } from '../actors/status-causes.ts'
import {
  type EventLog,
  type NewSnapshot,
  newEvent,
  type Position,
  type Recorded,
} from '../log/index.ts'
import { type Unrecorded, UnrecordedDecisions } from './unrecorded.ts'

interface ReconcilerOptions {
  readonly log: EventLog
  readonly fold: Fold
  /** If omitted, the system's clock is used. */
  readonly clock?: Clock
  /** Called with every event before it is folded. */
  readonly observe: (event: SluiceEvent) => void
  readonly publish: (delta: DesiredDelta) => void
  /**
   * Called before `open` with resources that are published then unless they change, so that proxies can apply
   * them meanwhile. They must not serve them yet.
   */
  readonly prepare?: (resources: readonly VersionedResource[]) => void
  /** Captures the state at the fold's position, which is encoded while it is stored. */
  readonly capture: () => NewSnapshot
  /** Number of folded events between two snapshots. */
  readonly snapshotEvery?: number
  /**
   * The lease epoch under which decisions and snapshots are written now; undefined while another
   * replica writes them.
   */
  readonly epoch: () => number | undefined
  /** Appends decisions all or none. */
  readonly append: (events: readonly SluiceEvent[]) => Promise<unknown>
  /** Called after a snapshot was stored. */
  readonly onSnapshot?: (position: Position) => void
  /** Called with the decisions of each batch. */
  readonly onDecided?: (change: FoldChange) => void
  /** Called after an event was folded. */
  readonly onFolded?: (recorded: Recorded) => void
  readonly onFault: (error: unknown) => void
  /** Called if the log cannot be read any more after `start`. Default: `onFault`. */
  readonly onEnd?: (error: unknown) => void
}

/** Limits how long a start takes: it reads the last snapshot, then about this many events. */
const defaultSnapshotEvery = 10_000

/** Number of folded events after which their resources are prepared; few enough to keep proxies at work. */
const prepareEvery = 250

/** Wait before a failed append of decisions is retried. */
const retryMs = 1_000

/** Maximum number of keys in a DesiredPublished event. If more have changed, it has none. */
const maxNamedKeys = 32

const source = '/sluice/fold'

export class Reconciler {
  readonly #options: ReconcilerOptions
  readonly #stop = new AbortController()
  #decisions = new UnrecordedDecisions(0)
  #isOpen = false
  /** Whether decisions are appended. */
  #isRecording = false
  /** Position of the last snapshot. */
  #snapshotAt = 0
  #snapshotsUnderWay = 0
  #isMendingDue = false
  #hasPublished = false
  #publishedUpTo = 0
  /** The last published change set that is not recorded yet. */
  #lastDelta: Omit<DesiredDelta, 'sequence'> | undefined
  #flushScheduled = false
  /** Ends with the last scheduled flush, whose snapshot may take a while. */
  #flushing: Promise<unknown> = Promise.resolve()
  #waiters: { position: number; resolve: () => void; reject: (error: unknown) => void }[] = []
  #loop: Promise<void> = Promise.resolve()
  /** Last position of the log at the start. */
  #endAtStart = 0
  /** Why reading has ended; undefined while the log is read. */
  #failure: { readonly error: unknown } | undefined

  constructor(options: ReconcilerOptions) {
    this.#options = options
  }

  /**
   * Folds the events in the log and all later ones. Resolves at the end of the log. If the log cannot be read
   * that far, for example because of events of a newer version, rejects and does not call `onEnd`.
   */
  async start(from: Position): Promise<void> {
    const { log } = this.#options
    const last = await log.lastPosition()
    this.#snapshotAt = from - 1
    this.#endAtStart = last
    this.#decisions = await decisionsBefore(log, from)
    this.#loop = this.#run(log.tail(from, { signal: this.#stop.signal }))
    await this.folded(last)
    this.#prepare()
  }

  /** Position of the last event whose changes are published; 0 before the first publication. */
  get publishedUpTo(): number {
    return this.#publishedUpTo
  }

  /**
   * Begins to publish. Call it once the first listing is folded. Decisions are appended once `record` is called,
   * or after `recordWaitMs`.
   */
  open(recordWaitMs = 0): void {
    this.#isOpen = true
    this.#isRecording = recordWaitMs === 0
    if (!this.#isRecording) setTimeout(() => this.record(), recordWaitMs).unref()
    this.#scheduleFlush()
  }

  /** Begins to append decisions. Those that were made before are in the log before later appends. */
  record(): void {
    if (this.#isRecording || !this.#isOpen || this.#stop.signal.aborted) return
    this.#isRecording = true
    this.#startFlush()
  }

  /** Resolves once the event at a position is folded. Rejects if the log cannot be read that far. */
  folded(position: number): Promise<void> {
    if (this.#options.fold.position >= position) return Promise.resolve()
    if (this.#failure !== undefined) return Promise.reject(this.#failure.error)
    return new Promise((resolve, reject) => this.#waiters.push({ position, resolve, reject }))
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#loop
    this.#isRecording = true
    if (this.#isOpen) await this.#flush()
    await this.#flushing
  }

  async #run(events: AsyncIterable<Recorded>): Promise<void> {
    try {
      for await (const recorded of events) this.#take(recorded)
    } catch (error) {
      if (!this.#stop.signal.aborted) this.#end(error)
    }
  }

  #end(error: unknown): void {
    const { fold, onFault, onEnd = onFault } = this.#options
    this.#failure = { error }
    const waiters = this.#waiters
    this.#waiters = []
    for (const { reject } of waiters) reject(error)
    if (fold.position >= this.#endAtStart) onEnd(error)
  }

  #take(recorded: Recorded): void {
    const { fold, observe, onFolded } = this.#options
    observe(recorded.event)
    this.#decisions.remember(recorded.position, recorded.event)
    fold.apply(recorded)
    onFolded?.(recorded)
    const reached = this.#waiters.filter(({ position }) => position <= fold.position)
    if (reached.length > 0) {
      this.#waiters = this.#waiters.filter(({ position }) => position > fold.position)
      for (const { resolve } of reached) resolve()
    }
    if (fold.position % prepareEvery === 0) this.#prepare()
    this.#scheduleFlush()
  }

  #prepare(): void {
    const { fold, prepare } = this.#options
    if (prepare !== undefined && !this.#isOpen) prepare(fold.newResources())
  }

  /** Appends the decisions that the log lacks. Call it when this replica begins to write. */
  appendDecisions(): void {
    this.#scheduleFlush()
  }

  /** Stores the state that replaces externally removed events, if this replica writes. */
  mend(): void {
    this.#isMendingDue = true
    this.#scheduleFlush()
  }

  /** Flushes at most once per turn of the event loop, so that a burst of events is published once. */
  #scheduleFlush(): void {
    if (this.#flushScheduled || !this.#isOpen) return
    this.#flushScheduled = true
    setImmediate(() => {
      this.#flushScheduled = false
      this.#startFlush()
    })
  }

  #startFlush(): void {
    const flushed = this.#flush().catch(this.#options.onFault)
    this.#flushing = Promise.all([this.#flushing, flushed])
  }

  async #flush(): Promise<void> {
    const { fold, log, publish, onDecided, onSnapshot, epoch } = this.#options
    const change = fold.takeChange()
    const { upserted, removed } = change.delta
    // The first state is published even if empty, since proxies wait for it.
    const isNews = change.observed || upserted.length > 0 || removed.length > 0
    if (isNews || !this.#hasPublished) publish(change.delta)
    this.#hasPublished = true
    this.#publishedUpTo = change.delta.sequence
    this.#note(change)
    onDecided?.(change)
    const writing = this.#isRecording ? epoch() : undefined
    if (writing === undefined) return
    const isMending = this.#isMendingDue
    this.#isMendingDue = false
    const snapshot = this.#dueSnapshot(isMending)
    const appended = this.#append(writing)
    if (snapshot === undefined) return appended
    this.#snapshotsUnderWay++
    try {
      // Stored after the append, so that a fold restored from it never makes the same decisions again.
      await appended
      if (isMending) await log.mend(() => snapshot)
      else await log.saveSnapshot(snapshot)
    } finally {
      this.#snapshotsUnderWay--
    }
    onSnapshot?.(snapshot.position)
  }

  #note(change: FoldChange): void {
    const { delta } = change
    this.#decisions.note(change)
    if (delta.upserted.length > 0 || delta.removed.length > 0) this.#lastDelta = delta
  }

  /** Appends the decisions that the log lacks. Those that fail are retried. */
  async #append(epoch: number): Promise<void> {
    const news = this.#decisions.take()
    if (news.length === 0 && this.#lastDelta === undefined) return
    const delta = this.#lastDelta ?? { upserted: [], removed: [] }
    this.#lastDelta = undefined
    const events: SluiceEvent[] = news.map((status) => this.#conditionsDecided(status, epoch))
    events.push(this.#desiredPublished(delta, epoch))
    try {
      await this.#options.append(events)
    } catch (error) {
      this.#decisions.putBack(news)
      this.#lastDelta ??= delta
      if (!this.#stop.signal.aborted) setTimeout(() => this.#scheduleFlush(), retryMs).unref()
      throw error
    }
  }

  /** A snapshot of a large state takes seconds, in which the next one may become due; it then waits. */
  #dueSnapshot(isWanted: boolean): NewSnapshot | undefined {
    const { fold, capture, snapshotEvery = defaultSnapshotEvery } = this.#options
    const isDue = fold.position - this.#snapshotAt >= snapshotEvery
    if (!isWanted && (!isDue || this.#snapshotsUnderWay > 0)) return undefined
    this.#snapshotAt = fold.position
    return capture()
  }

  #conditionsDecided({ ref, generation, status, causes }: Unrecorded, epoch: number): SluiceEvent {
    const { position } = this.#options.fold
    const more = causes.length > maxCauses && { moreCauses: true }
    return newEvent(conditionsDecided, this.#writer(epoch), ref, {
      id: `${epoch}:${objectKey(ref)}:${position}:${conditionsDecided.type}`,
      data: { ...ref, generation, status, causes: causes.slice(0, maxCauses), ...more },
    })
  }

  #desiredPublished(
    { upserted, removed }: Omit<DesiredDelta, 'sequence'>,
    epoch: number,
  ): SluiceEvent {
    const { fold } = this.#options
    const { position: sequence } = fold
    const digests = fold.digests()
    const keys = [...upserted.map(({ resource }) => resource.key), ...removed]
    return newEvent(
      desiredPublished,
      this.#writer(epoch),
      { kind: 'Desired', name: 'state' },
      {
        id: `${epoch}:desired:${sequence}:${desiredPublished.type}`,
        data: {
          version: sequence,
          digest: digests.desired,
          statusDigest: digests.status,
          upserted: upserted.length,
          removed: removed.length,
          ...(keys.length <= maxNamedKeys && { keys }),
          foldVersion,
          recordedSince: this.#decisions.recordedSince,
        },
      },
    )
  }

  #writer(epoch: number) {
    return { source, epoch, foldVersion, clock: this.#options.clock ?? systemClock }
  }
}

/** Number of events before the first one to fold, among which a published state is looked for. */
const recallEvents = 1_000

/** Since when the log has all decisions is said by the last published state. */
async function decisionsBefore(log: EventLog, from: Position): Promise<UnrecordedDecisions> {
  const decisions = new UnrecordedDecisions(from - 1)
  const first = await log.firstPosition()
  const range = {
    from: Math.max(first, from - recallEvents) as Position,
    to: (from - 1) as Position,
  }
  if (range.from > range.to) return decisions
  for await (const { position, event } of log.read(range)) {
    if (event.type === desiredPublished.type) decisions.remember(position, event)
  }
  return decisions
}
