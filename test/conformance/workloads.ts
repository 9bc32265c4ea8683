/**
 * The parts of a cluster other than its API server: it creates pods for Deployments, endpoints for
 * Services and addresses for load balancers, and removes objects whose owner is deleted. It checks
 * everything a few times a second, which is fast enough for a cluster of this size.
 */
import type { ApiServer } from '../support/api-server.ts'
import type { ContainerLog } from './kubelet.ts'
import { balancerPrefix } from './network.ts'
import { Pod, type PodRequest, type PodTemplate } from './pod.ts'

interface Meta {
  readonly name: string
  readonly namespace: string
  readonly uid: string
  readonly labels?: Readonly<Record<string, string>>
  readonly ownerReferences?: readonly { readonly kind: string; readonly uid: string }[]
}

interface Deployment {
  readonly metadata: Meta
  readonly spec: { readonly replicas?: number; readonly template: PodTemplate }
}

interface Service {
  readonly metadata: Meta
  readonly spec: {
    readonly type?: string
    readonly selector?: Readonly<Record<string, string>>
    readonly loadBalancerIP?: string
    readonly ports?: readonly {
      readonly name?: string
      readonly protocol?: string
      readonly appProtocol?: string
      readonly port: number
      readonly targetPort?: number
    }[]
  }
}

interface Workload {
  template: string
  readonly pods: Pod[]
}

/** What may be owned by a Gateway. */
const owned = [
  '/apis/apps/v1/deployments',
  '/api/v1/services',
  '/api/v1/serviceaccounts',
  '/api/v1/configmaps',
  '/apis/policy/v1/poddisruptionbudgets',
  '/apis/autoscaling/v2/horizontalpodautoscalers',
]

export interface ClusterOptions
  extends Pick<PodRequest, 'server' | 'hosts' | 'programOf' | 'environmentOf'> {}

export class Workloads {
  readonly #options: ClusterOptions
  readonly #server: ApiServer
  readonly #workloads = new Map<string, Workload>()
  /** The address of each Service and the pod that has it. */
  readonly #balancers = new Map<string, { address: string; pod?: Pod | undefined }>()
  readonly #slices = new Map<string, string>()
  #addresses = 1
  #lastBalancer = 0
  #running: Promise<void> | undefined
  #isStopped = false

  constructor(options: ClusterOptions) {
    this.#options = options
    this.#server = options.server
  }

  /** Goes on until `stop`. */
  start(): void {
    this.#running = this.#loop()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#running
    await Promise.all(
      [...this.#workloads.values()].flatMap(({ pods }) => pods.map((p) => p.stop())),
    )
  }

  logOf(namespace: string, name: string): ContainerLog | undefined {
    const pods = [...this.#workloads].filter(([key]) => key.startsWith(`${namespace}/`))
    return pods.flatMap(([, one]) => one.pods).find((pod) => pod.name === name)?.log
  }

  /** What each pod wrote last, for a look after a failure. */
  *logs(): Generator<[string, string]> {
    for (const [key, { pods }] of this.#workloads) {
      for (const pod of pods) yield [`${key.replace('/', '_')}_${pod.name}`, pod.log.since(0)]
    }
  }

  async #loop(): Promise<void> {
    for (let turn = 0; !this.#isStopped; turn++) {
      try {
        await this.#deployments()
        await this.#services()
        if (turn % 8 === 0) await this.#collectGarbage()
      } catch (error) {
        if (!this.#isStopped) console.error(error)
      }
      await new Promise((next) => setTimeout(next, 150))
    }
  }

  async #list<Item>(path: string): Promise<Item[]> {
    const { status, body } = await this.#server.request('GET', path)
    if (status !== 200) throw new Error(`${path}: ${status}`)
    return body.items
  }

  async #deployments(): Promise<void> {
    const deployments = await this.#list<Deployment>('/apis/apps/v1/deployments')
    const names = new Set<string>()
    for (const deployment of deployments) {
      const { namespace, name } = deployment.metadata
      names.add(`${namespace}/${name}`)
      await this.#deployment(`${namespace}/${name}`, deployment)
    }
    for (const [key, { pods }] of this.#workloads) {
      if (names.has(key)) continue
      this.#workloads.delete(key)
      for (const pod of pods) void this.#end(pod)
    }
  }

  async #deployment(key: string, { metadata, spec }: Deployment): Promise<void> {
    const template = JSON.stringify(spec.template)
    const workload: Workload = this.#workloads.get(key) ?? { template, pods: [] }
    this.#workloads.set(key, workload)
    const old = workload.template === template ? [] : workload.pods.splice(0)
    workload.template = template
    while (workload.pods.length < (spec.replicas ?? 1)) {
      workload.pods.push(this.#newPod(metadata, spec.template))
    }
    // A rolling change: those before serve until the new ones do.
    if (old.length > 0) void this.#replace(old, workload.pods)
    for (const pod of workload.pods.splice(spec.replicas ?? 1)) void this.#end(pod)
  }

  #newPod({ namespace, name }: Meta, template: PodTemplate): Pod {
    const number = ++this.#addresses
    const address = `10.244.${1 + Math.floor(number / 250)}.${1 + (number % 250)}`
    const pod = new Pod({
      ...this.#options,
      namespace,
      // The suite expects the two suffixes that a ReplicaSet and a Pod add.
      name: `${name}-replicas-${number.toString(36).padStart(5, '0')}`,
      address,
      template,
    })
    pod.run().catch((error) => console.error(`${namespace}/${name}:`, error))
    return pod
  }

  async #replace(old: readonly Pod[], fresh: readonly Pod[]): Promise<void> {
    while (!fresh.every((pod) => pod.isReady)) await new Promise((next) => setTimeout(next, 50))
    for (const pod of old) await this.#end(pod)
  }

  async #end(pod: Pod): Promise<void> {
    await pod.stop().catch((error) => console.error(`${pod.name}:`, error))
  }

  async #services(): Promise<void> {
    const services = await this.#list<Service>('/api/v1/services')
    const keys = new Set<string>()
    for (const service of services) {
      const { selector, type } = service.spec
      const { namespace, name } = service.metadata
      if (selector === undefined) continue
      const key = `${namespace}/${name}`
      keys.add(key)
      const pods = this.#selected(namespace, selector)
      await this.#endpoints(key, service, pods)
      if (type === 'LoadBalancer') await this.#balancer(key, service, pods)
    }
    for (const key of this.#slices.keys()) {
      if (keys.has(key)) continue
      this.#slices.delete(key)
      const [namespace, name] = key.split('/')
      await this.#server.request(
        'DELETE',
        `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices/${name}-pods`,
      )
    }
    for (const [key, { address, pod }] of this.#balancers) {
      if (keys.has(key)) continue
      this.#balancers.delete(key)
      await pod?.sandbox.removeAddress(address)
    }
  }

  #selected(namespace: string, selector: Readonly<Record<string, string>>): Pod[] {
    return [...this.#workloads]
      .filter(([key]) => key.startsWith(`${namespace}/`))
      .flatMap(([, { pods }]) => pods)
      .filter((pod) => pod.isReady)
      .filter(({ labels }) => Object.entries(selector).every(([key, one]) => labels[key] === one))
  }

  async #endpoints(key: string, service: Service, pods: readonly Pod[]): Promise<void> {
    const { namespace, name, labels } = service.metadata
    const slice = {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: {
        name: `${name}-pods`,
        namespace,
        labels: { ...labels, 'kubernetes.io/service-name': name },
      },
      addressType: 'IPv4',
      ports: (service.spec.ports ?? []).map(({ name: port = '', ...one }) => ({
        name: port,
        protocol: one.protocol ?? 'TCP',
        port: one.targetPort ?? one.port,
        ...(one.appProtocol && { appProtocol: one.appProtocol }),
      })),
      endpoints: pods.map((pod) => ({
        addresses: [pod.sandbox.address],
        conditions: { ready: true, serving: true, terminating: false },
        nodeName: 'node-1',
        targetRef: { kind: 'Pod', namespace, name: pod.name },
      })),
    }
    const text = JSON.stringify(slice)
    if (this.#slices.get(key) === text) return
    const path = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices/${name}-pods`
    const { status, body } = await this.#server.request(
      'PATCH',
      `${path}?fieldManager=endpoints&force=true`,
      slice,
      'application/apply-patch+yaml',
    )
    if (status >= 300) throw new Error(`${path}: ${status} ${body.message}`)
    this.#slices.set(key, text)
  }

  /** A load balancer of layer 2: its address is one more of a pod that is ready. */
  async #balancer(key: string, service: Service, pods: readonly Pod[]): Promise<void> {
    const { namespace, name } = service.metadata
    const wanted = service.spec.loadBalancerIP
    let balancer = this.#balancers.get(key)
    if (balancer !== undefined && wanted !== undefined && wanted !== balancer.address) {
      await balancer.pod?.sandbox.removeAddress(balancer.address)
      balancer = undefined
    }
    if (balancer === undefined) {
      if (wanted !== undefined && !wanted.startsWith(balancerPrefix)) return
      balancer = { address: wanted ?? this.#freeBalancer() }
      this.#balancers.set(key, balancer)
      const status = { loadBalancer: { ingress: [{ ip: balancer.address }] } }
      const path = `/api/v1/namespaces/${namespace}/services/${name}/status`
      await this.#server.request('PATCH', path, { status })
    }
    const [pod] = pods
    if (pod === undefined || pod === balancer.pod) return
    await balancer.pod?.sandbox.removeAddress(balancer.address)
    await pod.sandbox.addAddress(balancer.address)
    balancer.pod = pod
  }

  /** Addresses are reused as late as possible, since clients cache them. */
  #freeBalancer(): string {
    const taken = new Set([...this.#balancers.values()].map(({ address }) => address))
    for (;;) {
      this.#lastBalancer = (this.#lastBalancer % 200) + 1
      const address = `${balancerPrefix}${this.#lastBalancer}`
      if (!taken.has(address)) return address
    }
  }

  async #collectGarbage(): Promise<void> {
    // Owners are listed last, so that an owner created meanwhile does not look deleted.
    const lists = await Promise.all(
      owned.map(async (collection) => {
        const items = await this.#list<{ metadata: Meta }>(collection)
        return items.map(({ metadata }) => ({ collection, metadata }))
      }),
    )
    const gateways = await this.#list<{ metadata: Meta }>(
      '/apis/gateway.networking.k8s.io/v1/gateways',
    )
    const living = new Set(gateways.map(({ metadata }) => metadata.uid))
    for (const { collection, metadata } of lists.flat()) {
      const owner = metadata.ownerReferences?.find(({ kind }) => kind === 'Gateway')
      if (owner === undefined || living.has(owner.uid)) continue
      const base = collection.replace(/\/([a-z]+)$/, `/namespaces/${metadata.namespace}/$1`)
      await this.#server.request('DELETE', `${base}/${metadata.name}`)
    }
  }
}
