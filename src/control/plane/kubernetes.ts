/**
 * `sluice controller`: one run of the control plane on one log. The source is a cluster, which also
 * gets statuses and deployments back; the log is a file or a NATS server; the channel is gRPC. A Lease
 * object settles which replica writes the cluster, and the log too if replicas share it.
 *
 * When the log cannot be read or written any more, `controller.ts` begins another session.
 */

import type { UnknownEventTypeError } from '../../../events/index.ts'
import { trimWhenIdle } from '../../ground/base/idle-trim.ts'
import type { HasEnded } from '../../ground/model/ended-sessions.ts'
import type { Judge, JudgeOptions } from '../../past/what-if/judge.ts'
import { type KubeClient, reviewToken } from '../kube/index.ts'
import { LeaseObjectStore } from '../lease/kubernetes.ts'
import { Lease } from '../lease/lease.ts'
import { kubernetesSource } from '../watch/kubernetes/source.ts'
import { XdsServer, type XdsServerOptions } from '../xds/server.ts'
import { type VerifyProxy, verifyLoopback } from '../xds/verifier.ts'
import { AdmissionJudge } from './admission/admission-judge.ts'
import { BudgetLedger } from './budget-ledger.ts'
import { warningHost } from './budget-warnings.ts'
import { openJudge } from './change-judge.ts'
import { type ControlPlane, openControlPlane } from './control-plane.ts'
import { type ClusterOptions, ClusterSinks } from './controller/cluster.ts'
import type { ControllerHealth } from './controller/health.ts'
import type { CollectedRecords } from './controller/records.ts'
import { servedCertificate } from './controller/xds-certificate.ts'
import { EndedRecorder } from './ended-recorder.ts'
import { type OpenedLog, tooNewText } from './open-log.ts'
import type { ControlPlaneOptions, JudgingOptions, OpenLease, StartedPlane } from './parts.ts'
import { recordedRequests } from './recorded-requests.ts'
import { proxyTargets, type RolloutTargets } from './rollout/targets.ts'
import { ToolsRecorder } from './tools-recorder.ts'

export interface ControllerSessionOptions
  extends ClusterOptions,
    Pick<ControlPlaneOptions, 'every' | 'judging'> {
  readonly isInCluster: boolean
  readonly health: ControllerHealth
  /** Who stores the time series of proxies. If omitted, they are not stored. */
  readonly series?: XdsServerOptions['series']
  /** The decision records that proxies send. If omitted, they are ignored. */
  readonly records?: Pick<CollectedRecords, 'take' | 'newest'>
  /** What proxies have counted, to compare them during rollouts. If omitted, they are not compared. */
  readonly figures?: RolloutTargets['figures']
  /** How proxies connect. If omitted, over gRPC. */
  readonly listen?: XdsServerOptions['listen']
}

interface ClusterParts {
  readonly source: ClusterSinks['source']
  readonly channel: XdsServer
  readonly sinks: ClusterSinks
  readonly ledger: BudgetLedger
  readonly targets: RolloutTargets
}

/** Opens a session with the state that the log has. `signal` aborts the wait for replicas that have it. */
export async function openSession(
  options: ControllerSessionOptions,
  log: OpenedLog,
  signal: AbortSignal,
): Promise<ControllerSession> {
  const { settings, health, notify } = options
  const plane: ControlPlane<ClusterParts> = await openControlPlane({
    ...options,
    log,
    sourceName: kubernetesSource,
    parts: (context) => clusterParts(options, context, log),
    lease: kubernetesLease(options),
    leaseDurationMs: settings.leaseDurationMs,
    clusterDomain: settings.clusterDomain,
    logRetention: settings.logRetention,
    judging: judgingOf(options),
    notify,
    onFault: (error) => plane.writer.fail(error),
    onWait: (reason) => health.set('log', reason ?? 'being read'),
    signal,
  })
  return new ControllerSession(options, plane)
}

function judgingOf({ judging, settings, records }: ControllerSessionOptions): JudgingOptions {
  const collected = records && (() => records.newest())
  return judging ?? recordedRequests({ nats: settings.nats, collected })
}

/** @throws if TLS is configured and the certificate cannot be used */
function clusterParts(
  options: ControllerSessionOptions,
  plane: StartedPlane,
  { openLedger }: OpenedLog,
): ClusterParts {
  const { client, settings, isInCluster, series, figures, records, listen, notify } = options
  const onNotice = (text: string) => notify('warn', text)
  const warnings = {
    ...warningHost(plane, settings.clusterDomain),
    onWarning: (...warning: Parameters<ClusterSinks['budgetWarned']>) =>
      sinks.budgetWarned(...warning),
  }
  const { ledgerRetentionMs: retentionMs } = settings
  const ledger = new BudgetLedger({
    openLog: openLedger,
    isSole: false,
    retentionMs,
    notify,
    warnings,
  })
  const sinks = new ClusterSinks(options, plane, ledger)
  const tools = new ToolsRecorder(plane)
  const endings = new EndedRecorder(plane)
  const channel = new XdsServer({
    address: settings.xdsAddress,
    reports: plane.recorder,
    ledger: ledger.connect,
    onList: (proxy, report) => tools.report(proxy, report),
    onEnded: (proxy, report) => endings.report(proxy, report),
    isBehind: (position) => plane.isBehind(position),
    verify: verifyServiceAccount(client, isInCluster),
    ...(series && { series }),
    ...(records && { onRecords: records.take }),
    ...(listen && { listen }),
    ...(settings.xdsTls && { tls: servedCertificate(settings.xdsTlsDir, onNotice) }),
    onNotice,
  })
  const targets = proxyTargets(plane.fold, figures)
  return { source: sinks.source, channel, sinks, ledger, targets }
}

/** Audience that a proxy's token must be issued for. */
const proxyAudience = 'sluice'

/**
 * A token gives access to the configuration of the Gateway that has the namespace and the name of the token's
 * service account. Proxies without a token are served only over loopback, and only if the controller runs
 * outside the cluster: in a pod, other containers may connect over loopback.
 */
function verifyServiceAccount(client: KubeClient, isInCluster: boolean): VerifyProxy {
  return async (credentials) => {
    const { token } = credentials
    if (token === undefined || token === '') {
      return isInCluster ? undefined : verifyLoopback(credentials)
    }
    const gateway = await reviewToken(client, token, proxyAudience)
    return gateway && { gateway }
  }
}

/** Returns a function that opens leases in a Lease object in the controller's namespace. */
function kubernetesLease(options: ControllerSessionOptions): OpenLease {
  const { client, namespace, owners, settings, metrics, notify } = options
  return (lease) =>
    new Lease({
      ...lease,
      store: new LeaseObjectStore({
        client,
        namespace,
        name: 'sluice-controller',
        owner: owners.local,
      }),
      durationMs: settings.leaseDurationMs,
      onAcquired: (epoch) => {
        metrics.add('lease_changes_total', 1, 'acquired')
        lease.onAcquired(epoch)
      },
      onLost: (reason) => {
        metrics.add('lease_changes_total', 1, 'lost')
        lease.onLost(reason)
      },
      onProblem: (text) => notify('warn', text),
    })
}

export class ControllerSession {
  /** Resolves with the reason when this session cannot continue. */
  readonly ended: Promise<unknown>
  readonly #failed = Promise.withResolvers<unknown>()
  readonly #options: ControllerSessionOptions
  readonly #plane: ControlPlane<ClusterParts>
  #stopCollecting: () => void = () => undefined
  #endTrimming: () => void = () => undefined

  constructor(options: ControllerSessionOptions, plane: ControlPlane<ClusterParts>) {
    this.#options = options
    this.#plane = plane
    this.ended = Promise.race([plane.ended, this.#failed.promise])
    void plane.outdated.then((error) => this.#outdated(error))
  }

  get log(): OpenedLog {
    return this.#plane.log
  }

  /** Whether a session of a user has ended, by events of the log. */
  readonly hasEnded: HasEnded = (ids, issuedAt) =>
    this.#plane.fold.endedSessions.has(ids, issuedAt, Date.now())

  /** The configuration server. */
  get xds(): XdsServer {
    return this.#plane.parts.channel
  }

  /** Returns a judge of objects that are about to be applied. */
  openAdmission(): AdmissionJudge {
    const judging = judgingOf(this.#options)
    let records: JudgeOptions['records'] = () => []
    let opened: Promise<Judge> | undefined
    return new AdmissionJudge({
      plane: this.#plane,
      source: this.#plane.parts.source,
      refuses: this.#options.settings.admissionMode === 'deny',
      judge: async () => {
        records = (await judging.records?.()) ?? (() => [])
        opened ??= openJudge(judging, () => records())
        return opened
      },
      forget: () => {
        opened = undefined
      },
    })
  }

  /** Resolves when proxies can connect; `health` reports when there is configuration for them. */
  async start(): Promise<void> {
    const { health } = this.#options
    const { parts, writer } = this.#plane
    health.set('log', 'being read')
    await parts.channel.start()
    const isRead = await this.#plane.read().then(
      () => true,
      () => false,
    )
    if (!isRead) return
    health.set('log', () => writer.problem)
    health.set('listing', () => parts.source.listingProblem())
    health.set('kubernetes', () => parts.source.watchProblem())
    health.set('configuration', 'no complete listing is known')
    health.set('xds', undefined)
    this.#stopCollecting = parts.sinks.start()
    this.#endTrimming = trimWhenIdle({ taken: () => this.#plane.fold.position })
    this.#list().catch(this.#failed.resolve)
  }

  async #list(): Promise<void> {
    const { parts, fold, isShared } = this.#plane
    await this.#plane.list()
    // Proxies can connect to other replicas only if these share the log.
    if (!isShared) parts.channel.expect(fold.proxies().map(({ proxy }) => proxy))
    this.#plane.open()
    this.#options.health.set('configuration', undefined)
  }

  async stop(): Promise<void> {
    this.#stopCollecting()
    this.#endTrimming()
    await this.#plane.stop()
  }

  /** Called after an event of a newer version. The last configuration stays served. */
  #outdated(error: UnknownEventTypeError): void {
    const text = tooNewText(error)
    this.#options.health.set('log', text)
    this.#options.notify('error', text)
    this.#plane.stepDown()
  }
}
