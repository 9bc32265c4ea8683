/**
 * The one loop of the control plane. It reads the log in order, folds every event, and after each
 * batch publishes what changed and appends what was decided. It is the only reader of the fold, so
 * whoever appended an event (a source, a proxy, another replica), it is folded exactly once and in
 * log order.
 */
import {
  conditionsDecided,
  createEvent,
  desiredPublished,
  type EventContext,
  type SluiceEvent,
} from '../../events/index.ts'
import { type Fold, type FoldChange, foldVersion } from '../actors/fold.ts'
import { canonicalJson } from '../base/canonical.ts'
import type { Clock } from '../base/clock.ts'
import type { EventLog, Position, Recorded, Snapshot } from '../log/index.ts'
import { subjectOf } from '../log/index.ts'
import { objectKey } from '../model/names.ts'
import type { DesiredDelta } from '../model/resources.ts'

export interface ReconcilerOptions {
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
  readonly onFault: (error: unknown) => void
}

/** A start reads the last snapshot and then at most about this many events. */
const defaultSnapshotEvery = 10_000

/** Most keys that a DesiredPublished event names. */
const maxNamedKeys = 32

const source = '/sluice/fold'

export class Reconciler {
  readonly #options: ReconcilerOptions
  readonly #stop = new AbortController()
  /** Status text by object key as the log has it, read while catching up. */
  readonly #recorded = new Map<string, string>()
  #isOpen = false
  /** Position of the last snapshot. */
  #snapshotAt = 0
  #isCaughtUp = false
  #flushScheduled = false
  #waiters: { position: number; resolve: () => void }[] = []
  #loop: Promise<void> = Promise.resolve()

  constructor(options: ReconcilerOptions) {
    this.#options = options
  }

  /** Folds what the log holds and goes on with what comes; resolves when it has caught up. */
  async start(from: Position): Promise<void> {
    const { log } = this.#options
    const last = await log.lastPosition()
    this.#snapshotAt = from - 1
    this.#loop = this.#run(log.tail(from, { signal: this.#stop.signal }))
    await this.folded(last)
    this.#isCaughtUp = true
  }

  /** Begins to publish: call it once the first listing of the sources has been folded. */
  open(): void {
    this.#isOpen = true
    this.#scheduleFlush()
  }

  /** Resolves once the event at a position is folded. */
  folded(position: number): Promise<void> {
    if (this.#options.fold.position >= position) return Promise.resolve()
    return new Promise((resolve) => this.#waiters.push({ position, resolve }))
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
      if (!this.#stop.signal.aborted) this.#options.onFault(error)
    }
  }

  #take(recorded: Recorded): void {
    const { fold, observe } = this.#options
    observe(recorded.event)
    if (!this.#isCaughtUp) this.#remember(recorded.event)
    fold.apply(recorded)
    const reached = this.#waiters.filter(({ position }) => position <= fold.position)
    if (reached.length > 0) {
      this.#waiters = this.#waiters.filter(({ position }) => position > fold.position)
      for (const { resolve } of reached) resolve()
    }
    this.#scheduleFlush()
  }

  #remember(event: SluiceEvent): void {
    if (event.type !== conditionsDecided.type) return
    this.#recorded.set(objectKey(event.data), canonicalJson(event.data.status))
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
    const { fold, log, publish } = this.#options
    const change = fold.takeChange()
    const { upserted, removed } = change.delta
    if (change.observed || upserted.length > 0 || removed.length > 0) publish(change.delta)
    const decisions = this.#decisions(change)
    const snapshot = this.#dueSnapshot()
    if (decisions.length > 0) {
      const appended = await log.append(decisions)
      if (!appended.ok) throw new Error(appended.problems.map(({ message }) => message).join('; '))
    }
    // Only now: a state whose decisions were lost would never decide them again.
    if (snapshot !== undefined) await log.saveSnapshot(snapshot)
  }

  #dueSnapshot(): Snapshot | undefined {
    const { fold, capture, snapshotEvery = defaultSnapshotEvery } = this.#options
    if (fold.position - this.#snapshotAt < snapshotEvery) return undefined
    this.#snapshotAt = fold.position
    return capture()
  }

  #decisions(change: FoldChange): SluiceEvent[] {
    const { upserted, removed } = change.delta
    const news = change.statuses.filter((status) => this.#isNews(status))
    if (news.length === 0 && upserted.length === 0 && removed.length === 0) return []
    const context = this.#context()
    const events: SluiceEvent[] = news.map((status) => this.#conditionsDecided(status, context))
    events.push(this.#desiredPublished(change.delta, context))
    return events
  }

  /** While catching up, what the log says already is not said again. */
  #isNews({ ref, status }: FoldChange['statuses'][number]): boolean {
    const key = objectKey(ref)
    const known = this.#recorded.get(key)
    this.#recorded.delete(key)
    return known !== canonicalJson(status)
  }

  #conditionsDecided(
    { ref, generation, status }: FoldChange['statuses'][number],
    context: EventContext,
  ): SluiceEvent {
    const { position } = this.#options.fold
    return createEvent(conditionsDecided, context, {
      id: `${context.epoch}:${objectKey(ref)}:${position}:${conditionsDecided.type}`,
      subject: subjectOf({ cluster: this.#options.cluster, ...ref }),
      data: { ...ref, generation, status },
    })
  }

  #desiredPublished({ sequence, upserted, removed }: DesiredDelta, context: EventContext) {
    const { fold, cluster } = this.#options
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

  #context(): EventContext {
    const time = new Date(this.#options.clock.now()).toISOString()
    return { source, time, epoch: 0, foldVersion }
  }
}
