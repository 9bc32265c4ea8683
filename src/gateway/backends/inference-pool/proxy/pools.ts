/**
 * InferencePools and their endpoints: each ready Pod on each target port. If no Pod is ready, the endpoints are
 * those of terminating Pods that still serve.
 */
import type { PodResource, PoolResource } from '../../../../ground/model/inference-pools.ts'
import type { Resource } from '../../../../ground/model/resources.ts'
import { usableEndpoints } from '../../../../ground/model/usable-endpoints.ts'
import type { EndpointSet } from '../../../proxy/upstream/endpoint.ts'
import { addressText, plainAddress, UpstreamEndpoint } from '../../../proxy/upstream/endpoint.ts'

/** Endpoints of a pool that requests may use, by `address:port`. */
export type PoolEndpoints = ReadonlyMap<string, UpstreamEndpoint>

export class Pool {
  resource: PoolResource | undefined
  readonly #pods = new Map<string, PodResource>()
  /** Endpoints by address. Kept when the Pods of the pool change, so that request counts survive. */
  readonly #known = new Map<string, UpstreamEndpoint>()
  #endpoints: PoolEndpoints | undefined
  #set: EndpointSet | undefined

  get isEmpty(): boolean {
    return this.resource === undefined && this.#pods.size === 0
  }

  set(resource: PoolResource | undefined): void {
    this.resource = resource
    this.#changed()
  }

  setPod(pod: PodResource): void {
    this.#pods.set(pod.key, pod)
    this.#changed()
  }

  removePod(key: string): void {
    this.#pods.delete(key)
    this.#changed()
  }

  #changed(): void {
    this.#endpoints = undefined
    this.#set = undefined
  }

  endpoints(): PoolEndpoints {
    this.#endpoints ??= this.#collect()
    return this.#endpoints
  }

  endpointSet(): EndpointSet {
    if (this.#set === undefined) {
      const all = [...this.endpoints().values()]
      this.#set = { preferred: all, all }
    }
    return this.#set
  }

  #collect(): PoolEndpoints {
    const found = new Map<string, UpstreamEndpoint>()
    for (const { address } of usableEndpoints([...this.#pods.values()])) {
      for (const port of this.resource?.targetPorts ?? []) {
        const text = addressText(address, port)
        const known = this.#known.get(text) ?? new UpstreamEndpoint(plainAddress(address, port))
        found.set(text, known)
        this.#known.set(text, known)
      }
    }
    this.#forgetIdle(found)
    return found
  }

  /** Drops endpoints that left the pool and have no outstanding requests. */
  #forgetIdle(current: PoolEndpoints): void {
    for (const [text, { outstanding }] of this.#known) {
      if (outstanding === 0 && !current.has(text)) this.#known.delete(text)
    }
  }
}

/** Pools by `namespace/name`. */
export class PoolTable {
  readonly #pools = new Map<string, Pool>()

  find(name: string): Pool | undefined {
    const pool = this.#pools.get(name)
    return pool?.resource === undefined ? undefined : pool
  }

  /** Stores a pool or a Pod; `old` is its previous version. */
  set(resource: Resource, old: Resource | undefined): void {
    if (resource.type === 'pool') this.#of(`${resource.namespace}/${resource.name}`).set(resource)
    if (resource.type !== 'pod') return
    // The new version may belong to other pools.
    if (old?.type === 'pod') this.#removePod(old)
    for (const name of resource.pools) this.#of(`${resource.namespace}/${name}`).setPod(resource)
  }

  remove(resource: Resource): void {
    if (resource.type === 'pod') this.#removePod(resource)
    if (resource.type !== 'pool') return
    this.#change(`${resource.namespace}/${resource.name}`, (pool) => pool.set(undefined))
  }

  #removePod({ key, namespace, pools }: PodResource): void {
    for (const name of pools) this.#change(`${namespace}/${name}`, (pool) => pool.removePod(key))
  }

  #of(name: string): Pool {
    let pool = this.#pools.get(name)
    if (pool === undefined) {
      pool = new Pool()
      this.#pools.set(name, pool)
    }
    return pool
  }

  #change(name: string, change: (pool: Pool) => void): void {
    const pool = this.#pools.get(name)
    if (pool === undefined) return
    change(pool)
    if (pool.isEmpty) this.#pools.delete(name)
  }
}
