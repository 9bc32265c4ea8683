/**
 * What only one replica does: append observations and decisions, and in a cluster write statuses and
 * deployments. On a shared log it begins with a LeaseAcquired, and with the state as of that event:
 * everybody ignores what an earlier holder appends after it.
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
import { clusterName, subjectOf } from '../log/index.ts'
import type { ResourceIndex } from '../watch/resource-index.ts'
import type { AppendQueue } from './append-queue.ts'
import type { ControlPlaneOptions, Source } from './parts.ts'
import type { Reconciler } from './reconciler.ts'

interface LeadershipOptions extends Pick<ControlPlaneOptions, 'keyName' | 'notify'> {
  /** If the log is shared, only the holder of the lease may write it. */
  readonly isShared: boolean
  readonly replica: string
  readonly writer: Pick<AppendQueue, 'append' | 'lastPosition'>
  readonly fold: Fold
  /** What the log knows of the source. */
  readonly index: ResourceIndex
  readonly source: Pick<Source, 'lead' | 'follow'>
  readonly reconciler: Pick<Reconciler, 'folded' | 'appendDecisions'>
  readonly lease: Pick<Lease, 'epoch' | 'resign'> | undefined
  /** The sinks may write from now on; everything decided is folded. */
  readonly onWriting: () => void
  readonly onStopped: () => void
}

export class Leadership {
  readonly #options: LeadershipOptions
  /** The lease epoch for which the log was prepared. */
  #prepared: number | undefined
  /** The lease epoch for which everything that is listed is in the log, and folded. */
  #listed: number | undefined
  /** Counts acquisitions and losses. Stale preparations compare it and give up. */
  #generation = 0
  /** Resolved once a log of this replica's own has everything that is listed. */
  readonly #ownLog = Promise.withResolvers<void>()
  readonly #led = Promise.withResolvers<void>()
  /** Resolves once this replica writes for the first time. */
  readonly led = this.#led.promise

  constructor(options: LeadershipOptions) {
    this.#options = options
  }

  /** The epoch under which the log may be written now. */
  logEpoch(): number | undefined {
    return this.#options.isShared ? this.#ifHeld(this.#prepared) : 0
  }

  /**
   * The epoch under which the sinks may write now: later than the log, since a status that is
   * decided from half of the objects would take away what is right.
   */
  writingEpoch(): number | undefined {
    return this.#ifHeld(this.#listed)
  }

  #ifHeld(epoch: number | undefined): number | undefined {
    return epoch === this.#options.lease?.epoch() ? epoch : undefined
  }

  /** Appends what is listed to a log that no other replica writes. */
  async leadOwnLog(): Promise<void> {
    await this.#list(this.#options.fold.epoch)
    this.#options.reconciler.appendDecisions()
    this.#ownLog.resolve()
  }

  acquired(epoch: number): void {
    const generation = ++this.#generation
    this.#options.notify('info', `holding the lease (epoch ${epoch})`)
    this.#prepare(epoch, generation).catch((error) => this.#giveUp(generation, error))
  }

  lost(reason: string): void {
    const { isShared, source, onStopped, notify } = this.#options
    this.#generation++
    const epoch = this.#prepared
    this.#prepared = undefined
    this.#listed = undefined
    if (isShared) source.follow()
    onStopped()
    notify('info', `no longer holding the lease: ${reason}`)
    if (epoch !== undefined && isShared) this.#append(leaseLost, epoch).catch(() => undefined)
  }

  async #prepare(epoch: number, generation: number): Promise<void> {
    const { isShared, fold, reconciler, lease, onWriting } = this.#options
    if (isShared) {
      await reconciler.folded(await this.#append(leaseAcquired, epoch))
      if (generation !== this.#generation) return
      if (fold.epoch !== epoch) {
        await lease?.resign(`the log knows epoch ${fold.epoch}`)
        return
      }
      this.#prepared = epoch
      await this.#list(epoch)
    } else {
      await this.#ownLog.promise
    }
    if (generation !== this.#generation) return
    this.#prepared = epoch
    this.#listed = epoch
    reconciler.appendDecisions()
    onWriting()
    this.#led.resolve()
  }

  async #giveUp(generation: number, error: unknown): Promise<void> {
    if (generation !== this.#generation) return
    const text = error instanceof Error ? error.message : String(error)
    await this.#options.lease?.resign(`the log could not be prepared: ${text}`)
  }

  /** The source gets a copy: it is ahead of the fold by what it appends until that is folded. */
  async #list(epoch: number): Promise<void> {
    const { source, index, writer, reconciler } = this.#options
    await source.lead(index.copy(), epoch)
    await reconciler.folded(await writer.lastPosition())
  }

  #append(definition: typeof leaseAcquired | typeof leaseLost, epoch: number): Promise<number> {
    return this.#options.writer.append('lease', [this.#event(definition, epoch)])
  }

  #event(definition: typeof leaseAcquired | typeof leaseLost, epoch: number): SluiceEvent {
    const { replica: holder, keyName } = this.#options
    const data: LeaseData = { holder, epoch }
    const ref = { kind: 'Lease', namespace: '', name: 'controller' }
    const content = {
      id: `${epoch}:${holder}:${definition.type}`,
      subject: subjectOf({ cluster: clusterName, ...ref }),
      data,
    }
    const time = new Date(systemClock.now()).toISOString()
    const context = { source: '/sluice/lease', time, epoch }
    return definition.type === leaseAcquired.type
      ? createEvent(leaseAcquired, context, {
          ...content,
          data: { ...data, ...(keyName !== undefined && { keyName }) },
        })
      : createEvent(leaseLost, context, content)
  }
}
