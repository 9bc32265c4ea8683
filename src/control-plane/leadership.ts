/**
 * What only one replica does: append observations and decisions, and in a cluster write statuses and
 * make the default class. On a shared log it begins with a LeaseAcquired, and with the state as of that event: whatever
 * a holder before it still appends counts for nobody.
 */
import {
  createEvent,
  type LeaseData,
  leaseAcquired,
  leaseLost,
  type SluiceEvent,
} from '../../events/index.ts'
import type { Fold } from '../actors/fold.ts'
import { systemClock } from '../base/clock.ts'
import type { Lease } from '../lease/index.ts'
import { subjectOf } from '../log/index.ts'
import type { ResourceIndex } from '../watch/resource-index.ts'
import type { LogKeeper } from './append-queue.ts'
import { clusterName } from './controller/cluster-name.ts'
import type { Reconciler } from './reconciler.ts'

/** A source that every replica has, and one appends from. */
export interface LedSource {
  /** Appends from now on: first every difference to what the log knows. */
  lead(index: ResourceIndex, epoch: number): Promise<void>
  /** Appends no more. */
  follow(): void
}

export interface LeadershipOptions {
  /** Is the log shared, so that only the holder of the lease may write it? */
  readonly isShared: boolean
  readonly replica: string
  /** Of the key of secret digests, where every replica has to be given it. */
  readonly keyName?: string
  readonly keeper: Pick<LogKeeper, 'append' | 'lastPosition'>
  readonly fold: Fold
  /** What the log knows of the source. */
  readonly index: ResourceIndex
  readonly source: LedSource
  readonly reconciler: () => Reconciler
  /** Asked late: the lease is made with callbacks of this. */
  readonly lease: () => Lease
  /** Statuses may be written from now on; everything decided is folded. */
  readonly onWriting: () => void
  readonly onStopped: () => void
  readonly say: (severity: 'info' | 'warn', text: string) => void
}

export class Leadership {
  readonly #options: LeadershipOptions
  /** The lease epoch for which the log was prepared. */
  #prepared: number | undefined
  /** The lease epoch for which everything that is listed is in the log, and folded. */
  #listed: number | undefined
  /** Counts acquisitions and losses, so that a preparation that was overtaken notices. */
  #turn = 0
  /** A log of its own knows everything that is listed. */
  readonly #own = Promise.withResolvers<void>()

  constructor(options: LeadershipOptions) {
    this.#options = options
  }

  /** The epoch under which the log may be written now. */
  logEpoch(): number | undefined {
    return this.#options.isShared ? this.#held(this.#prepared) : 0
  }

  /**
   * The epoch under which the cluster may be written now: later than the log, since a status that is
   * decided from half of the objects would take away what is right.
   */
  writingEpoch(): number | undefined {
    return this.#held(this.#listed)
  }

  #held(epoch: number | undefined): number | undefined {
    return epoch === this.#options.lease().epoch() ? epoch : undefined
  }

  /** Begins with a log of its own: everything is listed. */
  async ownLog(): Promise<void> {
    const { source, fold, reconciler } = this.#options
    await source.lead(this.#copyOfIndex(), fold.epoch)
    await this.#folded()
    reconciler().speak()
    this.#own.resolve()
  }

  acquired(epoch: number): void {
    const turn = ++this.#turn
    this.#options.say('info', `holding the lease (epoch ${epoch})`)
    this.#prepare(epoch, turn).catch((error) => this.#giveUp(turn, error))
  }

  lost(reason: string): void {
    const { isShared, source, onStopped, say } = this.#options
    this.#turn++
    const epoch = this.#prepared
    this.#prepared = undefined
    this.#listed = undefined
    if (isShared) source.follow()
    onStopped()
    say('info', `no longer holding the lease: ${reason}`)
    if (epoch !== undefined && isShared) this.#tell(leaseLost, epoch)
  }

  async #prepare(epoch: number, turn: number): Promise<void> {
    const { isShared, source, fold, reconciler, lease, onWriting } = this.#options
    if (isShared) {
      const position = await this.#options.keeper.append('lease', [
        this.#event(leaseAcquired, epoch),
      ])
      await reconciler().folded(position)
      if (turn !== this.#turn) return
      if (fold.epoch !== epoch) {
        await lease().resign(`the log knows epoch ${fold.epoch}`)
        return
      }
      this.#prepared = epoch
      await source.lead(this.#copyOfIndex(), epoch)
      await this.#folded()
    } else {
      await this.#own.promise
    }
    if (turn !== this.#turn) return
    this.#prepared = epoch
    this.#listed = epoch
    reconciler().speak()
    onWriting()
  }

  async #giveUp(turn: number, error: unknown): Promise<void> {
    if (turn !== this.#turn) return
    const text = error instanceof Error ? error.message : String(error)
    await this.#options.lease().resign(`the log could not be prepared: ${text}`)
  }

  /** The source is ahead of the fold by what it has appended and the fold has not read. */
  #copyOfIndex(): ResourceIndex {
    return this.#options.index.copy()
  }

  async #folded(): Promise<void> {
    const { keeper, reconciler } = this.#options
    await reconciler().folded(await keeper.lastPosition())
  }

  #tell(definition: typeof leaseLost, epoch: number): void {
    const event = this.#event(definition, epoch)
    this.#options.keeper.append('lease', [event]).catch(() => undefined)
  }

  #event(definition: typeof leaseAcquired | typeof leaseLost, epoch: number): SluiceEvent {
    const { replica: holder, keyName } = this.#options
    const time = new Date(systemClock.now()).toISOString()
    const data: LeaseData = { holder, epoch }
    const content = {
      id: `${epoch}:${holder}:${definition.type}`,
      subject: subjectOf({
        cluster: clusterName,
        kind: 'Lease',
        namespace: '',
        name: 'controller',
      }),
      data,
    }
    const context = { source: '/sluice/lease', time, epoch }
    return definition.type === leaseAcquired.type
      ? createEvent(leaseAcquired, context, {
          ...content,
          data: { ...data, ...(keyName !== undefined && { keyName }) },
        })
      : createEvent(leaseLost, context, content)
  }
}
