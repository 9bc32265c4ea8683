/** The policies that apply to an object, field by field, and those that more specific ones override. */

import {
  backendLevels,
  frontendLevels,
  type Levels,
  listenerLevels,
  ruleLevels,
} from '../../src/gateway/policies/merge.ts'
import { type ObjectRef, objectKey, objectText } from '../../src/ground/model/names.ts'
import type {
  ListenerResource,
  PolicyPhase,
  PolicySection,
  Resource,
  RouteResource,
} from '../../src/ground/model/resources.ts'
import {
  fieldsAt,
  policiesByTarget,
  type TracedField,
} from '../../src/past/explain/effective-policies.ts'
import type { Moment } from '../log/loaded-log.ts'

/** The policies in one place, such as a rule of a route on a listener. */
interface PolicyGroup {
  readonly place: string
  readonly fields: readonly TracedField[]
}

export function policyGroups(moment: Moment, ref: ObjectRef): PolicyGroup[] {
  const resources = [...moment.resources.entries()].map(([, one]) => one)
  const all = resources.map(({ resource }) => resource)
  const context = { policies: policiesByTarget(resources), originOf: originIn(moment) }
  const at = (section: PolicySection, phase: PolicyPhase, levels: Levels) =>
    fieldsAt(context, section, phase, levels)
  const places = placesOf(all, ref)
  const groups = places.map(({ place, parts }) => ({
    place,
    fields: parts.flatMap(([section, phase, levels]) => at(section, phase, levels)),
  }))
  return joinEqual(groups.filter(({ fields }) => fields.length > 0))
}

const originIn =
  ({ objects, log }: Moment) =>
  (ref: ObjectRef) => {
    const { generation = 0, applied } = objects.get(objectKey(ref)) ?? {}
    return applied === undefined ? undefined : { generation, event: log.events.positions[applied] }
  }

interface Place {
  readonly place: string
  readonly parts: readonly (readonly [PolicySection, PolicyPhase, Levels])[]
}

function placesOf(all: readonly Resource[], ref: ObjectRef): Place[] {
  const key = objectKey(ref)
  const listeners = new Map(
    all.flatMap((one) => (one.type === 'listener' ? [[one.key, one] as const] : [])),
  )
  if (ref.kind === 'Gateway' || ref.kind === 'ListenerSet') {
    return [...listeners.values()]
      .filter(({ owner }) => objectKey(owner) === key)
      .map((listener) => ({
        place: `listener ${listener.section}`,
        parts: listenerParts(listener),
      }))
  }
  const rules = all.filter(
    (one): one is RouteResource => one.type === 'route' && objectKey(one.route) === key,
  )
  if (rules.length > 0) return rules.flatMap((rule) => rulePlaces(rule, listeners))
  if (ref.kind === 'Service' || ref.kind === 'GatewayBackend') {
    const sections = all.flatMap((one) =>
      one.type === 'service' && `Service/${one.namespace}/${one.name}` === key ? one.ports : [],
    )
    const names = sections.flatMap(({ name, port }) => [name, `${port}`]).filter(Boolean)
    const levels = backendLevels([], { backend: ref, sections: names })
    return [
      { place: 'requests to it, from any route', parts: [['backend', 'PostRouting', levels]] },
    ]
  }
  if (ref.kind === 'GatewayPolicy') return targetPlaces(all, ref)
  return []
}

const gatewayOf = ({ gateway }: ListenerResource): ObjectRef => ({ kind: 'Gateway', ...gateway })

const placeOf = (listener: ListenerResource) => ({
  gateway: gatewayOf(listener),
  owner: listener.owner,
  section: listener.section,
  port: listener.port,
})

function listenerParts(listener: ListenerResource): Place['parts'] {
  const levels = listenerLevels(placeOf(listener))
  return [
    ['frontend', 'PostRouting', frontendLevels(placeOf(listener))],
    ['traffic', 'PreRouting', levels],
    ['traffic', 'PostRouting', levels],
    ['backend', 'PostRouting', levels],
  ]
}

function rulePlaces(
  rule: RouteResource,
  listeners: ReadonlyMap<string, ListenerResource>,
): Place[] {
  return rule.attachments.flatMap(({ listener: key }) => {
    const listener = listeners.get(key)
    if (listener === undefined) return []
    const levels = ruleLevels(placeOf(listener), rule)
    const name = rule.ruleName === undefined ? '' : ` (${rule.ruleName})`
    return [
      {
        place: `rule ${rule.ruleIndex}${name} on ${objectText(listener.owner)}, listener ${listener.section}`,
        parts: [
          ['traffic', 'PostRouting', levels],
          ['backend', 'PostRouting', levels],
        ],
      },
    ]
  })
}

/** For a policy: the place of each of its targets, with every policy on the same target. */
function targetPlaces(all: readonly Resource[], ref: ObjectRef): Place[] {
  const own = all.filter(
    (one) =>
      one.type === 'policy' &&
      one.target.inline !== true &&
      one.policy.namespace === ref.namespace &&
      one.policy.name === ref.name,
  )
  const targets = new Map(
    own.flatMap((one) => {
      if (one.type !== 'policy') return []
      const { section, ...target } = one.target
      const name = `${objectText(target)}${section === undefined ? '' : `, ${section}`}`
      const part = section === undefined ? '' : `#${section}`
      return [[name, [[`${objectKey(target)}${part}`]]] as const]
    }),
  )
  return [...targets].map(([place, levels]) => ({
    place: `target ${place}`,
    parts: [
      ['frontend', 'PostRouting', levels],
      ['traffic', 'PreRouting', levels],
      ['traffic', 'PostRouting', levels],
      ['backend', 'PostRouting', levels],
    ],
  }))
}

/** Joins places that have the same policies, so that a route on ten listeners is shown once. */
function joinEqual(groups: readonly PolicyGroup[]): PolicyGroup[] {
  const byFields = Map.groupBy(groups, ({ fields }) => JSON.stringify(fields))
  return [...byFields.values()].map((same) => {
    const [first, ...others] = same
    const more = others.length === 0 ? '' : ` and ${others.length} more`
    return { place: `${first?.place}${more}`, fields: first?.fields ?? [] }
  })
}
