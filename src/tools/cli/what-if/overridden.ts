/** Finds policies that another policy newly overrides at a listener, rule or destination. */

import {
  backendLevels,
  concerns,
  frontendLevels,
  type Levels,
  listenerLevels,
  mergePolicies,
  ruleLevels,
  type TargetKey,
} from '../../../gateway/policies/merge.ts'
import { policyRegistry } from '../../../gateway/policies/registry.ts'
import { portPart } from '../../../gateway/proxy/upstream/services.ts'
import { targetObject } from '../../../ground/model/destinations.ts'
import { type ObjectRef, objectKey, parseObjectKey } from '../../../ground/model/names.ts'
import type { PolicyPhase, PolicySection, RouteResource } from '../../../ground/model/resources.ts'
import type { Fold } from '../../../past/replay/index.ts'
import { authorKey, listenerPlace, ResourceTable } from '../../../past/what-if/resources.ts'

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

export function newlyOverridden(present: Fold, candidate: Fold): OverriddenPolicy[] {
  const before = overriddenIn(present)
  return [...overriddenIn(candidate)].flatMap(([key, places]) => {
    if (before.has(key)) return []
    const [policy = '', field = '', by = ''] = key.split(' ')
    return [{ policy: parseObjectKey(policy), field, by: parseObjectKey(by), places }]
  })
}

/** Returns the number of places by `policy field winner`. */
function overriddenIn(fold: Fold): Map<string, number> {
  const table = new ResourceTable(fold)
  const policies = table.policiesByTarget()
  const found = new Map<string, number>()
  const policiesAt = (target: TargetKey) => policies.get(target) ?? []
  for (const { section, phase, levels } of placesOf(table)) {
    const all = levels.flat().flatMap(policiesAt)
    if (all.length < 2) continue
    for (const merged of mergePolicies(bySection[section], phase, levels, policiesAt)) {
      const { definition } = merged
      const [winner] = merged.policies
      if (definition.merge === 'append' || winner === undefined) continue
      for (const policy of all) {
        if (policy === winner || !concerns(definition, phase, policy)) continue
        const field = `${section}.${definition.field}`
        const key = `${authorKey(policy)} ${field} ${authorKey(winner)}`
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

function* placesOf(table: ResourceTable): Iterable<Place> {
  const ports = new Set<string>()
  for (const listener of table.listeners) {
    const place = listenerPlace(listener)
    yield { section: 'traffic', phase: 'PreRouting', levels: listenerLevels(place) }
    const port = `${objectKey(place.gateway)} ${place.port}`
    if (ports.has(port)) continue
    ports.add(port)
    yield { section: 'frontend', phase: 'PostRouting', levels: frontendLevels(place) }
  }
  for (const route of table.routes) {
    for (const attachment of route.attachments) {
      const listener = table.listener(attachment.listener)
      if (listener === undefined) continue
      const levels = ruleLevels(listenerPlace(listener), route)
      yield { section: 'traffic', phase: 'PostRouting', levels }
      yield* destinationsOf(route, levels, table)
    }
  }
}

function* destinationsOf(
  { backends }: RouteResource,
  rule: Levels,
  table: ResourceTable,
): Iterable<Place> {
  for (const { target } of backends) {
    if (target.type === 'invalid') continue
    const { namespace, name } = target
    const ports = table.service(`${namespace}/${name}`)?.ports ?? []
    const sections = target.type === 'service' ? portPart(ports, target.port).sections : []
    const levels = backendLevels(rule, { backend: targetObject(target), sections })
    yield { section: 'backend', phase: 'PostRouting', levels }
  }
}
