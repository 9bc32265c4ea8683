/** Connects the deployer of a controller with its watches, the fold and the log. */
import { randomUUID } from 'node:crypto'
import {
  deploymentApplied,
  deploymentFailed,
  type EventDefinition,
  type SluiceEvent,
} from '../../../../events/index.ts'
import { type ObjectKey, parseObjectKey } from '../../../ground/model/names.ts'
import { managedBy, managedByLabel } from '../../../ground/model/proxy-names.ts'
import type { ControllerSettings } from '../../../ground/settings/controller.ts'
import { Deployer } from '../../deploy/deployer.ts'
import { proxyEnvironment } from '../../deploy/environment.ts'
import {
  isOwnedKind,
  type OwnedKind,
  OwnedObjects,
  ownedKinds,
} from '../../deploy/owned-objects.ts'
import type { ProxyEnvironment } from '../../desired/deployment/plan.ts'
import type { KubeClient, KubeObject, LiveObject } from '../../kube/index.ts'
import { newEvent } from '../../log/index.ts'
import { onlyChanges } from '../../status/only-changes.ts'
import { type KindSink, KindWatch } from '../../watch/kubernetes/kind-watch.ts'
import type { WatchedKind } from '../../watch/kubernetes/kinds.ts'
import { followFolder } from '../../xds/credentials.ts'
import type { LogLevel, StartedPlane } from '../parts.ts'
import type { ControllerMetrics } from './metrics.ts'
import { readAuthorities, refusalReason } from './xds-certificate.ts'

export interface DeploymentsOptions {
  readonly client: KubeClient
  readonly settings: ControllerSettings
  readonly namespace: string
  readonly version: string
  readonly metrics: ControllerMetrics
  readonly notify: (severity: LogLevel, text: string) => void
  readonly plane: Pick<StartedPlane, 'fold' | 'writer' | 'logEpoch'>
  readonly isWriting: () => boolean
  /** Returns an object as it is in the cluster now. */
  readonly live: (key: ObjectKey) => LiveObject | undefined
}

/** Deploys proxies for Gateways, unless the setting for the controller's own Service name is missing. */
export class Deployments {
  readonly #options: DeploymentsOptions
  readonly #owned: OwnedObjects
  readonly #deployer: Deployer
  readonly #watches: readonly KindWatch[]
  /** Part of event ids that is different in every run. */
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
        this.#report(key, deploymentApplied, data)
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
        this.#report(key, deploymentFailed, data)
        options.notify('warn', `Gateway ${namespace}/${name}: ${message}`)
      },
      onRetry: (message) => {
        metrics.add('deployment_failures_total', 1, 'failed')
        this.#warn(message)
      },
    })
    this.#watches = Object.keys(ownedKinds)
      .filter(isOwnedKind)
      .map((kind) => new KindWatch(client, watched(kind), this.#sinkOf(kind)))
  }

  /** Begins to watch deployed objects. */
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

  /** Schedules a reconciliation of these Gateways, whose plans may have changed. */
  mark(gateways: readonly ObjectKey[]): void {
    for (const key of gateways) this.#deployer.mark(key)
  }

  /** Schedules all Gateways. Called when this replica begins to write, or when anything may have changed. */
  markAll(): void {
    for (const key of this.#options.plane.fold.deployments().keys()) this.#deployer.mark(key)
  }

  /** Drops scheduled work. Called when this replica stops writing. */
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
      grantStore: settings.proxyGrantStore,
      ...(settings.xdsTls && { ca: readAuthorities(settings.xdsTlsDir) }),
    })
  }

  /** Reads the certificate files again, since a renewed certificate may have another authority. */
  #reread(): void {
    try {
      const fresh = this.#readEnvironment()
      this.#warnOfCertificate(refusalReason(this.#options.settings.xdsTlsDir, fresh.xds.host) ?? '')
      if (fresh.xds.ca === this.#environmentOf().xds.ca) return
      this.#environment = fresh
      this.markAll()
    } catch (error) {
      this.#warn(`the authorities of the certificate cannot be read: ${String(error)}`)
    }
  }

  #report<Type extends SluiceEvent['type'], Data>(
    key: ObjectKey,
    definition: EventDefinition<Type, Data>,
    data: Data,
  ): void {
    const epoch = this.#options.plane.logEpoch()
    if (epoch === undefined) return
    const id = `${epoch}:${this.#run}:${++this.#reports}:deployment`
    const writer = { source: '/sluice/deployer', epoch }
    const event = newEvent(definition, writer, parseObjectKey(key), { id, data })
    // After a failure, the next reconciliation reports it again.
    this.#options.plane.writer.append('effect', [event as SluiceEvent]).catch(() => undefined)
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
    labelSelector: `${managedByLabel}=${managedBy}`,
  }
}
