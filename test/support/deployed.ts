/** The objects that were deployed for Gateways, in the namespace `default` of a test's API server. */
import type { TestCluster, TestObject } from './cluster.ts'
import { waitFor } from './wait-for.ts'

export const deployedPlaces = {
  Deployment: '/apis/apps/v1/namespaces/default/deployments',
  DaemonSet: '/apis/apps/v1/namespaces/default/daemonsets',
  Service: '/api/v1/namespaces/default/services',
  ServiceAccount: '/api/v1/namespaces/default/serviceaccounts',
  ConfigMap: '/api/v1/namespaces/default/configmaps',
  PodDisruptionBudget: '/apis/policy/v1/namespaces/default/poddisruptionbudgets',
  HorizontalPodAutoscaler: '/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers',
} as const
export type DeployedKind = keyof typeof deployedPlaces

/** As far as tests look into one. */
export interface DeployedObject {
  readonly metadata: {
    readonly resourceVersion: string
    readonly generation: number
    readonly labels: Readonly<Record<string, string>>
    readonly ownerReferences: readonly object[]
  }
  // biome-ignore lint/suspicious/noExplicitAny: specs of every kind, looked into by tests
  readonly spec: any
  readonly data?: Readonly<Record<string, string>>
}

export interface DeployedContainer {
  readonly image: string
  readonly env: readonly { readonly name: string; readonly value?: string }[]
}

export const containerOf = ({ spec }: DeployedObject): DeployedContainer =>
  spec.template.spec.containers[0]

export class Deployed {
  readonly #cluster: TestCluster

  constructor(cluster: TestCluster) {
    this.#cluster = cluster
  }

  async read(kind: DeployedKind, name: string): Promise<DeployedObject | undefined> {
    const { server } = this.#cluster
    const { status, body } = await server.request('GET', `${deployedPlaces[kind]}/${name}`)
    return status === 200 ? body : undefined
  }

  /** Waits until the object exists and matches. */
  until(
    kind: DeployedKind,
    name: string,
    holds: (object: DeployedObject) => unknown = () => true,
  ): Promise<DeployedObject> {
    return waitFor(`${kind} ${name} as wanted`, async () => {
      const object = await this.read(kind, name)
      return object !== undefined && holds(object) ? object : undefined
    })
  }

  async gone(kind: DeployedKind, name: string): Promise<void> {
    await waitFor(`no ${kind} ${name}`, async () => (await this.read(kind, name)) === undefined)
  }

  /** A change by another writer. */
  patch(kind: DeployedKind, name: string, body: object) {
    const path = `${deployedPlaces[kind]}/${name}?fieldManager=somebody`
    return this.#cluster.server.request('PATCH', path, body)
  }

  /** Reports the status of a workload, as the controllers of Kubernetes do. */
  async reportPods(kind: 'Deployment' | 'DaemonSet', name: string, pods: object): Promise<void> {
    const { metadata } = await this.until(kind, name)
    const none = { currentNumberScheduled: 0, numberMisscheduled: 0, numberReady: 0 }
    const status = {
      ...(kind === 'DaemonSet' && { desiredNumberScheduled: 0, ...none }),
      ...pods,
      observedGeneration: metadata.generation,
    }
    const path = `${deployedPlaces[kind]}/${name}/status`
    const answer = await this.#cluster.server.request('PATCH', path, { status })
    if (answer.status !== 200) throw new Error(answer.body.message)
  }

  /** A server-side apply by another manager, which takes fields over. */
  takeOver(kind: DeployedKind, name: string, body: object) {
    const path = `${deployedPlaces[kind]}/${name}?fieldManager=other&force=true`
    const whole = { kind, metadata: { name }, ...body }
    return this.#cluster.server.request('PATCH', path, whole, 'application/apply-patch+yaml')
  }

  /** Versions of what every Gateway has. */
  async versions(name: string): Promise<readonly (string | undefined)[]> {
    const kinds = ['Deployment', 'Service', 'ServiceAccount', 'ConfigMap'] as const
    return Promise.all(
      kinds.map(async (kind) => (await this.read(kind, name))?.metadata.resourceVersion),
    )
  }
}

export const parameters = (name: string, spec: object): TestObject => ({
  apiVersion: 'sluice.dev/v1alpha1',
  kind: 'GatewayParameters',
  metadata: { name, namespace: 'default' },
  spec,
})

/** Part of the spec of a Gateway that refers to GatewayParameters. */
export const withParameters = (name: string, more: object = {}): object => ({
  infrastructure: { parametersRef: { group: 'sluice.dev', kind: 'GatewayParameters', name } },
  ...more,
})
