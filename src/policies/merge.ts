/**
 * How policies combine: one pure rule, used by the proxy to enforce and by the control plane to say
 * what was overridden. Per field of a section: the most specific level that has the field gives the
 * whole value; within a level the oldest policy. Nothing is merged inside a field.
 *
 *   frontend   Gateway
 *   traffic    Gateway < ListenerSet < listener or entry < route < route rule
 *                        < inline in the rule (its CORS filter)
 *   backend    the same  < backend or Service < Service port or sub-backend
 *                        < inline on the backend < inline on the sub-backend
 */
import type { ObjectRef } from '../model/names.ts'
import { compareAge, objectKey } from '../model/names.ts'
import type { PolicyPhase, PolicyResource, PolicyTarget } from '../model/resources.ts'
import type { PolicyDefinition } from './define.ts'

/** Identity of a place that policies can target. */
export type TargetKey = string

export function targetKey(target: PolicyTarget): TargetKey {
  const section = target.section === undefined ? '' : `#${target.section}`
  return `${target.inline === true ? 'inline:' : ''}${objectKey(target)}${section}`
}

/** Least specific first; the targets of one level are equal in rank. */
export type Levels = readonly (readonly TargetKey[])[]

export interface ListenerPlace {
  readonly gateway: ObjectRef
  /** The Gateway itself, or the ListenerSet that has the listener. */
  readonly owner: ObjectRef
  /** Name of the listener or entry. */
  readonly section: string
}

interface RulePlace {
  readonly route: ObjectRef
  readonly ruleIndex: number
  readonly ruleName?: string
}

export interface BackendPlace {
  readonly backend: ObjectRef
  /** Names of the part that is used: a Service port by name and number, or a sub-backend. */
  readonly sections: readonly string[]
}

export function gatewayLevels(gateway: ObjectRef): Levels {
  return [[targetKey(gateway)]]
}

/** Levels of a listener; they also are the levels of the PreRouting phase. */
export function listenerLevels({ gateway, owner, section }: ListenerPlace): Levels {
  const levels = [[targetKey(gateway)]]
  const isEntry = objectKey(owner) !== objectKey(gateway)
  if (isEntry) levels.push([targetKey(owner)])
  levels.push([targetKey({ ...refOf(owner), section })])
  return levels
}

export function ruleLevels(listener: ListenerPlace, rule: RulePlace): Levels {
  const { route, ruleIndex, ruleName } = rule
  const levels = [...listenerLevels(listener), [targetKey(route)]]
  if (ruleName !== undefined) levels.push([targetKey({ ...refOf(route), section: ruleName })])
  return [...levels, [targetKey(inlineRule(route, ruleIndex))]]
}

/** The target of what stands inside a rule itself; rules need no name, so they go by position. */
export function inlineRule(route: ObjectRef, ruleIndex: number): PolicyTarget {
  return { ...refOf(route), section: `${ruleIndex}`, inline: true }
}

/**
 * Levels above the rule's that a chosen destination adds. `behind`: a Service that an MCP backend
 * has selected as its target; what is said of it is more specific than what is said of the backend.
 */
export function backendLevels(
  above: Levels,
  { backend, sections }: BackendPlace,
  behind?: BackendPlace,
): Levels {
  const ref = refOf(backend)
  return [
    ...above,
    [targetKey(ref)],
    ...(behind === undefined ? [] : [[targetKey(refOf(behind.backend))]]),
    sections.map((section) => targetKey({ ...ref, section })),
    ...(behind === undefined ? [] : [sectionsOf(behind)]),
    [targetKey({ ...ref, inline: true })],
    sections.map((section) => targetKey({ ...ref, section, inline: true })),
  ]
}

const sectionsOf = ({ backend, sections }: BackendPlace): readonly TargetKey[] =>
  sections.map((section) => targetKey({ ...refOf(backend), section }))

const refOf = ({ kind, namespace, name }: ObjectRef): ObjectRef => ({ kind, namespace, name })

/** What holds for one field at one place. */
interface MergedPolicy {
  readonly definition: PolicyDefinition
  /** The winner; with `append` all that apply, least specific level first, oldest first. */
  readonly policies: readonly PolicyResource[]
}

/**
 * Merges what targets the levels, in the order of `definitions`; fields that nobody sets are left
 * out. `policiesOf` gives what targets a key, in any order. Only what wins counts: where a policy
 * that cannot be enforced is overridden by a more specific one, the more specific one is in force,
 * as it would be if the other were fine; with `append` nothing is overridden, so it always counts.
 */
export function mergePolicies(
  definitions: readonly PolicyDefinition[],
  phase: PolicyPhase,
  levels: Levels,
  policiesOf: (target: TargetKey) => readonly PolicyResource[],
): MergedPolicy[] {
  const ranked = levels
    .map((targets) => targets.flatMap(policiesOf))
    .filter((level) => level.length > 0)
  if (ranked.length === 0) return []
  const merged: MergedPolicy[] = []
  for (const definition of definitions) {
    const found = ranked.map((level) =>
      level.filter((policy) => concerns(definition, phase, policy)).sort(byAge),
    )
    const policies = definition.merge === 'append' ? found.flat() : winner(found)
    if (policies.length > 0) merged.push({ definition, policies })
  }
  return merged
}

/** The oldest policy of the most specific level that has any. */
function winner(levels: readonly PolicyResource[][]): PolicyResource[] {
  const most = levels.findLast((level) => level.length > 0)
  return most === undefined ? [] : most.slice(0, 1)
}

/** Does the policy set this field, in this phase, on a target where the field has an effect? */
export function concerns(
  definition: PolicyDefinition,
  phase: PolicyPhase,
  policy: PolicyResource,
): boolean {
  return (
    policy.section === definition.section &&
    policy.field === definition.field &&
    policy.phase === phase &&
    (phase === 'PostRouting' || definition.preRouting) &&
    (definition.effectiveOn?.includes(policy.target.kind) ?? true)
  )
}

/** Order within a level: Gateway API's habit for conflicts, the older object first. */
export function byAge(a: PolicyResource, b: PolicyResource): number {
  return compareAge(
    { created: a.created, order: a.order, ...a.policy },
    { created: b.created, order: b.order, ...b.policy },
  )
}
