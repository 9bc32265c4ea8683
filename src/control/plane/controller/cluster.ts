/**
 * A cluster as the source of the control plane and as its sink: statuses, deployments, the default
 * GatewayClass, and Kubernetes Events.
 */
import { randomUUID } from 'node:crypto'
import { definitionsObserved, type SluiceEvent } from '../../../../events/index.ts'
import type { LedgerMetric } from '../../../gateway/proxy/telemetry/metric-definitions.ts'
import { defaultClassName, gatewayGroup, ownGroup } from '../../../ground/model/api-names.ts'
import { type ObjectKey, objectKey, parseObjectKey } from '../../../ground/model/names.ts'
import type { Fold, FoldChange } from '../../actors/fold.ts'
import { judgedVersion } from '../../actors/judged-versions.ts'
import type { InstallOwners } from '../../kube/index.ts'
import { withSpend } from '../../ledger/balances.ts'
import type { BudgetWarning } from '../../ledger/budget-state.ts'
import { newEvent } from '../../log/index.ts'
import { heldEvents, rolloutEvents } from '../../status/change-events.ts'
import { conditionEvents } from '../../status/condition-events.ts'
import { EventRecorder } from '../../status/event-recorder.ts'
import { RefusalEvents } from '../../status/refusal-events.ts'
import { StatusWriter } from '../../status/writer.ts'
import type { KindState } from '../../watch/kubernetes/kind-watch.ts'
import type { WatchedKind } from '../../watch/kubernetes/kinds.ts'
import { KubernetesSource, kubernetesSource } from '../../watch/kubernetes/source.ts'
import type { BudgetLedger } from '../budget-ledger.ts'
import type { CertificateProblem } from '../certificate-dates.ts'
import type { Sinks, StartedPlane } from '../parts.ts'
import { Deployments, type DeploymentsOptions } from './deployments.ts'
import { GatewayClassReconciler } from './gateway-class.ts'

export interface ClusterOptions extends Omit<DeploymentsOptions, 'plane' | 'live' | 'isWriting'> {
  /** Owners of the objects that the controller creates for itself. */
  readonly owners: InstallOwners
  /** Name of this replica. */
  readonly replica: string
}

/** How often it is looked at which budgets have spent something. */
const spendTickMs = 1_000

const budgetKind = { apiVersion: `${ownGroup}/v1alpha1`, kind: 'GatewayBudget' }

const classKey = `GatewayClass//${defaultClassName}`

export class ClusterSinks implements Sinks {
  readonly source: KubernetesSource
  readonly #options: ClusterOptions
  readonly #plane: StartedPlane
  readonly #ledger: BudgetLedger
  readonly #statuses: StatusWriter
  readonly #class: GatewayClassReconciler
  readonly #deployments: Deployments
  readonly #definitions: DefinitionsRecord
  /** Not set if the controller writes no Kubernetes Events. */
  readonly #events: EventRecorder | undefined
  readonly #refusals: RefusalEvents | undefined

  constructor(options: ClusterOptions, plane: StartedPlane, ledger: BudgetLedger) {
    this.#options = options
    this.#plane = plane
    this.#ledger = ledger
    this.source = this.#createSource()
    this.#statuses = this.#createStatusWriter()
    const isWriting = () => plane.isWriting()
    this.#class = new GatewayClassReconciler({
      ...options,
      isWriting,
      known: () => plane.index.get(classKey),
      onInForce: () => this.#deployments.markAll(),
    })
    this.#deployments = new Deployments({
      ...options,
      plane,
      live: (key) => this.source.live(key),
      isWriting: () => isWriting() && this.#class.isInForce,
    })
    this.#definitions = new DefinitionsRecord(plane)
    if (!options.settings.kubernetesEvents) return
    const recorder = new EventRecorder({
      ...options,
      isWriting,
      onNotice: (text) => options.notify('warn', text),
    })
    this.#events = recorder
    this.#refusals = new RefusalEvents({ recorder, isWriting, index: plane.index })
  }

  /**
   * Begins to watch deployed objects, to show what budgets have spent, and to set gauges at each scrape. The returned
   * function stops them.
   */
  start(): () => void {
    this.#deployments.start()
    const stopCollecting = this.#options.metrics.collect(() => this.#setGauges())
    const spending = setInterval(() => this.#markSpend(), spendTickMs).unref()
    return () => {
      clearInterval(spending)
      stopCollecting()
    }
  }

  #markSpend(): void {
    if (!this.#plane.isWriting()) return
    for (const key of this.#ledger.takeStatuses()) this.#statuses.mark(key)
  }

  /** The decisions of the fold about an object, with what a budget has spent. */
  #wanted(key: ObjectKey): ReturnType<Fold['decidedOf']> {
    const decided = this.#plane.fold.decidedOf(parseObjectKey(key))
    const { status, of } = decided
    const spend = of && status && this.#ledger.spend.of(of.uid)
    return spend === undefined ? decided : { of, status: withSpend(status ?? {}, spend) }
  }

  certificates(all: readonly CertificateProblem[], fresh: readonly CertificateProblem[]): void {
    const { metrics } = this.#options
    const valid = all.filter(({ isValid }) => isValid).length
    metrics.set('certificate_problems', valid, 'expiring')
    metrics.set('certificate_problems', all.length - valid, 'invalid')
    for (const { ref, message, isValid } of fresh) {
      const uid = this.#plane.index.get(objectKey(ref))?.uid
      if (uid === undefined) continue
      const reason = isValid ? 'CertificateExpiring' : 'CertificateInvalid'
      const regarding = { apiVersion: 'v1', ...ref, uid }
      this.#events?.record({ regarding, type: 'Warning', action: 'Check', reason, note: message })
    }
  }

  folded(event: SluiceEvent): void {
    if (event.type === 'dev.sluice.config.rejected.v1') this.#refusals?.add(event.data)
    if (event.type === 'dev.sluice.change.held.v1' && this.#plane.isWriting()) {
      const position = this.#plane.fold.position
      for (const one of heldEvents(event.data, position)) this.#events?.record(one)
    }
    if (event.type.startsWith('dev.sluice.rollout.') && this.#plane.isWriting()) {
      this.#reportRollout(event)
    }
    this.#class.folded()
  }

  #reportRollout(event: SluiceEvent): void {
    const { waiting } = this.#plane.fold.rollouts
    const { rollout } = event.data as { readonly rollout?: number }
    const objects = [...waiting.values()].filter((one) => one.rollout === rollout)
    const versions = objects.map(({ newest }) => judgedVersion(newest))
    for (const one of rolloutEvents(event, versions)) this.#events?.record(one)
  }

  /** Writes a Kubernetes Event about a soft limit that was reached. */
  budgetWarned({ budget: uid, name: path }: BudgetWarning, note: string): void {
    const [namespace = '', name = ''] = path.split('/')
    const regarding = { ...budgetKind, namespace, name, uid }
    const what = { type: 'Warning', action: 'Spend', reason: 'SoftLimitReached' } as const
    this.#events?.record({ regarding, ...what, note })
  }

  decided({ statuses, dropped, deployments }: FoldChange): void {
    this.#deployments.mark(deployments)
    for (const { ref } of statuses) this.#statuses.mark(objectKey(ref))
    for (const ref of dropped) this.#statuses.mark(objectKey(ref))
    this.#definitions.update()
  }

  lead(): void {
    for (const key of this.source.liveKeys()) this.#statuses.mark(key)
    this.#class.lead()
    this.#ledger.spend.noteAll()
  }

  follow(): void {
    this.#statuses.clear()
    this.#deployments.clear()
  }

  async close(): Promise<void> {
    this.#statuses.close()
    await this.#class.close()
    await this.#deployments.close()
    this.#refusals?.close()
    await this.#events?.close()
  }

  #createSource(): KubernetesSource {
    const { client, settings, namespace, notify } = this.#options
    return new KubernetesSource({
      ...this.#plane.sourceOptions,
      client,
      namespaceSelectors: settings.namespaceSelectors,
      ownNamespace: namespace,
      readsPools: settings.inferenceExtension,
      onState: (kind, state) => this.#noteState(kind, state),
      onProblem: (text) => notify('warn', text),
      onLive: (key) => {
        this.#statuses.mark(key)
        if (key === classKey && this.source.live(key) === undefined) this.#class.ensure()
      },
      onVersions: (versions) => this.#definitions.note(versions),
    })
  }

  #noteState({ kind, plural }: WatchedKind, state: KindState): void {
    const { notify } = this.#options
    if (state.state === 'following') notify('debug', `following ${plural}`)
    if (state.state === 'failing') notify('warn', `cannot watch ${plural}: ${state.error.message}`)
    if (kind === 'GatewayClass' && state.state === 'following') this.#class.ensure()
  }

  /** Creates the writer of the fold's decisions into the statuses of the cluster. */
  #createStatusWriter(): StatusWriter {
    const { client, metrics, notify } = this.#options
    return new StatusWriter({
      client,
      wanted: (key) => this.#wanted(key),
      live: (key) => this.source.live(key),
      note: (key, object) => this.source.noteWrite(key, object),
      isLeading: () => this.#plane.isWriting(),
      onWritten: (before, status) => {
        for (const event of conditionEvents(before, status)) this.#events?.record(event)
      },
      onOutcome: (kind, outcome, message) => {
        metrics.add('status_writes_total', 1, kind, outcome)
        if (message !== undefined) notify('warn', message)
        else notify('debug', `status of a ${kind}: ${outcome}`)
      },
    })
  }

  #setGauges(): void {
    const { metrics } = this.#options
    const { fold } = this.#plane
    metrics.set('fold_position', fold.position)
    metrics.set('queue_depth', this.source.depth, 'source')
    metrics.set('queue_depth', this.#statuses.depth, 'status')
    metrics.set('watched_objects', this.source.size)
    metrics.set('lease_held', this.#plane.isWriting() ? 1 : 0)
    metrics.set('lease_epoch', fold.epoch)
    metrics.clear('state_digest')
    const { desired, status } = fold.digests()
    metrics.set('state_digest', 1, desired, status)
    for (const [name, series] of Object.entries(this.#ledger.metrics())) {
      metrics.clear(name as LedgerMetric)
      for (const { labels, values } of series) {
        metrics.set(name as LedgerMetric, values[0] ?? 0, ...labels)
      }
    }
    metrics.clear('watch_up')
    for (const { kind, state, silentMs } of this.source.states()) {
      metrics.set('watch_up', 1, kind, state)
      metrics.set('watch_silence_seconds', Math.round(silentMs / 100) / 10, kind)
    }
  }
}

/** Records the Gateway API versions in the cluster if the log has different ones. */
class DefinitionsRecord {
  readonly #plane: StartedPlane
  /** Part of event ids that is different in every run. */
  readonly #run = randomUUID()
  #count = 0
  #observed: readonly string[] | undefined
  #isWriting = false

  constructor(plane: StartedPlane) {
    this.#plane = plane
  }

  /** Called with the versions that are in the cluster now. */
  note(versions: readonly string[]): void {
    this.#observed = versions
    this.update()
  }

  /** Appends the versions if the log has different ones and this replica may write the log. */
  update(): void {
    const { fold, writer: log } = this.#plane
    const epoch = this.#plane.logEpoch()
    const versions = this.#observed
    if (epoch === undefined || versions === undefined || this.#isWriting) return
    if (fold.definitions === versions.join(',')) return
    const id = `${epoch}:${this.#run}:${++this.#count}:definitions`
    const about = { kind: 'CustomResourceDefinition', name: gatewayGroup }
    const writer = { source: kubernetesSource, epoch }
    const event = newEvent(definitionsObserved, writer, about, { id, data: { versions } })
    this.#isWriting = true
    // After a failure, `update` is called again with the next decisions.
    const done = () => {
      this.#isWriting = false
    }
    log.append('effect', [event]).then(done, done)
  }
}
