/** Finds policies that a change makes ineffective at some place, because another policy overrides them there. */
import { targetObject } from '../../model/destinations.ts'
import { type ObjectRef, objectKey, parseObjectKey } from '../../model/names.ts'
import type {
  ListenerResource,
  PolicyPhase,
  PolicyResource,
  PolicySection,
  RouteResource,
  ServiceResource,
} from '../../model/resources.ts'
import {
  backendLevels,
  concerns,
  gatewayLevels,
  type Levels,
  type ListenerPlace,
  listenerLevels,
  mergePolicies,
  ruleLevels,
  type TargetKey,
  targetKey,
} from '../../policies/merge.ts'
import { policyRegistry } from '../../policies/registry.ts'
import { portPart } from '../../proxy/upstream/services.ts'
import type { Fold } from '../../replay/index.ts'

/** A policy field that another policy overrides at places where it was not overridden by that policy before. */
export interface OverriddenPolicy {
  readonly policy: ObjectRef
  /** `section.field`. */
  readonly field: string
  readonly by: ObjectRef
  /** Number of listeners, rules and destinations at which it is overridden. */
  readonly places: number
}

interface Place {
  readonly section: PolicySection
  readonly phase: PolicyPhase
  readonly levels: Levels
}

/** The resources that decide which policies apply where. */
interface Placement {
  readonly listeners: ReadonlyMap<string, ListenerResource>
  readonly routes: readonly RouteResource[]
  readonly services: ReadonlyMap<string, ServiceResource>
  readonly policies: ReadonlyMap<TargetKey, readonly PolicyResource[]>
}

export function newlyOverridden(present: Fold, candidate: Fold): OverriddenPolicy[] {
  const before = overriddenIn(present)
  return [...overriddenIn(candidate)].flatMap(([key, places]) => {
    if (before.has(key)) return []
    const [policy = '', field = '', by = ''] = key.split(' ')
    return [{ policy: parseObjectKey(policy), field, by: parseObjectKey(by), places }]
  })
}

/** The number of places by `policy field winner`. */
function overriddenIn(fold: Fold): Map<string, number> {
  const placement = placementOf(fold)
  const found = new Map<string, number>()
  const policiesAt = (target: TargetKey) => placement.policies.get(target) ?? []
  for (const { section, phase, levels } of placesOf(placement)) {
    const all = levels.flat().flatMap(policiesAt)
    if (all.length < 2) continue
    for (const merged of mergePolicies(bySection[section], phase, levels, policiesAt)) {
      const { definition, policies } = merged
      const [winner] = policies
      if (definition.merge === 'append' || winner === undefined) continue
      for (const policy of all) {
        if (policy === winner || !concerns(definition, phase, policy)) continue
        const field = `${section}.${definition.field}`
        const key = `${objectKey(authorOf(policy))} ${field} ${objectKey(authorOf(winner))}`
        found.set(key, (found.get(key) ?? 0) + 1)
      }
    }
  }
  return found
}

const bySection = {
  frontend: policyRegistry.filter(({ section }) => section === 'frontend'),
  traffic: policyRegistry.filter(({ section }) => section === 'traffic'),
  backend: policyRegistry.filter(({ section }) => section === 'backend'),
}

/** The object that contains a policy. */
const authorOf = ({ policy, target }: PolicyResource): ObjectRef => ({
  kind: target.inline === true ? target.kind : 'GatewayPolicy',
  ...policy,
})

function placementOf(fold: Fold): Placement {
  const listeners = new Map<string, ListenerResource>()
  const services = new Map<string, ServiceResource>()
  const routes: RouteResource[] = []
  const policies: PolicyResource[] = []
  for (const { resource } of fold.resources()) {
    if (resource.type === 'listener') listeners.set(resource.key, resource)
    else if (resource.type === 'service') services.set(resource.key, resource)
    else if (resource.type === 'route') routes.push(resource)
    else if (resource.type === 'policy') policies.push(resource)
  }
  const byTarget = Map.groupBy(policies, ({ target }) => targetKey(target))
  return { listeners, routes, services, policies: byTarget }
}

function* placesOf({ listeners, routes, services }: Placement): Iterable<Place> {
  const gateways = new Set<string>()
  for (const listener of listeners.values()) {
    const place = listenerPlace(listener)
    yield { section: 'traffic', phase: 'PreRouting', levels: listenerLevels(place) }
    const gateway = objectKey(place.gateway)
    if (gateways.has(gateway)) continue
    gateways.add(gateway)
    yield { section: 'frontend', phase: 'PostRouting', levels: gatewayLevels(place.gateway) }
  }
  for (const route of routes) {
    for (const attachment of route.attachments) {
      const listener = listeners.get(attachment.listener)
      if (listener === undefined) continue
      const levels = ruleLevels(listenerPlace(listener), route)
      yield { section: 'traffic', phase: 'PostRouting', levels }
      yield* destinationsOf(route, levels, services)
    }
  }
}

const listenerPlace = ({ gateway, owner, section }: ListenerResource): ListenerPlace => ({
  gateway: { kind: 'Gateway', ...gateway },
  owner,
  section,
})

function* destinationsOf(
  { backends }: RouteResource,
  rule: Levels,
  services: Placement['services'],
): Iterable<Place> {
  for (const { target } of backends) {
    if (target.type === 'invalid') continue
    const { namespace, name } = target
    const ports = services.get(`service/${namespace}/${name}`)?.ports ?? []
    const sections = target.type === 'service' ? portPart(ports, target.port).sections : []
    const levels = backendLevels(rule, { backend: targetObject(target), sections })
    yield { section: 'backend', phase: 'PostRouting', levels }
  }
}
