/** The deployer of a controller: its watches, what the fold wants, and reports into the log. */
import { randomUUID } from 'node:crypto'
import {
  createEvent,
  deploymentApplied,
  deploymentFailed,
  type EventContext,
  type SluiceEvent,
} from '../../../events/index.ts'
import { systemClock } from '../../base/clock.ts'
import { onlyChanges } from '../../base/notices.ts'
import { Deployer } from '../../deploy/deployer.ts'
import { proxyEnvironment } from '../../deploy/environment.ts'
import {
  isOwnedKind,
  type OwnedKind,
  OwnedObjects,
  ownedKinds,
} from '../../deploy/owned-objects.ts'
import type { ProxyEnvironment } from '../../desired/deployment/index.ts'
import type { KubeClient, KubeObject, LiveObject } from '../../kube/index.ts'
import { clusterName, subjectOf } from '../../log/index.ts'
import { type ObjectKey, parseObjectKey } from '../../model/names.ts'
import { managedBy, managedByLabel } from '../../model/proxy-names.ts'
import type { ControllerSettings } from '../../settings/controller.ts'
import { type KindSink, KindWatch } from '../../watch/kubernetes/kind-watch.ts'
import type { WatchedKind } from '../../watch/kubernetes/kinds.ts'
import { followFolder } from '../../xds/credentials.ts'
import type { Plane, Severity } from '../parts.ts'
import type { ControllerMetrics } from './metrics.ts'
import { doubtOf, readAuthorities } from './xds-certificate.ts'

export interface DeploymentsOptions {
  readonly client: KubeClient
  readonly settings: ControllerSettings
  readonly namespace: string
  readonly version: string
  readonly metrics: ControllerMetrics
  readonly notify: (severity: Severity, text: string) => void
  readonly plane: Pick<Plane, 'fold' | 'writer' | 'logEpoch'>
  readonly isWriting: () => boolean
  /** An object as it is in the cluster now. */
  readonly live: (key: ObjectKey) => LiveObject | undefined
}

/** Does nothing where the controller was not told the name of its own Service. */
export class Deployments {
  readonly #options: DeploymentsOptions
  readonly #owned: OwnedObjects
  readonly #deployer: Deployer
  readonly #watches: readonly KindWatch[]
  /** Part of event ids, new with every run. */
  readonly #run = randomUUID()
  #reports = 0
  #environment: ProxyEnvironment | undefined
  #endFollowing: () => void = () => undefined
  readonly #warn: (text: string) => void
  readonly #warnOfCertificate: (text: string) => void

  constructor(options: DeploymentsOptions) {
    this.#options = options
    this.#warn = onlyChanges((text) => options.notify('warn', text))
    this.#warnOfCertificate = onlyChanges((text) => options.notify('warn', text))
    const { client, plane, isWriting, metrics } = options
    this.#owned = new OwnedObjects(
      (gateway) => this.#deployer.mark(gateway),
      () => this.markAll(),
    )
    this.#deployer = new Deployer({
      client,
      owned: this.#owned,
      wanted: (key) => plane.fold.deployments().get(key),
      problem: (key) => plane.fold.deploymentProblem(key),
      environment: () => this.#environmentOf(),
      isThere: (key, uid) => {
        const gateway = options.live(key)
        return gateway?.uid === uid && !gateway.isDeleting
      },
      isWriting: () => this.#isOn && isWriting(),
      onApplied: (key, uid, changes) => {
        const { namespace, name } = parseObjectKey(key)
        const data = { namespace, name, uid, changes }
        this.#report(
          (context, content) => createEvent(deploymentApplied, context, { ...content, data }),
          key,
        )
        for (const { kind, change } of changes) {
          metrics.add('deployment_writes_total', 1, kind, change)
        }
        const text = changes.map(({ kind, change }) => `${kind} ${change}`).join(', ')
        options.notify('info', `Gateway ${namespace}/${name}: ${text || 'in place again'}`)
      },
      onFailed: (key, uid, message) => {
        const { namespace, name } = parseObjectKey(key)
        const data = { namespace, name, uid, message }
        metrics.add('deployment_failures_total', 1, 'refused')
        this.#report(
          (context, content) => createEvent(deploymentFailed, context, { ...content, data }),
          key,
        )
        options.notify('warn', `Gateway ${namespace}/${name}: ${message}`)
      },
      onTrouble: (message) => {
        metrics.add('deployment_failures_total', 1, 'failed')
        this.#warn(message)
      },
    })
    this.#watches = Object.keys(ownedKinds)
      .filter(isOwnedKind)
      .map((kind) => new KindWatch(client, watched(kind), this.#sinkOf(kind)))
  }

  /** Begins to watch what is deployed. */
  start(): void {
    if (!this.#isOn) {
      this.#options.notify('info', 'SLUICE_XDS_SERVICE_NAME is not set: no proxies are deployed')
      return
    }
    for (const watch of this.#watches) watch.start()
    const { xdsTls, xdsTlsDir } = this.#options.settings
    if (!xdsTls) return
    this.#reread()
    this.#endFollowing = followFolder(xdsTlsDir, () => this.#reread())
  }

  /** Something else may be wanted for these Gateways. */
  mark(gateways: readonly ObjectKey[]): void {
    for (const key of gateways) this.#deployer.mark(key)
  }

  /** This replica writes now, or everything may be other than it was. */
  markAll(): void {
    for (const key of this.#options.plane.fold.deployments().keys()) this.#deployer.mark(key)
  }

  /** Another replica writes now. */
  clear(): void {
    this.#deployer.clear()
  }

  async close(): Promise<void> {
    this.#endFollowing()
    await Promise.all(this.#isOn ? this.#watches.map((watch) => watch.stop()) : [])
    await this.#deployer.close()
  }

  get #isOn(): boolean {
    return this.#options.settings.xdsServiceName !== undefined
  }

  #sinkOf(kind: OwnedKind): KindSink {
    return {
      listing: () => {
        const all: KubeObject[] = []
        return {
          page: (objects) => void all.push(...objects),
          finish: () => this.#owned.replace(kind, all),
        }
      },
      changed: (_kind, _version, type, object) => {
        if (type === 'delete') this.#owned.remove(kind, object)
        else this.#owned.put(kind, object)
      },
      state: (_kind, state) => {
        if (state.state === 'failing') this.#warn(`cannot watch ${kind}s: ${state.error.message}`)
      },
    }
  }

  #environmentOf(): ProxyEnvironment {
    this.#environment ??= this.#readEnvironment()
    return this.#environment
  }

  #readEnvironment(): ProxyEnvironment {
    const { settings, namespace, version } = this.#options
    return proxyEnvironment({
      version,
      namespace,
      serviceName: settings.xdsServiceName ?? '',
      servicePort: settings.xdsServicePort,
      clusterDomain: settings.clusterDomain,
      imageRegistry: settings.proxyImageRegistry,
      imageTag: settings.proxyImageTag,
      ...(settings.xdsTls && { ca: readAuthorities(settings.xdsTlsDir) }),
    })
  }

  /** A certificate that was renewed may come from another authority. */
  #reread(): void {
    try {
      const fresh = this.#readEnvironment()
      this.#warnOfCertificate(doubtOf(this.#options.settings.xdsTlsDir, fresh.xds.host) ?? '')
      if (fresh.xds.ca === this.#environmentOf().xds.ca) return
      this.#environment = fresh
      this.markAll()
    } catch (error) {
      this.#warn(`the authorities of the certificate cannot be read: ${String(error)}`)
    }
  }

  #report(
    make: (context: EventContext, content: { id: string; subject: string }) => SluiceEvent,
    key: ObjectKey,
  ): void {
    const epoch = this.#options.plane.logEpoch()
    if (epoch === undefined) return
    const id = `${epoch}:${this.#run}:${++this.#reports}:deployment`
    const subject = subjectOf({ cluster: clusterName, ...parseObjectKey(key) })
    const time = new Date(systemClock.now()).toISOString()
    const event = make({ source: '/sluice/deployer', time, epoch }, { id, subject })
    // What could not be recorded is found, and told, at the next look.
    this.#options.plane.writer.append('effect', [event]).catch(() => undefined)
  }
}

function watched(kind: OwnedKind): WatchedKind {
  const { group, version, plural } = ownedKinds[kind]
  return {
    kind,
    group,
    versions: [version],
    plural,
    namespaced: true,
    isOptional: false,
    isNarrowed: false,
    isMetadataOnly: false,
    hasStatus: false,
    labelSelector: `${managedByLabel}=${managedBy}`,
  }
}
