/**
 * The control plane, wherever it runs. Every stage in order, with what it reads and what it writes:
 *
 *   source      reads manifests or a cluster  writes observations into the log, secret values to `secrets`
 *   log         a file, memory or NATS        holds the events that everything below lives on
 *   fold        reads the log                 writes desired state and statuses, in memory
 *   reconciler  reads log and fold            writes published changes; decisions and snapshots into the log
 *   secrets     reads published changes       writes the values beside them that they refer to
 *   effects     reads the fold                writes fetched key sets and timers that are due into the log
 *   channel     reads published changes       writes them to proxies, in this process or over gRPC
 *   recorder    reads what proxies answer     writes it into the log
 *   sinks       read decisions                write statuses and deployments; only in a cluster
 *
 * Source, log (with the lease of replicas that share it) and channel are the parts that are swapped:
 * `standalone.ts` chooses those of `sluice run`, `kubernetes.ts` those of `sluice controller`.
 *
 * ```
 *   openControlPlane ── state restored ──► read ── the log's end is reached ──► list ── the log has
 *   a complete listing ──► open: proxies are served
 *   any ── the log has an event of a newer version ──► `outdated`: nothing more is read
 *   any ── the log cannot be read or written any more ──► `ended`
 *   what was published stays served after either
 * ```
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as after } from 'node:timers/promises'
import {
  leaseAcquired,
  type ResourceEvent,
  type SluiceEvent,
  UnknownEventTypeError,
} from '../../events/index.ts'
import { systemClock } from '../base/clock.ts'
import type { SecretStore } from '../effects/secret-store.ts'
import type { Heartbeat, Lease } from '../lease/index.ts'
import { clusterName, LogError, type Position, type Recorded } from '../log/index.ts'
import type { DesiredDelta } from '../model/resources.ts'
import { DeliveryRecorder } from '../xds/delivery-recorder.ts'
import { apiBinding } from './api-binding.ts'
import { AppendQueue } from './append-queue.ts'
import { DigestCheck } from './digest-check.ts'
import { Effects } from './effects.ts'
import { openHeartbeat, reassertConnection } from './heartbeat.ts'
import { Leadership } from './leadership.ts'
import type { ControlPlaneOptions, Parts, Plane } from './parts.ts'
import { Reconciler } from './reconciler.ts'
import { restoreOrReset } from './restore.ts'
import { openSecretStore, secretDigests } from './secrets.ts'
import { captureState, type RestoredState } from './stored-state.ts'

/**
 * Restores the state that the log has. The control plane closes the log when it stops, and so does
 * this function if it throws.
 */
export async function openControlPlane<Chosen extends Parts>(
  options: ControlPlaneOptions<Chosen>,
): Promise<ControlPlane<Chosen>> {
  const { log, notify } = options
  for (const notice of log.notices) notify('warn', notice)
  try {
    return new ControlPlane(options, await restoreOrReset(options, newIdentity(options)))
  } catch (error) {
    await log.close()
    throw error
  }
}

/** Names one run of a replica; never used twice. */
function newIdentity({ replica = clusterName }: { readonly replica?: string }): string {
  return `${replica}_${randomUUID().slice(0, 8)}`
}

export class ControlPlane<Chosen extends Parts> implements Plane {
  /** Resolves with the reason once this log can be read or written no more. */
  readonly ended: Promise<unknown>
  /**
   * Resolves once the log has an event of a newer version. A log that is lost after that, such as
   * one that is deleted for a downgrade, still ends the control plane.
   */
  readonly outdated: Promise<UnknownEventTypeError>
  readonly parts: Chosen
  readonly writer: AppendQueue
  readonly recorder: DeliveryRecorder
  readonly effects: Effects
  readonly fold: RestoredState['fold']
  readonly index: RestoredState['index']
  readonly sourceOptions: Plane['sourceOptions']
  readonly #options: ControlPlaneOptions<Chosen>
  readonly #identity: string
  readonly #from: Position
  readonly #secrets: SecretStore
  readonly #digests: DigestCheck
  readonly #reconciler: Reconciler
  readonly #lease: Lease | undefined
  readonly #leadership: Leadership
  /** Undefined if no other replica reads the log. */
  readonly #heartbeat: Heartbeat | undefined
  readonly #end: (reason: unknown) => void
  readonly #outdate: (error: UnknownEventTypeError) => void
  readonly #listed = Promise.withResolvers<void>()
  #foldBegan = 0
  #isSecretGone = false
  /** Position up to which somebody else has removed events, as last reported. */
  #truncatedUpTo = 0
  #isOpen = false
  #isClosed = false

  constructor(options: ControlPlaneOptions<Chosen>, { fold, index, from }: RestoredState) {
    const { promise, resolve } = Promise.withResolvers<unknown>()
    this.ended = promise
    this.#end = resolve
    const outdated = Promise.withResolvers<UnknownEventTypeError>()
    this.outdated = outdated.promise
    this.#outdate = outdated.resolve
    this.#options = options
    this.#identity = newIdentity(options)
    this.fold = fold
    this.index = index
    this.#from = from
    this.writer = this.#createWriter()
    this.recorder = new DeliveryRecorder({
      clock: systemClock,
      cluster: clusterName,
      run: randomUUID(),
      ...(options.replica !== undefined && { replica: this.#identity }),
      append: (events) => this.writer.enqueue('delivery', events),
    })
    this.#secrets = openSecretStore(options.log.digestKey, (late) =>
      this.parts.channel.publish(late),
    )
    this.#digests = new DigestCheck({
      ...options,
      fold,
      replica: this.#identity,
      append: (events) => this.writer.enqueue('digest', events),
    })
    this.#reconciler = this.#createReconciler()
    this.sourceOptions = {
      ...apiBinding,
      clock: systemClock,
      cluster: clusterName,
      digestKey: options.log.digestKey,
      keepSecret: (digest, value) => this.#secrets.keep(digest, value),
      onChange: (events) => this.#appendObserved(events),
    }
    this.parts = options.parts(this)
    this.#lease = this.#createLease()
    this.#leadership = this.#createLeadership()
    const writing = {
      fold,
      writer: this.writer,
      epoch: () => this.logEpoch(),
      onNotice: (text: string) => options.notify('warn', text),
    }
    this.effects = new Effects({
      ...writing,
      secrets: this.#secrets,
      clusterDomain: options.clusterDomain,
    })
    this.#heartbeat = openHeartbeat({
      ...writing,
      servers: options.log.shared?.servers,
      identity: this.#identity,
      durationMs: options.leaseDurationMs,
    })
  }

  /** Do other replicas read and write the same log? */
  get isShared(): boolean {
    return this.#options.log.shared !== undefined
  }

  logEpoch(): number | undefined {
    return this.#leadership.logEpoch()
  }

  isWriting(): boolean {
    return this.#leadership.writingEpoch() !== undefined
  }

  /** Reads the log to its end. Rejects if the log cannot be read so far. */
  async read(): Promise<void> {
    await this.#reconciler.start(this.#from).catch((error) => {
      this.#endReading(error)
      throw error
    })
    this.#digests.begin()
  }

  /** Begins to observe. Resolves once the log has a complete listing, and it is folded. */
  async list(): Promise<void> {
    const { source } = this.parts
    const isObserved = source.start()
    this.#lease?.start()
    this.#heartbeat?.start()
    await isObserved
    if (!this.isShared) {
      await this.#leadership.leadOwnLog()
      return
    }
    const { leaseWaitMs = 0 } = this.#options
    await Promise.race([this.#leadership.led, after(leaseWaitMs, undefined, { ref: false })])
    if (!this.index.isListed) await this.#listed.promise
  }

  /** Begins to serve proxies. */
  open(): void {
    if (this.#isClosed) return
    this.#isOpen = true
    this.#reconciler.open()
  }

  /** Resolves once everything is folded that is in the log, or about to be. */
  async caughtUp(): Promise<void> {
    await this.writer.settled(1_000)
    await this.#reconciler.folded(await this.writer.lastPosition())
  }

  /** Leaves the lease to others from now on. */
  stepDown(): void {
    void this.#lease?.close()
  }

  /** Ends all observing, and what is done about it outside. */
  async endObserving(): Promise<void> {
    this.#isClosed = true
    await this.parts.source.close()
    await this.parts.sinks?.close()
    await this.effects.close()
  }

  /** Stores the state, gives up the lease and lets proxies go to another replica. */
  async stop(): Promise<void> {
    await this.endObserving()
    await this.parts.channel.close?.()
    this.recorder.close()
    await this.writer.settled(1_000)
    await this.#reconciler.stop()
    const { log, close } = this.#options.log
    if (this.logEpoch() !== undefined && this.writer.problem === undefined) {
      await log.saveSnapshot(captureState(this.fold, this.index)).catch(() => undefined)
    }
    await this.#heartbeat?.close()
    await this.#lease?.close()
    this.writer.close()
    await close().catch(() => undefined)
  }

  #createWriter(): AppendQueue {
    const { log, metrics, notify } = this.#options
    return new AppendQueue({
      log: log.log,
      metrics,
      onProblem: (text) => {
        notify('error', `the log does not take events: ${text}`)
        if (this.isShared) void this.#lease?.resign('the log does not take events')
      },
      onRecovered: () => notify('info', 'the log takes events again'),
      onLost: this.#end,
      onTruncated: (upTo) => this.#mendLog(upTo),
      isShared: this.isShared,
    })
  }

  /** Only history is lost: this replica still has the state that came of what is gone. */
  #mendLog(upTo: number): void {
    const { metrics, notify } = this.#options
    if (upTo !== this.#truncatedUpTo) {
      metrics.add('log_losses_total')
      notify(
        'warn',
        `somebody has removed events up to position ${upTo} from the log: history is lost, and nothing else`,
      )
    }
    this.#truncatedUpTo = upTo
    if (this.fold.position >= upTo) this.#reconciler.mend()
  }

  #createLease(): Lease | undefined {
    return this.#options.lease?.({
      identity: this.#identity,
      highestEpoch: () => this.fold.epoch,
      isFit: () =>
        this.parts.source.isListed && this.writer.problem === undefined && !this.#isClosed,
      // A shared log without a listing: its own replicas would wait for a holder on another log.
      needsIt: () => this.isShared && !this.index.isListed,
      mayYield: () => this.#isOpen,
      onAcquired: (epoch) => this.#leadership.acquired(epoch),
      onLost: (reason) => this.#leadership.lost(reason),
    })
  }

  #createLeadership(): Leadership {
    const { replica = '', keyName, notify } = this.#options
    const { source, sinks } = this.parts
    return new Leadership({
      isShared: this.isShared,
      replica,
      ...(keyName !== undefined && { keyName }),
      writer: this.writer,
      fold: this.fold,
      index: this.index,
      source,
      reconciler: this.#reconciler,
      lease: this.#lease,
      onWriting: () => sinks?.lead(),
      onStopped: () => sinks?.follow(),
      notify,
    })
  }

  #createReconciler(): Reconciler {
    return new Reconciler({
      log: this.#options.log.log,
      fold: this.fold,
      cluster: clusterName,
      clock: systemClock,
      epoch: () => this.logEpoch(),
      append: (events) => this.writer.append('decision', events),
      observe: (event) => this.#read(event),
      onFolded: (recorded) => this.#folded(recorded),
      publish: (delta) => this.#publish(delta),
      onDecided: (change) => {
        this.parts.sinks?.decided(change)
        this.effects.update()
      },
      capture: () => captureState(this.fold, this.index),
      onSnapshot: (position) => this.#purge(position),
      onFault: (error) => this.#fault(error),
      onEnd: (error) => this.#endReading(error),
    })
  }

  #endReading(error: unknown): void {
    if (error instanceof UnknownEventTypeError) this.#outdate(error)
    else this.#end(error)
  }

  async #appendObserved(events: readonly ResourceEvent[]): Promise<void> {
    // Events of a replica that has lost the lease meanwhile would be ignored.
    if (this.isShared && this.#lease?.epoch() === undefined) throw new Error('the lease is lost')
    await this.writer.append('source', events)
    this.#options.notify('debug', `observed: ${events.length} events`)
  }

  #read(event: SluiceEvent): void {
    this.index.apply(event)
    this.#foldBegan = performance.now()
    this.#isSecretGone ||= 'kind' in event.data && event.data.kind === 'Secret'
    if (event.type === leaseAcquired.type) this.#compareKeys(event.data)
  }

  /** Digests under another key mean nothing here: the values that they name cannot be served. */
  #compareKeys({ holder, keyName }: { readonly holder: string; readonly keyName?: string }): void {
    const { log, notify } = this.#options
    if (keyName === undefined || keyName === log.digestKey.name) return
    const text = `${holder}, which writes the log, has another key of secret digests: what it says of Secrets is not served here`
    notify('warn', `${text}; give all replicas the same file (SLUICE_DIGEST_KEY_FILE)`)
  }

  #folded(recorded: Recorded): void {
    this.#options.metrics.add('fold_seconds', (performance.now() - this.#foldBegan) / 1_000)
    if (this.isShared) this.#digests.folded(recorded)
    reassertConnection(recorded.event, this.recorder)
    this.parts.sinks?.folded(recorded.event)
    if (this.index.isListed) this.#listed.resolve()
  }

  #publish(delta: DesiredDelta): void {
    const { metrics, notify } = this.#options
    const began = performance.now()
    this.parts.channel.publish(this.#secrets.join(delta))
    const { sequence, upserted, removed } = delta
    const counts = `${upserted.length} resources changed, ${removed.length} removed`
    notify('debug', `published position ${sequence}: ${counts}`)
    metrics.add('publish_seconds', (performance.now() - began) / 1_000)
    if (!this.#isSecretGone) return
    this.#isSecretGone = false
    this.#secrets.retain(this.parts.source.secretDigests().union(secretDigests(this.fold)))
  }

  #purge(snapshotAt: Position): void {
    const { log, logRetention = 0 } = this.#options
    const upTo = snapshotAt - logRetention
    if (logRetention === 0 || upTo < 1) return
    log.log.purgeUpTo(upTo as Position).catch((error) => this.writer.fail(error))
  }

  /** The writer reports what is about the log. */
  #fault(error: unknown): void {
    if (error instanceof LogError || this.writer.problem !== undefined) this.writer.fail(error)
    else this.#options.onFault(error)
  }
}

/** An event of a newer version ends the reading of a replica that is not upgraded yet. */
export const tooNewText = ({ message }: UnknownEventTypeError): string =>
  `${message}. Serving the last configuration; upgrade this replica to resume updates.`
