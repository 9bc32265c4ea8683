/**
 * Who writes the log of a standalone gateway, and its manifests as the source. A log of its own is
 * written by the one process that has it. One on a NATS server is shared: every replica reads its
 * manifests and serves, and the one that holds the lease writes what is seen and decided.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as after } from 'node:timers/promises'
import type { SluiceEvent } from '../../events/index.ts'
import type { Fold } from '../actors/fold.ts'
import { type Lease, type LeaseOptions, openNatsLease, type Presence } from '../lease/index.ts'
import type { EventLog } from '../log/index.ts'
import { ManifestFiles, type ManifestFilesOptions } from '../watch/manifest-files.ts'
import type { ResourceIndex } from '../watch/resource-index.ts'
import { LogKeeper } from './append-queue.ts'
import { Leadership } from './leadership.ts'
import { watchReplicas } from './lost-proxies.ts'
import type { OpenedLog } from './open-log.ts'
import type { Reconciler } from './reconciler.ts'
import { robbedText } from './restore.ts'

export interface Writing {
  /** The epoch under which this process may write observations and decisions now. */
  epoch(): number | undefined
  /** Appends all or none of what is decided or fetched. */
  append(events: readonly SluiceEvent[]): Promise<unknown>
  /** Appends what this process's own proxy answers, when the log takes it. */
  post(events: readonly SluiceEvent[]): void
  /** Resolves once the log has a listing, and this process has told what it knows better. */
  start(): Promise<void>
  /** Digests of all secret values that the manifests hold at present. */
  secretDigests(): Set<string>
  /** Leaves the lease to others from now on: what they write is not read here any more. */
  yield(): void
  /** Reads the manifests no more. */
  endReading(): Promise<void>
  /** Gives up the lease, where there is one. */
  close(): Promise<void>
}

export interface WritingOptions {
  readonly opened: OpenedLog
  readonly fold: Fold
  /** What the log knows of the manifests. */
  readonly index: ResourceIndex
  /** Asked late: it appends through this. */
  readonly reconciler: () => Reconciler
  readonly files: Omit<ManifestFilesOptions, 'append' | 'digestKey'>
  readonly leaseDurationMs: number
  /** Name of this run of this replica, where several share the log. */
  readonly identity: string
  onNotice(text: string): void
  onFault(error: unknown): void
  /** The log will take nothing any more. */
  onEnd(error: unknown): void
}

export function openWriting(options: WritingOptions): Writing {
  return options.opened.shared === undefined ? soleWriting(options) : new SharedWriting(options)
}

async function appendAll(log: EventLog, events: readonly SluiceEvent[]): Promise<void> {
  const appended = await log.append(events)
  if (!appended.ok) throw new Error(appended.problems.map(({ message }) => message).join('; '))
}

function soleWriting({ opened, index, files: options, onFault }: WritingOptions): Writing {
  const { log, digestKey } = opened
  const append = (events: readonly SluiceEvent[]) => appendAll(log, events)
  const files = new ManifestFiles({ ...options, digestKey, append })
  return {
    epoch: () => 0,
    append,
    post: (events) => void log.append(events).catch(onFault),
    start: () => files.lead(index.copy(), 0),
    secretDigests: () => files.secretDigests(),
    yield: () => undefined,
    endReading: () => files.close(),
    close: async () => undefined,
  }
}

/** How long a start waits for the lease before it serves what the log says. */
const firstTurnMs = 2_000
const lookMs = 20

/** Opens the lease beside a shared log, under a name that no other run has. */
export function openSharedLease(
  { servers, replica }: NonNullable<OpenedLog['shared']>,
  common: Pick<LeaseOptions, 'durationMs' | 'onProblem'>,
) {
  return (options: Omit<LeaseOptions, 'durationMs' | 'onProblem' | 'identity'>): Lease =>
    openNatsLease({
      ...common,
      ...options,
      servers,
      identity: `${replica}_${randomUUID().slice(0, 8)}`,
      // Only one process at a time has the lock of these manifests on this machine.
      isGone: (holder) => holder.startsWith(`${replica}_`),
    })
}

/** The one that writes is found by a lease beside the stream. */
class SharedWriting implements Writing {
  readonly #options: WritingOptions
  readonly #keeper: LogKeeper
  readonly #files: ManifestFiles
  readonly #leadership: Leadership
  readonly #lease: Lease
  readonly #presence: Presence | undefined
  readonly #prepared = Promise.withResolvers<void>()
  #isClosed = false
  /** Up to where somebody else has removed events from the log, as it was told last. */
  #robbedUpTo = 0

  constructor(options: WritingOptions) {
    const { opened, fold, index, onNotice, onEnd } = options
    const { log, digestKey, shared = { servers: '', replica: '' } } = opened
    this.#options = options
    this.#keeper = new LogKeeper({
      log,
      metrics: { add: () => undefined },
      onProblem: (text) => {
        onNotice(`the log does not take events: ${text}`)
        void this.#lease.resign('the log does not take events')
      },
      onRecovered: () => onNotice('the log takes events again'),
      onLost: onEnd,
      onRobbed: (upTo) => this.#mendLog(upTo),
      isShared: true,
    })
    this.#files = new ManifestFiles({
      ...options.files,
      digestKey,
      append: async (events) => {
        // A lease that was lost meanwhile would make these events count for nothing.
        if (this.#lease.epoch() === undefined) throw new Error('the lease is lost')
        await this.#keeper.append('source', events)
      },
    })
    const { replica, servers } = shared
    const { leaseDurationMs: durationMs } = options
    this.#lease = openSharedLease(shared, { durationMs, onProblem: onNotice })({
      highestEpoch: () => fold.epoch,
      isFit: () => this.#keeper.problem === undefined && !this.#isClosed,
      onAcquired: (epoch) => this.#leadership.acquired(epoch),
      onLost: (reason) => this.#leadership.lost(reason),
    })
    this.#presence = watchReplicas({
      servers,
      identity: options.identity,
      durationMs: options.leaseDurationMs,
      fold,
      cluster: 'local',
      epoch: () => this.#leadership.logEpoch(),
      keeper: this.#keeper,
      onNotice,
    })
    this.#leadership = new Leadership({
      isShared: true,
      replica,
      keyName: digestKey.name,
      keeper: this.#keeper,
      fold,
      index,
      source: this.#files,
      reconciler: options.reconciler,
      lease: () => this.#lease,
      onWriting: () => this.#prepared.resolve(),
      onStopped: () => undefined,
      say: (_severity, text) => onNotice(text),
    })
  }

  /** Nothing is lost but history: this process still has the state that came of what is gone. */
  #mendLog(upTo: number): void {
    const { fold, reconciler, onNotice } = this.#options
    if (upTo !== this.#robbedUpTo)
      onNotice(`${robbedText(upTo)}: history is lost, and nothing else`)
    this.#robbedUpTo = upTo
    if (fold.position >= upTo) reconciler().mend()
  }

  epoch(): number | undefined {
    return this.#leadership.logEpoch()
  }

  append(events: readonly SluiceEvent[]): Promise<unknown> {
    return this.#keeper.append('decision', events)
  }

  post(events: readonly SluiceEvent[]): void {
    this.#keeper.post('delivery', events)
  }

  async start(): Promise<void> {
    this.#files.follow()
    await this.#files.settled()
    this.#lease.start()
    this.#presence?.start()
    await Promise.race([this.#prepared.promise, after(firstTurnMs, undefined, { ref: false })])
    while (!this.#options.index.isListed && !this.#isClosed) await after(lookMs)
  }

  secretDigests(): Set<string> {
    return this.#files.secretDigests()
  }

  yield(): void {
    void this.#lease.close()
  }

  endReading(): Promise<void> {
    return this.#files.close()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#keeper.settled(1_000)
    await this.#presence?.close()
    await this.#lease.close()
    this.#keeper.close()
  }
}
