/**
 * Where requests land: a listener, or a rule on a listener. Policies are merged here, on the first
 * request after a change, and kept until the next one.
 */

import type { TlsChoice } from '../../engine/tls/tls-choice.ts'
import type { RoutePlace } from '../../exchange/exchange.ts'
import { targetObject } from '../../model/inference-pools.ts'
import type { ObjectRef } from '../../model/names.ts'
import type { ListenerResource } from '../../model/resources.ts'
import {
  backendLevels,
  gatewayLevels,
  type ListenerPlace,
  listenerLevels,
  ruleLevels,
} from '../../policies/merge.ts'
import { type BackendAccess, type BackendPart, httpAccess, sharedAccess } from './backend-access.ts'
import type { Certificates } from './certificates.ts'
import { ListenerTls } from './listener-tls.ts'
import { type Observers, observersOf } from './observers.ts'
import type { BoundPolicies, PolicyIndex } from './policies.ts'
import type { CompiledRule, NamedTarget } from './rules.ts'

/** A listener that serves. */
export class ListenerPlacement {
  /** Replaced where certificates are renewed; nothing else of it ever changes. */
  resource: ListenerResource
  /** Handle of the listener in the route table of its port. */
  readonly scope: number
  readonly place: RoutePlace
  readonly levels: ListenerPlace
  readonly #policies: PolicyIndex
  readonly #tls: ListenerTls
  #merged: MergedListener | undefined

  constructor(resource: ListenerResource, scope: number, policies: PolicyIndex) {
    this.resource = resource
    this.scope = scope
    this.#policies = policies
    const { gateway, section, owner } = resource
    this.place = { gateway: `${gateway.namespace}/${gateway.name}`, listener: section }
    this.levels = { gateway: { kind: 'Gateway', ...gateway }, owner, section }
    this.#tls = new ListenerTls(this.place)
  }

  /** What TLS connections get; undefined where they fail. */
  get tls(): TlsChoice | undefined {
    return this.#tls.choice(this.frontend().client.tls)
  }

  /** Takes the certificates of its resource; returns what is wrong with them. */
  secure(certificates: Certificates): string | undefined {
    return this.#tls.renew(this.resource, certificates, this.frontend().client.tls)
  }

  /** PreRouting policies; closed as well where a frontend policy cannot be enforced. */
  preRouting(): BoundPolicies {
    return this.#current().preRouting
  }

  /** Policies of connections. */
  frontend(): BoundPolicies {
    return this.#current().frontend
  }

  /** Backend policies of a destination that the Gateway itself sends to, such as a collector. */
  backend(target: NamedTarget, part: () => BackendPart): BackendAccess {
    const found = part()
    const place = { backend: targetRef(target), sections: found.sections }
    const levels = backendLevels(gatewayLevels(this.levels.gateway), place)
    return httpAccess(this.#policies.merge('backend', 'PostRouting', levels), found)
  }

  /** What frontend policies want to be told of exchanges. */
  observers(): Observers {
    return this.#current().observers
  }

  #current(): MergedListener {
    const { generation } = this.#policies
    if (this.#merged?.generation === generation) return this.#merged
    const merge = this.#policies.merge.bind(this.#policies)
    const frontend = merge('frontend', 'PostRouting', gatewayLevels(this.levels.gateway))
    const traffic = merge('traffic', 'PreRouting', listenerLevels(this.levels))
    const preRouting = { ...traffic, closed: frontend.closed ?? traffic.closed }
    const observers = observersOf(frontend.steps)
    this.#merged = { generation, frontend, preRouting, observers }
    return this.#merged
  }
}

interface MergedListener {
  readonly generation: number
  readonly frontend: BoundPolicies
  readonly preRouting: BoundPolicies
  readonly observers: Observers
}

/** What holds for the destinations of one rule: mostly one, for which a Map would be large. */
class AccessByTarget {
  #target: NamedTarget | undefined
  #access: BackendAccess | undefined
  #others: Map<NamedTarget, BackendAccess> | undefined

  get(target: NamedTarget): BackendAccess | undefined {
    return target === this.#target ? this.#access : this.#others?.get(target)
  }

  add(target: NamedTarget, access: BackendAccess): void {
    if (this.#target === undefined) {
      this.#target = target
      this.#access = access
      return
    }
    this.#others ??= new Map()
    this.#others.set(target, access)
  }
}

interface MergedRule {
  readonly generation: number
  readonly policies: BoundPolicies
  readonly byBackend: AccessByTarget
}

/** A rule as it is served on one listener. */
export class RulePlacement {
  readonly listener: ListenerPlacement
  readonly rule: CompiledRule
  readonly #policies: PolicyIndex
  #place: RoutePlace | undefined
  #merged: MergedRule | undefined

  constructor(listener: ListenerPlacement, rule: CompiledRule, policies: PolicyIndex) {
    this.listener = listener
    this.rule = rule
    this.#policies = policies
  }

  /** Made by the first request: many a rule never gets one. */
  get place(): RoutePlace {
    if (this.#place === undefined) {
      const { route, ruleName } = this.rule.resource
      const { gateway, listener } = this.listener.place
      this.#place = {
        gateway,
        listener,
        route: `${route.namespace}/${route.name}`,
        rule: ruleName,
      }
    }
    return this.#place
  }

  /** PostRouting policies. */
  postRouting(): BoundPolicies {
    return this.#current().policies
  }

  /** What holds for a destination; `part` is asked once for each configuration. */
  backend(target: NamedTarget, part: () => BackendPart): BackendAccess {
    const { byBackend } = this.#current()
    let access = byBackend.get(target)
    if (access === undefined) {
      const found = part()
      const place = { backend: targetRef(target), sections: found.sections }
      const levels = backendLevels(this.#levels(), place, found.behind)
      const policies = this.#policies.merge('backend', 'PostRouting', levels)
      access = sharedAccess(target, policies, found)
      byBackend.add(target, access)
    }
    return access
  }

  #current(): MergedRule {
    const { generation } = this.#policies
    if (this.#merged?.generation === generation) return this.#merged
    const policies = this.#policies.merge('traffic', 'PostRouting', this.#levels())
    this.#merged = { generation, policies, byBackend: new AccessByTarget() }
    return this.#merged
  }

  #levels() {
    return ruleLevels(this.listener.levels, this.rule.resource)
  }
}

/** The object that a reference leads to; one without a name where it is invalid. */
export function targetRef({ target }: NamedTarget): ObjectRef {
  if (target.type === 'invalid') return { kind: '', namespace: '', name: '' }
  return targetObject(target)
}
