/**
 * The one loop of the control plane. It reads the log in order, folds every event, and after each
 * batch publishes what changed and appends what was decided. Nothing else feeds the fold: every event
 * is folded exactly once and in log order, from whatever source, proxy or replica it comes.
 */
import { hash } from 'node:crypto'
import {
  conditionsDecided,
  createEvent,
  desiredPublished,
  type EventContext,
  type SluiceEvent,
} from '../../events/index.ts'
import { type Fold, type FoldChange, foldVersion, type StatusChange } from '../actors/fold.ts'
import { canonicalJson } from '../base/canonical.ts'
import type { Clock } from '../base/clock.ts'
import type { EventLog, Position, Recorded, Snapshot } from '../log/index.ts'
import { subjectOf } from '../log/index.ts'
import { type ObjectKey, objectKey } from '../model/names.ts'
import type { DesiredDelta } from '../model/resources.ts'

interface ReconcilerOptions {
  readonly log: EventLog
  readonly fold: Fold
  readonly clock: Clock
  readonly cluster: string
  /** Sees every event before it is folded. */
  readonly observe: (event: SluiceEvent) => void
  readonly publish: (delta: DesiredDelta) => void
  /** The state as of the fold's position. */
  readonly capture: () => Snapshot
  /** Number of folded events after which a snapshot is stored. */
  readonly snapshotEvery?: number
  /**
   * The lease epoch under which decisions and snapshots are written now; undefined while another
   * replica writes them.
   */
  readonly epoch: () => number | undefined
  /** Appends decisions all or none. */
  readonly append: (events: readonly SluiceEvent[]) => Promise<unknown>
  /** After a snapshot was stored. */
  readonly onSnapshot?: (position: Position) => void
  /** What was decided, beside what is published; statuses of a batch come together. */
  readonly onDecided?: (change: FoldChange) => void
  /** After an event was folded. */
  readonly onFolded?: (recorded: Recorded) => void
  readonly onFault: (error: unknown) => void
  /** The log cannot be read on after it was read once. Defaults to `onFault`. */
  readonly onEnd?: (error: unknown) => void
}

/** A start reads the last snapshot and then at most about this many events. */
const defaultSnapshotEvery = 10_000

/** Decisions of one append; a first listing may have thousands. */
const batchSize = 1_000

/** Wait before decisions that could not be appended are appended again. */
const retryMs = 1_000

/** Most keys that a DesiredPublished event names. */
const maxNamedKeys = 32

const source = '/sluice/fold'

export class Reconciler {
  readonly #options: ReconcilerOptions
  readonly #stop = new AbortController()
  /** Digest of the status by object key, as the log has it. */
  readonly #recorded = new Map<ObjectKey, string>()
  /** Decisions that the log does not have yet; many if the replica that writes has died. */
  #unrecorded = new Map<ObjectKey, StatusChange>()
  #isOpen = false
  /** Position of the last snapshot. */
  #snapshotAt = 0
  #isMendingDue = false
  #hasPublished = false
  /** The last change set that was published and is not recorded as such. */
  #lastDelta: Omit<DesiredDelta, 'sequence'> | undefined
  #flushScheduled = false
  #waiters: { position: number; resolve: () => void; reject: (error: unknown) => void }[] = []
  #loop: Promise<void> = Promise.resolve()
  /** What the log held when this began to read. */
  #startsAt = 0
  /** Why nothing more is read. */
  #failure: { readonly error: unknown } | undefined

  constructor(options: ReconcilerOptions) {
    this.#options = options
  }

  /**
   * Folds what the log holds and goes on with what comes; resolves when it has caught up. Rejects
   * if the log cannot be read so far, such as one of a newer version; `onEnd` is not called then.
   */
  async start(from: Position): Promise<void> {
    const { log } = this.#options
    const last = await log.lastPosition()
    this.#snapshotAt = from - 1
    this.#startsAt = last
    this.#loop = this.#run(log.tail(from, { signal: this.#stop.signal }))
    await this.folded(last)
  }

  /** Begins to publish: call it once the first listing of the sources has been folded. */
  open(): void {
    this.#isOpen = true
    this.#scheduleFlush()
  }

  /** Resolves once the event at a position is folded; rejects if the log cannot be read so far. */
  folded(position: number): Promise<void> {
    if (this.#options.fold.position >= position) return Promise.resolve()
    if (this.#failure !== undefined) return Promise.reject(this.#failure.error)
    return new Promise((resolve, reject) => this.#waiters.push({ position, resolve, reject }))
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#loop
    if (this.#isOpen) await this.#flush()
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
    if (fold.position >= this.#startsAt) onEnd(error)
  }

  #take(recorded: Recorded): void {
    const { fold, observe, onFolded } = this.#options
    observe(recorded.event)
    this.#remember(recorded.event)
    fold.apply(recorded)
    onFolded?.(recorded)
    const reached = this.#waiters.filter(({ position }) => position <= fold.position)
    if (reached.length > 0) {
      this.#waiters = this.#waiters.filter(({ position }) => position > fold.position)
      for (const { resolve } of reached) resolve()
    }
    this.#scheduleFlush()
  }

  #remember(event: SluiceEvent): void {
    if (event.type !== conditionsDecided.type) return
    const key = objectKey(event.data)
    const digest = digestOf(event.data.status)
    this.#recorded.set(key, digest)
    const unrecorded = this.#unrecorded.get(key)
    if (unrecorded !== undefined && digestOf(unrecorded.status) === digest)
      this.#unrecorded.delete(key)
  }

  /** Appends the decisions that the log lacks: call it when this replica begins to write. */
  appendDecisions(): void {
    this.#scheduleFlush()
  }

  /** Stores the state in place of events that somebody has removed, if this replica writes. */
  mend(): void {
    this.#isMendingDue = true
    this.#scheduleFlush()
  }

  /** Once per turn of the event loop: a burst of events becomes one publication. */
  #scheduleFlush(): void {
    if (this.#flushScheduled || !this.#isOpen) return
    this.#flushScheduled = true
    setImmediate(() => {
      this.#flushScheduled = false
      this.#flush().catch(this.#options.onFault)
    })
  }

  async #flush(): Promise<void> {
    const { fold, log, publish, onDecided, onSnapshot, epoch } = this.#options
    const change = fold.takeChange()
    const { upserted, removed } = change.delta
    // Even an empty first state is one: a proxy that waits for it must not wait for ever.
    const isNews = change.observed || upserted.length > 0 || removed.length > 0
    if (isNews || !this.#hasPublished) publish(change.delta)
    this.#hasPublished = true
    this.#note(change)
    onDecided?.(change)
    const writing = epoch()
    if (writing === undefined) return
    const isMending = this.#isMendingDue
    this.#isMendingDue = false
    const snapshot = this.#dueSnapshot(isMending)
    await this.#append(writing)
    // Only now: a state whose decisions were lost would never decide them again.
    if (snapshot === undefined) return
    if (isMending) await log.mend(() => snapshot)
    else await log.saveSnapshot(snapshot)
    onSnapshot?.(snapshot.position)
  }

  #note({ delta, statuses, dropped }: FoldChange): void {
    for (const status of statuses) {
      const key = objectKey(status.ref)
      if (this.#recorded.get(key) === digestOf(status.status)) this.#unrecorded.delete(key)
      else this.#unrecorded.set(key, status)
    }
    for (const ref of dropped) {
      this.#unrecorded.delete(objectKey(ref))
      this.#recorded.delete(objectKey(ref))
    }
    if (delta.upserted.length > 0 || delta.removed.length > 0) this.#lastDelta = delta
  }

  /** Appends the decisions that the log does not have; those that it does not take stay due. */
  async #append(epoch: number): Promise<void> {
    const news = [...this.#unrecorded]
    if (news.length === 0 && this.#lastDelta === undefined) return
    const delta = this.#lastDelta ?? { upserted: [], removed: [] }
    this.#unrecorded = new Map()
    this.#lastDelta = undefined
    const context = this.#context(epoch)
    const events: SluiceEvent[] = news.map(([, status]) => this.#conditionsDecided(status, context))
    events.push(this.#desiredPublished(delta, context))
    try {
      for (let from = 0; from < events.length; from += batchSize) {
        await this.#options.append(events.slice(from, from + batchSize))
      }
    } catch (error) {
      for (const [key, status] of news) {
        if (!this.#unrecorded.has(key)) this.#unrecorded.set(key, status)
      }
      this.#lastDelta ??= delta
      if (!this.#stop.signal.aborted) setTimeout(() => this.#scheduleFlush(), retryMs).unref()
      throw error
    }
  }

  #dueSnapshot(isWanted: boolean): Snapshot | undefined {
    const { fold, capture, snapshotEvery = defaultSnapshotEvery } = this.#options
    if (!isWanted && fold.position - this.#snapshotAt < snapshotEvery) return undefined
    this.#snapshotAt = fold.position
    return capture()
  }

  #conditionsDecided(
    { ref, generation, status }: StatusChange,
    context: EventContext,
  ): SluiceEvent {
    const { position } = this.#options.fold
    return createEvent(conditionsDecided, context, {
      id: `${context.epoch}:${objectKey(ref)}:${position}:${conditionsDecided.type}`,
      subject: subjectOf({ cluster: this.#options.cluster, ...ref }),
      data: { ...ref, generation, status },
    })
  }

  #desiredPublished(
    { upserted, removed }: Omit<DesiredDelta, 'sequence'>,
    context: EventContext,
  ): SluiceEvent {
    const { fold, cluster } = this.#options
    const { position: sequence } = fold
    const digests = fold.digests()
    const keys = [...upserted.map(({ resource }) => resource.key), ...removed]
    return createEvent(desiredPublished, context, {
      id: `${context.epoch}:desired:${sequence}:${desiredPublished.type}`,
      subject: subjectOf({ cluster, kind: 'Desired', namespace: '', name: 'state' }),
      data: {
        version: sequence,
        digest: digests.desired,
        statusDigest: digests.status,
        upserted: upserted.length,
        removed: removed.length,
        ...(keys.length <= maxNamedKeys && { keys }),
        foldVersion,
      },
    })
  }

  #context(epoch: number): EventContext {
    const time = new Date(this.#options.clock.now()).toISOString()
    return { source, time, epoch, foldVersion }
  }
}

/** Enough of a digest to tell statuses of one object apart. */
function digestOf(status: unknown): string {
  return hash('sha256', canonicalJson(status)).slice(0, 16)
}
