/** Routes of connections that are forwarded without being read. */
import type { RoutePlace } from '../../../ground/exchange/exchange.ts'
import { compareAge } from '../../../ground/model/names.ts'
import type { Resource, ResourceKey, StreamResource } from '../../../ground/model/resources.ts'
import { ruleLevels } from '../../policies/merge.ts'
import { type BackendAccess, type BackendPart, streamAccess } from './backend-access.ts'
import { backendPolicies, type ListenerPlacement } from './placement.ts'
import type { PolicyIndex } from './policies.ts'
import { hostnamesFor } from './port-table.ts'
import { type NamedTarget, nameTarget } from './rules.ts'

export interface CompiledStreamBackend extends NamedTarget {
  /** Share of the connections; always above 0. */
  readonly weight: number
}

interface CompiledStream {
  readonly resource: StreamResource
  /** Backends with a weight above 0. Connections for an invalid backend fail and do not go to the others. */
  readonly backends: readonly CompiledStreamBackend[]
  readonly totalWeight: number
  /** Placements by the listener that serves the route. */
  readonly placements: WeakMap<ListenerPlacement, StreamPlacement>
}

/** A stream route on one listener, with its merged policies. */
export class StreamPlacement {
  readonly listener: ListenerPlacement
  readonly backends: readonly CompiledStreamBackend[]
  readonly totalWeight: number
  readonly place: RoutePlace
  readonly #resource: StreamResource
  readonly #policies: PolicyIndex
  #generation = -1
  readonly #byBackend = new Map<NamedTarget, BackendAccess>()

  constructor(listener: ListenerPlacement, stream: CompiledStream, policies: PolicyIndex) {
    this.listener = listener
    this.backends = stream.backends
    this.totalWeight = stream.totalWeight
    this.#resource = stream.resource
    this.#policies = policies
    const { route, ruleName } = stream.resource
    this.place = { ...listener.place, route: `${route.namespace}/${route.name}`, rule: ruleName }
  }

  /** Returns the access to a destination. `part` is called once after each configuration change. */
  backend(target: NamedTarget, part: () => BackendPart): BackendAccess {
    const { generation } = this.#policies
    if (this.#generation !== generation) this.#byBackend.clear()
    this.#generation = generation
    let access = this.#byBackend.get(target)
    if (access === undefined) {
      const levels = ruleLevels(this.listener.levels, { ...this.#resource, ruleIndex: 0 })
      const { sections } = part()
      access = streamAccess(backendPolicies(this.#policies, levels, target, { sections }))
      this.#byBackend.set(target, access)
    }
    return access
  }
}

export class StreamTable {
  readonly #policies: PolicyIndex
  /** Routes by listener and hostname. The oldest comes first and is the one that is used. */
  readonly #byListener = new Map<ResourceKey, Map<string, CompiledStream[]>>()

  constructor(policies: PolicyIndex) {
    this.#policies = policies
  }

  /** Stores a route. `old` is its previous version. */
  set(resource: StreamResource, old: Resource | undefined): void {
    if (old?.type === 'stream') this.remove(old)
    const backends = resource.backends
      .filter(({ weight }) => weight > 0)
      .map(({ weight, target }) => ({ ...nameTarget(target), weight }))
    const totalWeight = backends.reduce((sum, { weight }) => sum + weight, 0)
    const placements = new WeakMap<ListenerPlacement, StreamPlacement>()
    const stream: CompiledStream = { resource, backends, totalWeight, placements }
    for (const { listener, hostnames } of resource.attachments) {
      const byHostname = this.#byListener.get(listener) ?? new Map<string, CompiledStream[]>()
      this.#byListener.set(listener, byHostname)
      for (const hostname of hostnames) {
        const streams = [...(byHostname.get(hostname) ?? []), stream]
        byHostname.set(hostname, streams.sort(byAge))
      }
    }
  }

  remove({ key, attachments }: StreamResource): void {
    for (const { listener, hostnames } of attachments) {
      const byHostname = this.#byListener.get(listener)
      if (byHostname === undefined) continue
      for (const hostname of hostnames) {
        const left = byHostname.get(hostname)?.filter(({ resource }) => resource.key !== key) ?? []
        if (left.length === 0) byHostname.delete(hostname)
        else byHostname.set(hostname, left)
      }
      if (byHostname.size === 0) this.#byListener.delete(listener)
    }
  }

  /** Returns the route of a connection: of the most specific hostname, the oldest route. */
  find(listener: ListenerPlacement, serverName: string | undefined): StreamPlacement | undefined {
    const byHostname = this.#byListener.get(listener.resource.key)
    if (byHostname === undefined) return undefined
    for (const hostname of hostnamesFor(serverName)) {
      const stream = byHostname.get(hostname)?.[0]
      if (stream === undefined) continue
      let placement = stream.placements.get(listener)
      if (placement === undefined) {
        placement = new StreamPlacement(listener, stream, this.#policies)
        stream.placements.set(listener, placement)
      }
      return placement
    }
    return undefined
  }
}

function byAge({ resource: a }: CompiledStream, { resource: b }: CompiledStream): number {
  return compareAge({ ...a, ...a.route }, { ...b, ...b.route })
}
