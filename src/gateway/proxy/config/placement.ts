/** Listeners and rules with their merged policies. After a change, the next request merges them again. */
import type { TlsChoice } from '../../../engines/http/tls/tls-choice.ts'
import type { RoutePlace } from '../../../ground/exchange/exchange.ts'
import type {
  AccessLogRules,
  MetricRules,
  ObservedParts,
  TracingRules,
} from '../../../ground/exchange/observe.ts'
import { targetObject } from '../../../ground/model/destinations.ts'
import type { ObjectRef } from '../../../ground/model/names.ts'
import type { ListenerResource } from '../../../ground/model/resources.ts'
import type { Step } from '../../policies/define.ts'
import {
  backendLevels,
  frontendLevels,
  gatewayLevels,
  type Levels,
  type ListenerPlace,
  listenerLevels,
  ruleLevels,
} from '../../policies/merge.ts'
import { type BackendAccess, type BackendPart, httpAccess, sharedAccess } from './backend-access.ts'
import { type Certificates, ListenerTls } from './listener-tls.ts'
import type { BoundPolicies, PolicyIndex } from './policies.ts'
import type { CompiledRule, NamedTarget } from './rules.ts'

/** The rules of one Gateway's frontend policies that observe requests. */
export interface Observers {
  readonly accessLog: AccessLogRules | undefined
  readonly metrics: MetricRules | undefined
  readonly tracing: TracingRules | undefined
  /** The parts of messages that any of them contains. */
  readonly parts: ObservedParts
}

const noParts: ObservedParts = {
  requestBody: false,
  responseBody: false,
  modelTexts: false,
}

export const noObservers: Observers = {
  accessLog: undefined,
  metrics: undefined,
  tracing: undefined,
  parts: noParts,
}

function observersOf(steps: readonly Step[]): Observers {
  const accessLog = steps.find((step) => step.accessLog !== undefined)?.accessLog
  const metrics = steps.find((step) => step.metrics !== undefined)?.metrics
  const tracing = steps.find((step) => step.tracing !== undefined)?.tracing
  const all = [accessLog, metrics, tracing].flatMap((one) => (one === undefined ? [] : [one.parts]))
  if (all.length === 0) return noObservers
  const parts: ObservedParts = {
    requestBody: all.some(({ requestBody }) => requestBody),
    responseBody: all.some(({ responseBody }) => responseBody),
    modelTexts: all.some(({ modelTexts }) => modelTexts),
  }
  return { accessLog, metrics, tracing, parts }
}

/** A listener that is served, with its merged policies. */
export class ListenerPlacement {
  /** Replaced when only the certificates change. Other changes make a new placement. */
  resource: ListenerResource
  /** Id of the listener in the route table of its port. */
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
    const { gateway, section, owner, port } = resource
    this.place = { gateway: `${gateway.namespace}/${gateway.name}`, listener: section }
    this.levels = { gateway: { kind: 'Gateway', ...gateway }, owner, section, port }
    this.#tls = new ListenerTls(this.place)
  }

  /** The TLS settings for a handshake; undefined if it must fail. */
  get tls(): TlsChoice | undefined {
    return this.#tls.choice(this.frontend().client.tls)
  }

  /** Loads the certificates of the listener. Returns a text that says why they are unusable, if they are. */
  secure(certificates: Certificates): string | undefined {
    return this.#tls.renew(this.resource, certificates, this.frontend().client.tls)
  }

  /** Returns the PreRouting policies. They are also closed if a frontend policy cannot be enforced. */
  preRouting(): BoundPolicies {
    return this.#current().preRouting
  }

  /** Returns the policies of client connections. */
  frontend(): BoundPolicies {
    return this.#current().frontend
  }

  /** Returns the access to a destination that the Gateway itself uses, such as a span collector. */
  backend(target: NamedTarget, part: () => BackendPart): BackendAccess {
    const found = part()
    const levels = gatewayLevels(this.levels.gateway)
    return httpAccess(backendPolicies(this.#policies, levels, target, found), found)
  }

  observers(): Observers {
    return this.#current().observers
  }

  #current(): MergedListener {
    const { generation } = this.#policies
    if (this.#merged?.generation === generation) return this.#merged
    const merge = this.#policies.merge.bind(this.#policies)
    const frontend = merge('frontend', 'PostRouting', frontendLevels(this.levels))
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

/** Access objects by target. The first is not in the Map, because most rules have only one target. */
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

/** A rule on one listener, with its merged policies. */
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

  /** Names of listener, route and rule. Made by the first request, because many rules never get one. */
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

  /** Returns the PostRouting policies. */
  postRouting(): BoundPolicies {
    return this.#current().policies
  }

  /** Returns the access to a destination if `backend` has been called for it since the last change. */
  knownBackend(target: NamedTarget): BackendAccess | undefined {
    return this.#current().byBackend.get(target)
  }

  /** Returns the access to a destination. `part` is called once after each configuration change. */
  backend(target: NamedTarget, part: () => BackendPart): BackendAccess {
    const { byBackend } = this.#current()
    let access = byBackend.get(target)
    if (access === undefined) {
      const found = part()
      const policies = backendPolicies(this.#policies, this.#levels(), target, found)
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

/** Merges the backend policies of a target with those of the rule, route, listener and Gateway above it. */
export function backendPolicies(
  policies: PolicyIndex,
  levels: Levels,
  { target }: NamedTarget,
  { sections, behind, object }: Pick<BackendPart, 'sections' | 'behind' | 'object'>,
): BoundPolicies {
  const backend = object ?? (target.type === 'invalid' ? unnamed : targetObject(target))
  const all = backendLevels(levels, { backend, sections }, behind)
  return policies.merge('backend', 'PostRouting', all)
}

const unnamed: ObjectRef = { kind: '', namespace: '', name: '' }
