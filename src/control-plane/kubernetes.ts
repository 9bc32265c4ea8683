/**
 * `sluice controller`: one run of the control plane on one log. The source is a cluster, which also
 * gets statuses and deployments back; the log is a file or a NATS server; the channel is gRPC. A Lease
 * object settles which replica writes the cluster, and the log too if replicas share it.
 *
 * When the log cannot be read or written any more, `controller.ts` begins another session.
 */
import type { UnknownEventTypeError } from '../../events/index.ts'
import { KubernetesLease } from '../lease/index.ts'
import { kubernetesSource } from '../watch/kubernetes/source.ts'
import { createXdsServer, type XdsServer } from '../xds/server.ts'
import { type ControlPlane, openControlPlane, tooNewText } from './control-plane.ts'
import { Cluster, type ClusterOptions } from './controller/cluster.ts'
import type { Health } from './controller/health.ts'
import { verifyServiceAccount } from './controller/verify.ts'
import { servedCertificate } from './controller/xds-certificate.ts'
import type { OpenedLog } from './open-log.ts'
import type { OpenLease, Plane } from './parts.ts'

export interface SessionOptions extends ClusterOptions {
  readonly replica: string
  readonly isInCluster: boolean
  readonly health: Health
}

interface ClusterParts {
  readonly source: Cluster['source']
  readonly channel: XdsServer
  readonly sinks: Cluster
}

/** Restores the state that the log has. `signal` aborts the wait for replicas that have it. */
export async function openSession(
  options: SessionOptions,
  log: OpenedLog,
  signal: AbortSignal,
): Promise<Session> {
  const { settings, health, notify } = options
  const plane: ControlPlane<ClusterParts> = await openControlPlane({
    ...options,
    log,
    sourceName: kubernetesSource,
    parts: (context) => clusterParts(options, context),
    lease: kubernetesLease(options),
    leaseDurationMs: settings.leaseDurationMs,
    clusterDomain: settings.clusterDomain,
    logRetention: settings.logRetention,
    notify,
    onFault: (error) => plane.writer.fail(error),
    onWait: (reason) => health.set('log', reason ?? 'being read'),
    signal,
  })
  return new Session(options, plane)
}

/** @throws if a certificate is configured and not there */
function clusterParts(options: SessionOptions, plane: Plane): ClusterParts {
  const { client, settings, isInCluster, notify } = options
  const onNotice = (text: string) => notify('warn', text)
  const sinks = new Cluster(options, plane)
  const channel = createXdsServer({
    address: settings.xdsAddress,
    answers: plane.recorder,
    verify: verifyServiceAccount(client, isInCluster),
    ...(settings.xdsTls && { tls: servedCertificate(settings.xdsTlsDir, onNotice) }),
    onNotice,
  })
  return { source: sinks.source, channel, sinks }
}

/** A Lease object in the controller's namespace. */
function kubernetesLease(options: SessionOptions): OpenLease {
  const { client, namespace, owners, settings, metrics, notify } = options
  return (lease) =>
    new KubernetesLease({
      ...lease,
      client,
      namespace,
      name: 'sluice-controller',
      owner: owners.local,
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

export class Session {
  /** Resolves with the reason when this session cannot go on. */
  readonly ended: Promise<unknown>
  readonly #end: (reason: unknown) => void
  readonly #options: SessionOptions
  readonly #plane: ControlPlane<ClusterParts>
  #stopCollecting: () => void = () => undefined

  constructor(options: SessionOptions, plane: ControlPlane<ClusterParts>) {
    const { promise, resolve } = Promise.withResolvers<unknown>()
    this.ended = promise
    this.#end = resolve
    this.#options = options
    this.#plane = plane
    void plane.ended.then(resolve)
    void plane.outdated.then((error) => this.#outdated(error))
  }

  /** Where proxies connect, `host:port`. */
  get xdsAddress(): string {
    return this.#plane.parts.channel.address
  }

  /** Prometheus text of the configuration server. */
  xdsMetrics(): string {
    return this.#plane.parts.channel.metrics()
  }

  /** Resolves when proxies can connect; `health` says when configuration is there for them. */
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
    this.#list().catch(this.#end)
  }

  async #list(): Promise<void> {
    const { parts, fold, isShared } = this.#plane
    await this.#plane.list()
    // Proxies cannot be elsewhere, unless other replicas share the log.
    if (!isShared) parts.channel.expect(fold.proxies().map(({ proxy }) => proxy))
    this.#plane.open()
    this.#options.health.set('configuration', undefined)
  }

  async stop(): Promise<void> {
    this.#stopCollecting()
    await this.#plane.stop()
  }

  /** An event of a newer version cannot be folded: what was published stays served. */
  #outdated(error: UnknownEventTypeError): void {
    const text = tooNewText(error)
    this.#options.health.set('log', text)
    this.#options.notify('error', text)
    this.#plane.stepDown()
  }
}
