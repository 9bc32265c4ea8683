/**
 * The control plane, wherever it runs. Every stage in order, with what it reads and what it writes:
 *
 *   source      reads manifests or a cluster  writes observations into the log, secret values to `secrets`
 *   log         a file, memory or NATS        holds the events that all stages below derive from
 *   fold        reads the log                 writes desired state and statuses, in memory
 *   reconciler  reads log and fold            writes published changes; decisions and snapshots into the log
 *   secrets     reads published changes       adds the secret values that the changes refer to
 *   effects     reads the fold                writes fetched key sets and timers that are due into the log
 *   channel     reads published changes       writes them to proxies, in this process or over gRPC
 *   recorder    reads acknowledgements       writes it into the log
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
 *   after either, the last configuration stays served
 * ```
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as after } from 'node:timers/promises'
import {
  leaseAcquired,
  proxyDisconnected,
  type ResourceEvent,
  type SluiceEvent,
  UnknownEventTypeError,
} from '../../../events/index.ts'
import type { DesiredDelta } from '../../ground/model/resources.ts'
import type { SecretStore } from '../effects/secret-store.ts'
import type { Heartbeat } from '../lease/heartbeat.ts'
import type { Lease } from '../lease/lease.ts'
import { LogError, type Position, type Recorded } from '../log/index.ts'
import { DeliveryRecorder } from '../xds/delivery-recorder.ts'
import { apiBinding } from './api-binding.ts'
import { AppendQueue } from './append-queue.ts'
import { DigestCheck } from './digest-check.ts'
import { Effects } from './effects.ts'
import { openHeartbeat } from './heartbeat.ts'
import { Leadership } from './leadership.ts'
import type { OpenedLog } from './open-log.ts'
import { warnOfOtherKey } from './other-key.ts'
import type { ControlPlaneOptions, ControlPlaneParts, StartedPlane } from './parts.ts'
import { Reconciler } from './reconciler.ts'
import { restoreOrReset } from './restore.ts'
import { Candidate } from './rollout/candidate.ts'
import { openSecretStore, SecretCollector } from './secrets.ts'
import { captureState, type RestoredState, saveState } from './stored-state.ts'

/**
 * Opens a control plane with the state that the log has. The control plane closes the log when it stops; if
 * this function throws, it closes the log itself.
 */
export async function openControlPlane<Chosen extends ControlPlaneParts>(
  options: ControlPlaneOptions<Chosen>,
): Promise<ControlPlane<Chosen>> {
  const { log, notify } = options
  for (const notice of log.notices) notify('warn', notice)
  log.watch?.(notify)
  try {
    return new ControlPlane(options, await restoreOrReset(options, newIdentity(options)))
  } catch (error) {
    await log.close()
    throw error
  }
}

/** Creates a unique name for one run of a replica. */
const newIdentity = ({ replica = 'local' }: { readonly replica?: string }): string =>
  `${replica}_${randomUUID().slice(0, 8)}`

export class ControlPlane<Chosen extends ControlPlaneParts> implements StartedPlane {
  readonly #ended = Promise.withResolvers<unknown>()
  /** Resolves with the reason once this log can no longer be read or written. */
  readonly ended = this.#ended.promise
  readonly #outdated = Promise.withResolvers<UnknownEventTypeError>()
  /**
   * Resolves once the log has an event of a newer version. `ended` still resolves if that log is lost later,
   * for example because it is deleted for a downgrade.
   */
  readonly outdated = this.#outdated.promise
  readonly parts: Chosen
  readonly writer: AppendQueue
  readonly recorder: DeliveryRecorder
  readonly effects: Effects
  readonly fold: RestoredState['fold']
  readonly index: RestoredState['index']
  readonly sourceOptions: StartedPlane['sourceOptions']
  readonly secretValue = (digest: string) => this.#secrets.value(digest)
  readonly #options: ControlPlaneOptions<Chosen>
  readonly #identity: string
  readonly #from: Position
  readonly #secrets: SecretStore
  readonly #collector: SecretCollector
  readonly #digests: DigestCheck
  readonly #candidate: Candidate
  readonly #reconciler: Reconciler
  readonly #lease: Lease | undefined
  readonly #leadership: Leadership
  /** Undefined if no other replica reads the log. */
  readonly #heartbeat: Heartbeat | undefined
  readonly #listed = Promise.withResolvers<void>()
  #foldBegan = 0
  /** Position up to which events were removed externally, as last reported. */
  #truncatedUpTo = 0
  #isOpen = false
  #isClosed = false

  constructor(options: ControlPlaneOptions<Chosen>, { fold, index, from }: RestoredState) {
    this.#options = options
    this.#identity = newIdentity(options)
    this.fold = fold
    this.index = index
    this.#from = from
    this.writer = this.#createWriter()
    this.recorder = new DeliveryRecorder({
      ...(options.replica !== undefined && { replica: this.#identity }),
      append: (events) => {
        // Acknowledgements of proxies come after the decisions about what they were sent.
        this.#reconciler.record()
        this.writer.enqueue('delivery', events)
      },
    })
    this.#secrets = openSecretStore(options.log.digestKey, () => this.parts)
    this.#collector = new SecretCollector(this.#secrets, fold)
    this.#digests = new DigestCheck({
      ...options,
      fold,
      replica: this.#identity,
      append: (events) => this.writer.enqueue('digest', events),
    })
    const { secretValue } = this
    this.#candidate = new Candidate({ fold, secretValue, parts: () => this.parts })
    this.#reconciler = this.#createReconciler()
    this.sourceOptions = {
      ...apiBinding,
      digestKey: options.log.digestKey,
      keepSecret: (digest, value) => this.#secrets.keep(digest, value),
      onChange: (events) => this.#appendObserved(events),
    }
    this.parts = options.parts(this)
    fold.endedSessions.sendTo((entries) => this.parts.channel.endSessions?.(entries))
    this.#lease = this.#createLease()
    this.#leadership = this.#createLeadership()
    const writing = {
      fold,
      writer: this.writer,
      epoch: () => this.logEpoch(),
      onNotice: (text: string) => options.notify('warn', text),
      onRecovered: (text: string) => options.notify('info', text),
    }
    const rollouts = { parts: this.parts, differs: this.#candidate.differs }
    this.effects = new Effects({ ...options, ...writing, ...rollouts, secrets: this.#secrets })
    this.#heartbeat = openHeartbeat({
      ...writing,
      openEntries: options.log.shared?.openHeartbeats,
      identity: this.#identity,
      durationMs: options.leaseDurationMs,
    })
  }

  get log(): OpenedLog {
    return this.#options.log
  }

  /** Whether other replicas read and write the same log. */
  get isShared(): boolean {
    return this.#options.log.shared !== undefined
  }

  logEpoch(): number | undefined {
    return this.#leadership.logEpoch()
  }

  isWriting(): boolean {
    return this.#leadership.writingEpoch() !== undefined
  }

  /** Reads the log to its end. Rejects if the log cannot be read that far. */
  async read(): Promise<void> {
    await this.#reconciler.start(this.#from).catch((error) => {
      this.#endReading(error)
      throw error
    })
    this.#digests.begin()
  }

  /** Begins to observe. Resolves once a complete listing is in the log and folded. */
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

  /** Begins to serve proxies. Decisions are recorded once a proxy has acknowledged, or after `recordWaitMs`. */
  open(recordWaitMs = 0): void {
    if (this.#isClosed) return
    this.#isOpen = true
    this.#reconciler.open(recordWaitMs)
  }

  async isBehind(position: number): Promise<boolean> {
    if (this.#reconciler.publishedUpTo >= position) return false
    const last = await this.writer.lastPosition().catch(() => position)
    return last >= position && this.#reconciler.publishedUpTo < position
  }

  /** Resolves once all events in the log and in the queue are folded. */
  async caughtUp(): Promise<void> {
    await this.writer.settled(1_000)
    await this.#reconciler.folded(await this.writer.lastPosition())
  }

  /** Gives up the lease permanently. */
  stepDown(): void {
    void this.#lease?.close()
  }

  /** Stops observing, and stops the effects and sinks. */
  async endObserving(): Promise<void> {
    this.#isClosed = true
    await this.parts.source.close()
    await this.parts.sinks?.close()
    await this.effects.close()
  }

  /** Stores the state, gives up the lease and lets proxies connect to another replica. */
  async stop(): Promise<void> {
    await this.endObserving()
    await this.parts.channel.close?.()
    this.recorder.close()
    await this.writer.settled(1_000)
    await this.#reconciler.stop()
    const { log, close } = this.#options.log
    if (this.logEpoch() !== undefined && this.writer.problem === undefined) {
      await saveState(log, this.fold, this.index).catch(() => undefined)
    }
    await this.parts.ledger?.close()
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
        notify('error', `cannot append to the event log: ${text}`)
        if (this.isShared) void this.#lease?.resign('it cannot append to the event log')
      },
      onRecovered: () => notify('info', 'the event log accepts events again'),
      onLost: this.#ended.resolve,
      onTruncated: (upTo) => this.#mendLog(upTo),
      isShared: this.isShared,
    })
  }

  /** Replaces removed events by a snapshot. Only history is lost, since this replica has the state. */
  #mendLog(upTo: number): void {
    const { metrics, notify } = this.#options
    if (upTo !== this.#truncatedUpTo) {
      metrics.add('log_losses_total')
      const what = `Event log truncated up to position ${upTo} externally`
      notify('warn', `${what}. The configuration is intact; history before it is lost.`)
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
      // Without a listing in the shared log, the lease may be held by a replica that writes another log.
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
      keyName,
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
    const { log, every } = this.#options
    return new Reconciler({
      log: log.log,
      ...(every?.snapshot !== undefined && { snapshotEvery: every.snapshot }),
      fold: this.fold,
      epoch: () => this.logEpoch(),
      append: (events) => this.writer.append('decision', events),
      observe: (event) => this.#read(event),
      onFolded: (recorded) => this.#folded(recorded),
      publish: (delta) => this.#publish(delta),
      prepare: (resources) => this.parts.channel.prepare?.(resources),
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
    if (error instanceof UnknownEventTypeError) this.#outdated.resolve(error)
    else this.#ended.resolve(error)
  }

  async #appendObserved(events: readonly ResourceEvent[]): Promise<void> {
    // Events of a replica that has lost the lease would be ignored.
    if (this.isShared && this.#lease?.epoch() === undefined) throw new Error('the lease is lost')
    await this.#collector.during(() => this.writer.append('source', events))
    this.#options.notify('debug', `observed: ${events.length} events`)
  }

  #read(event: SluiceEvent): void {
    this.index.apply(event)
    this.#foldBegan = performance.now()
    this.#collector.note(event)
    if (event.type === leaseAcquired.type) warnOfOtherKey(event.data, this.#options)
  }

  #folded(recorded: Recorded): void {
    this.#candidate.folded(recorded)
    this.#options.metrics.add('fold_seconds', (performance.now() - this.#foldBegan) / 1_000)
    if (this.isShared) this.#digests.folded(recorded)
    const { event } = recorded
    if (event.type === proxyDisconnected.type) {
      const { proxy } = event.data
      this.recorder.reassert(proxy, this.fold.proxies().find((one) => one.proxy === proxy)?.stream)
    }
    this.parts.sinks?.folded(event)
    if (this.index.isListed) this.#listed.resolve()
  }

  #publish(delta: DesiredDelta): void {
    const { metrics, notify } = this.#options
    const began = performance.now()
    // Before proxies get a budget, so that the ledger knows it when they ask.
    this.parts.ledger?.publish(delta)
    this.parts.channel.publish(this.#secrets.join(delta), this.#candidate.take())
    const { sequence, upserted, removed } = delta
    const counts = `${upserted.length} resources changed, ${removed.length} removed`
    notify('debug', `published position ${sequence}: ${counts}`)
    metrics.add('publish_seconds', (performance.now() - began) / 1_000)
    this.#collector.collect(this.parts.source)
  }

  #purge(snapshotAt: Position): void {
    const { log, logRetention = 0 } = this.#options
    const upTo = snapshotAt - logRetention
    if (logRetention === 0 || upTo < 1) return
    log.log.purgeUpTo(upTo as Position).catch((error) => this.writer.fail(error))
  }

  #fault(error: unknown): void {
    if (error instanceof LogError || this.writer.problem !== undefined) this.writer.fail(error)
    else this.#options.onFault(error)
  }
}
