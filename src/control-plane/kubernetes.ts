/**
 * One run of the control plane on one log. The stages are those of `standalone.ts`; what differs is
 * the source (a cluster), the channel (gRPC), who writes (the holder of the lease), and that statuses
 * go back into the cluster.
 *
 * ```
 *   start ── log open, read to its end ──► following ── the lease ──► leading ── lost ──► following
 *                                              │ listed, and the log knows a listing
 *                                              ▼
 *                                           serving proxies
 *   any ── the log cannot be gone on with ──► ended; `controller.ts` begins another session
 * ```
 *
 * A log of its own (a file) needs no lease to be written: the lease then only decides who writes
 * statuses.
 */
import { randomUUID } from 'node:crypto'
import { UnknownEventTypeError } from '../../events/index.ts'
import type { Fold, FoldChange } from '../actors/fold.ts'
import { defaultClassName } from '../api/names.ts'
import { systemClock } from '../base/clock.ts'
import type { SecretStore } from '../effects/secret-store.ts'
import type { Lease, Presence } from '../lease/index.ts'
import type { Position } from '../log/index.ts'
import { objectKey } from '../model/names.ts'
import { RefusalEvents } from '../status/refusal-events.ts'
import type { StatusWriter } from '../status/writer.ts'
import type { KindState } from '../watch/kubernetes/kind-watch.ts'
import type { WatchedKind } from '../watch/kubernetes/kinds.ts'
import { KubernetesSource } from '../watch/kubernetes/source.ts'
import { DeliveryRecorder } from '../xds/delivery-recorder.ts'
import type { XdsServer } from '../xds/server.ts'
import { apiBinding } from './api-binding.ts'
import { LogKeeper } from './append-queue.ts'
import { clusterName } from './controller/cluster-name.ts'
import { collectMetrics } from './controller/collect-metrics.ts'
import { Deployments } from './controller/deployments.ts'
import { ClassKeeper } from './controller/gateway-class.ts'
import { openLease } from './controller/open-lease.ts'
import { serveProxies } from './controller/serve-proxies.ts'
import type { SessionOptions } from './controller/session-options.ts'
import { listingProblem, watchProblem } from './controller/source-problems.ts'
import { createStatusWriter } from './controller/status-writing.ts'
import { DigestCheck } from './digest-check.ts'
import { Effects } from './effects.ts'
import { Leadership } from './leadership.ts'
import { tooNewText } from './log-end.ts'
import { contradictLoss, watchReplicas } from './lost-proxies.ts'
import type { OpenedLog } from './open-log.ts'
import { Reconciler } from './reconciler.ts'
import { robbedText } from './restore.ts'
import { openSecretStore, secretDigests } from './secret-digests.ts'
import { captureState, type RestoredState } from './stored-state.ts'

const classKey = `GatewayClass//${defaultClassName}`

export class Session {
  /** Resolves with the reason when this session cannot go on. */
  readonly ended: Promise<unknown>
  readonly #end: (reason: unknown) => void
  readonly #options: SessionOptions
  readonly #opened: OpenedLog
  readonly #fold: Fold
  readonly #from: Position
  readonly #keeper: LogKeeper
  readonly #recorder: DeliveryRecorder
  readonly #secrets: SecretStore
  readonly #source: KubernetesSource
  readonly #reconciler: Reconciler
  readonly #lease: Lease
  readonly #leadership: Leadership
  readonly #writer: StatusWriter
  readonly #class: ClassKeeper
  readonly #deployments: Deployments
  readonly #effects: Effects
  readonly #digests: DigestCheck
  /** Undefined where the log is this replica's own. */
  readonly #presence: Presence | undefined
  /** Name of this run of this replica; never used twice. */
  readonly #identity: string
  readonly #index: RestoredState['index']
  #xds: XdsServer | undefined
  #isOpen = false
  #isSecretGone = false
  /** Up to where somebody else has removed events from the log, as it was told last. */
  #robbedUpTo = 0
  #isClosed = false
  #endCollecting: () => void = () => undefined

  constructor(options: SessionOptions, opened: OpenedLog, restored: RestoredState) {
    const { client, owners, settings, say } = options
    const { promise, resolve } = Promise.withResolvers<unknown>()
    this.ended = promise
    this.#end = resolve
    this.#options = options
    this.#opened = opened
    this.#fold = restored.fold
    this.#index = restored.index
    this.#from = restored.from
    this.#identity = `${options.replica}_${randomUUID().slice(0, 8)}`
    this.#keeper = this.#createKeeper()
    this.#digests = new DigestCheck({
      ...options,
      fold: this.#fold,
      replica: this.#identity,
      post: (events) => this.#keeper.post('digest', events),
    })
    this.#recorder = new DeliveryRecorder({
      clock: systemClock,
      cluster: clusterName,
      run: randomUUID(),
      replica: this.#identity,
      append: (events) => this.#keeper.post('delivery', events),
    })
    this.#secrets = openSecretStore(opened.digestKey, (late) => this.#xds?.publish(late))
    this.#source = this.#createSource()
    this.#reconciler = this.#createReconciler()
    this.#lease = openLease(options, {
      identity: this.#identity,
      highestEpoch: () => this.#fold.epoch,
      isFit: () => this.#source.isListed && this.#keeper.problem === undefined,
      // A shared log without a listing: its own replicas would wait for a holder on another log.
      needsIt: () => this.#isShared && !this.#index.isListed,
      mayYield: () => this.#isOpen,
      onAcquired: (epoch) => this.#leadership.acquired(epoch),
      onLost: (reason) => this.#leadership.lost(reason),
    })
    this.#leadership = this.#createLeadership()
    const writing = {
      fold: this.#fold,
      keeper: this.#keeper,
      epoch: () => this.#leadership.logEpoch(),
      onNotice: (text: string) => say('warn', text),
    }
    this.#presence = watchReplicas({
      ...writing,
      servers: settings.nats,
      identity: this.#identity,
      durationMs: settings.leaseDurationMs,
      cluster: clusterName,
    })
    this.#writer = createStatusWriter(options, this.#fold, this.#source, () => this.#leadership)
    const isWriting = () => this.#leadership.writingEpoch() !== undefined
    this.#class = new ClassKeeper({
      ...{ client, owners, settings, isWriting, say },
      known: () => this.#index.get(classKey),
      onInForce: () => this.#deployments.markAll(),
    })
    this.#deployments = new Deployments({
      ...options,
      fold: this.#fold,
      keeper: this.#keeper,
      logEpoch: () => this.#leadership.logEpoch(),
      live: (key) => this.#source.live(key),
      isWriting: () => isWriting() && this.#class.isInForce,
    })
    const refusals = new RefusalEvents({ ...writing, client, isWriting, index: this.#index })
    this.#effects = new Effects({ ...settings, ...writing, refusals, secrets: this.#secrets })
  }

  /** Where proxies connect, `host:port`. */
  get xdsAddress(): string {
    return this.#xds?.address ?? ''
  }

  get #isShared(): boolean {
    return this.#options.settings.nats !== undefined
  }

  /** Resolves when proxies can connect; what they are served is there when the health says so. */
  async start(): Promise<void> {
    const { health, metrics } = this.#options
    health.set('log', 'being read')
    this.#xds = await serveProxies(this.#options, this.#recorder)
    const isRead = await this.#reconciler
      .start(this.#from)
      .catch((error) => this.#endReading(error))
    if (isRead === false) return
    this.#digests.begin()
    health.set('log', () => this.#keeper.problem)
    health.set('listing', () => listingProblem(this.#source))
    health.set('kubernetes', () => watchProblem(this.#source))
    health.set('configuration', () => (this.#isOpen ? undefined : 'no complete listing is known'))
    health.set('xds', undefined)
    this.#endCollecting = collectMetrics(metrics, {
      fold: this.#fold,
      source: this.#source,
      writer: this.#writer,
      isLeading: () => this.#leadership.writingEpoch() !== undefined,
    })
    this.#source.start()
    this.#deployments.start()
    this.#lease.start()
    this.#presence?.start()
    this.#begin().catch(this.#end)
  }

  /** Gives up the lease and lets proxies go to another replica; nothing that was decided is lost. */
  async stop(): Promise<void> {
    this.#isClosed = true
    this.#endCollecting()
    this.#writer.close()
    const isWriter = this.#leadership.logEpoch() !== undefined
    await this.#source.close()
    await this.#class.close()
    await this.#deployments.close()
    await this.#effects.close()
    await this.#xds?.close()
    this.#recorder.close()
    await this.#keeper.settled(1_000)
    await this.#reconciler.stop()
    if (isWriter && this.#keeper.problem === undefined) await this.#saveState()
    await this.#presence?.close()
    await this.#lease.close()
    this.#keeper.close()
    await this.#opened.close().catch(() => undefined)
  }

  /** Prometheus text of the configuration server. */
  xdsMetrics(): string {
    return this.#xds?.metrics() ?? ''
  }

  async #begin(): Promise<void> {
    await this.#source.whenListed()
    if (!this.#isShared) await this.#leadership.ownLog()
    this.#openIfListed()
  }

  async #saveState(): Promise<void> {
    const { log } = this.#opened
    await log.saveSnapshot(captureState(this.#fold, this.#index)).catch(() => undefined)
  }

  /** Proxies are served from the first moment at which the log has everything that is listed here. */
  #openIfListed(): void {
    if (this.#isOpen || this.#isClosed) return
    if (!this.#source.isListed || !this.#index.isListed) return
    this.#isOpen = true
    // On a log of one's own nobody else can have them; on a shared one they may be elsewhere.
    if (!this.#isShared) this.#xds?.expect(this.#fold.proxies().map(({ proxy }) => proxy))
    this.#reconciler.open()
    this.#options.health.set('configuration', undefined)
  }

  #createKeeper(): LogKeeper {
    const { metrics, say } = this.#options
    return new LogKeeper({
      log: this.#opened.log,
      metrics,
      onProblem: (text) => {
        say('error', `the log does not take events: ${text}`)
        if (this.#isShared) void this.#lease.resign('the log does not take events')
      },
      onRecovered: () => say('info', 'the log takes events again'),
      onLost: this.#end,
      onRobbed: (upTo) => this.#mendLog(upTo),
      isShared: this.#isShared,
    })
  }

  /** Nothing is lost but history: this replica still has the state that came of what is gone. */
  #mendLog(upTo: number): void {
    const { metrics, say } = this.#options
    if (upTo !== this.#robbedUpTo) {
      metrics.add('log_losses_total')
      say('warn', `${robbedText(upTo)}: history is lost, and nothing else`)
    }
    this.#robbedUpTo = upTo
    if (this.#fold.position >= upTo) this.#reconciler.mend()
  }

  #createSource(): KubernetesSource {
    const { client, settings, namespace, say } = this.#options
    return new KubernetesSource({
      ...apiBinding,
      client,
      clock: systemClock,
      cluster: clusterName,
      digestKey: this.#opened.digestKey,
      keepSecret: (digest, value) => this.#secrets.keep(digest, value),
      namespaceSelectors: settings.namespaceSelectors,
      ownNamespace: namespace,
      readsPools: settings.inferenceExtension,
      onChange: async (events) => {
        // A lease that was lost meanwhile would make these events count for nothing.
        if (this.#isShared && this.#lease.epoch() === undefined)
          throw new Error('the lease is lost')
        await this.#keeper.append('source', events)
        say('debug', `observed: ${events.length} events`)
      },
      onState: (kind, state) => this.#noteState(kind, state),
      onProblem: (text) => say('warn', text),
      onLive: (key) => {
        this.#writer.mark(key)
        if (key === classKey && this.#source.live(key) === undefined) this.#class.ensure()
      },
      onVersions: (versions) => this.#effects.noteDefinitions(versions),
      onSecretsGone: () => {
        this.#isSecretGone = true
      },
    })
  }

  #noteState({ kind, plural }: WatchedKind, state: KindState): void {
    const { say } = this.#options
    if (state.state === 'following') say('debug', `following ${plural}`)
    if (state.state === 'failing') say('warn', `cannot watch ${plural}: ${state.error.message}`)
    if (kind === 'GatewayClass' && state.state === 'following') this.#class.ensure()
  }

  #createReconciler(): Reconciler {
    const { metrics, settings } = this.#options
    const { log } = this.#opened
    let began = 0
    return new Reconciler({
      log,
      fold: this.#fold,
      cluster: clusterName,
      clock: systemClock,
      append: (events) => this.#keeper.append('decision', events),
      observe: (event) => {
        this.#index.apply(event)
        began = performance.now()
      },
      onFolded: (recorded) => {
        metrics.add('fold_seconds', (performance.now() - began) / 1_000)
        if (this.#isShared) this.#digests.folded(recorded)
        contradictLoss(recorded.event, this.#recorder)
        this.#effects.folded(recorded.event)
        this.#class.look()
        this.#openIfListed()
      },
      capture: () => captureState(this.#fold, this.#index),
      onSnapshot: (position) => {
        const upTo = position - settings.logRetention
        if (settings.logRetention === 0 || upTo < 1) return
        log.purgeUpTo(upTo as Position).catch((error) => this.#keeper.fail(error))
      },
      publish: (delta) => this.#publish(delta),
      onDecided: ({ statuses, dropped, deployments }) => {
        this.#deployments.mark(deployments)
        for (const { ref } of statuses) this.#writer.mark(objectKey(ref))
        for (const ref of dropped) this.#writer.mark(objectKey(ref))
        this.#effects.update()
      },
      epoch: () => this.#leadership.logEpoch(),
      onFault: (error) => this.#keeper.fail(error),
      onEnd: (error) => this.#endReading(error),
    })
  }

  #publish(delta: FoldChange['delta']): void {
    const began = performance.now()
    this.#xds?.publish(this.#secrets.join(delta))
    const { sequence, upserted, removed } = delta
    const counts = `${upserted.length} resources changed, ${removed.length} removed`
    this.#options.say('debug', `published position ${sequence}: ${counts}`)
    this.#options.metrics.add('publish_seconds', (performance.now() - began) / 1_000)
    if (this.#isSecretGone) {
      this.#secrets.retain(this.#source.secretDigests().union(secretDigests(this.#fold)))
    }
    this.#isSecretGone = false
  }

  /** An event of a newer version cannot be folded: what was published goes on to be served. */
  #endReading(error: unknown): false {
    if (error instanceof UnknownEventTypeError) {
      const text = tooNewText(error)
      this.#options.health.set('log', text)
      this.#options.say('error', text)
      void this.#lease.close()
    } else this.#end(error)
    return false
  }

  #createLeadership(): Leadership {
    const { replica, say } = this.#options
    return new Leadership({
      isShared: this.#isShared,
      replica,
      keeper: this.#keeper,
      fold: this.#fold,
      index: this.#index,
      source: this.#source,
      reconciler: () => this.#reconciler,
      lease: () => this.#lease,
      onWriting: () => {
        for (const key of this.#source.liveKeys()) this.#writer.mark(key)
        this.#class.begin()
      },
      onStopped: () => {
        this.#writer.clear()
        this.#deployments.clear()
      },
      say,
    })
  }
}
