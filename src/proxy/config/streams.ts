/** Routes of what is forwarded unread: which one takes a connection on a listener, and where to. */
import type { RoutePlace } from '../../exchange/exchange.ts'
import { compareAge } from '../../model/names.ts'
import type { ResourceKey, StreamResource } from '../../model/resources.ts'
import { backendLevels, ruleLevels } from '../../policies/merge.ts'
import { type BackendAccess, type BackendPart, streamAccess } from './backend-access.ts'
import { type ListenerPlacement, targetRef } from './placement.ts'
import type { PolicyIndex } from './policies.ts'
import { type NamedTarget, nameTarget } from './rules.ts'
import { hostnamesFor } from './server-names.ts'

export interface CompiledStreamBackend extends NamedTarget {
  /** > 0. */
  readonly weight: number
}

interface CompiledStream {
  readonly resource: StreamResource
  /** Those with a weight; an invalid one keeps its share. */
  readonly backends: readonly CompiledStreamBackend[]
  readonly totalWeight: number
  /** One for each listener that has served it. */
  readonly placements: WeakMap<ListenerPlacement, StreamPlacement>
}

/** A stream route as it is served on one listener. */
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

  /** What holds for a destination; `part` is asked once for each configuration. */
  backend(target: NamedTarget, part: () => BackendPart): BackendAccess {
    const { generation } = this.#policies
    if (this.#generation !== generation) this.#byBackend.clear()
    this.#generation = generation
    let access = this.#byBackend.get(target)
    if (access === undefined) {
      const levels = ruleLevels(this.listener.levels, { ...this.#resource, ruleIndex: 0 })
      const place = { backend: targetRef(target), sections: part().sections }
      const merged = this.#policies.merge('backend', 'PostRouting', backendLevels(levels, place))
      access = streamAccess(merged)
      this.#byBackend.set(target, access)
    }
    return access
  }
}

export class StreamTable {
  readonly #policies: PolicyIndex
  /** By listener, then by hostname: the oldest first, which serves. */
  readonly #byListener = new Map<ResourceKey, Map<string, CompiledStream[]>>()

  constructor(policies: PolicyIndex) {
    this.#policies = policies
  }

  set(resource: StreamResource): void {
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

  /** Who takes a connection: the best hostname, among equals the oldest route. */
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
