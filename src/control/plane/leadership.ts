/**
 * Leadership of one replica. Only the leader appends observations and decisions, and in a cluster writes
 * statuses and deployments. On a shared log, leadership begins with a LeaseAcquired event, after which events
 * of an earlier holder are ignored.
 */
import { leaseAcquired, leaseLost } from '../../../events/index.ts'
import type { Fold } from '../actors/fold.ts'
import type { Lease } from '../lease/lease.ts'
import { newEvent } from '../log/index.ts'
import type { ResourceIndex } from '../watch/resource-index.ts'
import type { AppendQueue } from './append-queue.ts'
import type { ControlPlaneOptions, ResourceSource } from './parts.ts'
import type { Reconciler } from './reconciler.ts'

interface LeadershipOptions extends Pick<ControlPlaneOptions, 'keyName' | 'notify'> {
  /** If the log is shared, only the holder of the lease may write it. */
  readonly isShared: boolean
  readonly replica: string
  readonly writer: Pick<AppendQueue, 'append' | 'lastPosition'>
  readonly fold: Fold
  /** The objects of the source in the log. */
  readonly index: ResourceIndex
  readonly source: Pick<ResourceSource, 'lead' | 'follow'>
  readonly reconciler: Pick<Reconciler, 'folded' | 'appendDecisions'>
  readonly lease: Pick<Lease, 'epoch' | 'resign'> | undefined
  /** Called when the sinks may begin to write. All decisions are folded by then. */
  readonly onWriting: () => void
  readonly onStopped: () => void
}

export class Leadership {
  readonly #options: LeadershipOptions
  /** The lease epoch for which the log was prepared. */
  #prepared: number | undefined
  /** The lease epoch for which a complete listing is in the log and folded. */
  #listed: number | undefined
  /** Incremented when the lease is acquired or lost. Stale preparations compare it and give up. */
  #generation = 0
  /** Resolved once a complete listing is in the log, if the log is not shared. */
  readonly #ownLog = Promise.withResolvers<void>()
  readonly #led = Promise.withResolvers<void>()
  /** Resolves once this replica writes for the first time. */
  readonly led = this.#led.promise

  constructor(options: LeadershipOptions) {
    this.#options = options
  }

  /** The epoch under which this replica may write the log now; undefined if it may not. */
  logEpoch(): number | undefined {
    return this.#options.isShared ? this.#ifHeld(this.#prepared) : 0
  }

  /**
   * The epoch under which the sinks may write now; undefined if they may not. It is set later than that of
   * the log, since statuses from an incomplete listing would be wrong.
   */
  writingEpoch(): number | undefined {
    return this.#ifHeld(this.#listed)
  }

  #ifHeld(epoch: number | undefined): number | undefined {
    return epoch === this.#options.lease?.epoch() ? epoch : undefined
  }

  /** Appends a complete listing to a log that no other replica writes. */
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

  /**
   * Lists everything. The source gets a copy of the index, to which it adds events before they are folded.
   */
  async #list(epoch: number): Promise<void> {
    const { source, index, writer, reconciler } = this.#options
    await source.lead(index.copy(), epoch)
    await reconciler.folded(await writer.lastPosition())
  }

  #append(definition: typeof leaseAcquired | typeof leaseLost, epoch: number): Promise<number> {
    const { replica: holder, keyName, writer } = this.#options
    const isNamed = definition === leaseAcquired && keyName !== undefined
    const data = { holder, epoch, ...(isNamed && { keyName }) }
    const id = `${epoch}:${holder}:${definition.type}`
    const about = { kind: 'Lease', name: 'controller' }
    const event = newEvent(definition, { source: '/sluice/lease', epoch }, about, { id, data })
    return writer.append('lease', [event])
  }
}
