/**
 * How policies are merged. The proxy uses these functions to apply policies, and the control plane uses
 * them to report overridden ones. For each field of a section, the most specific level that sets it
 * provides the whole value; within a level, the oldest policy does. Values are never merged.
 *
 *   frontend   Gateway < port of the Gateway
 *   traffic    Gateway < port of the Gateway < ListenerSet < listener or entry < route < route rule
 *                        < inline in the rule (its CORS filter); if other rules delegate to it, each of
 *                        them comes before it with the same three levels
 *   backend    the same  < backend or Service < Service port or sub-backend
 *                        < inline on the backend < inline on the sub-backend
 */
import type { ObjectRef } from '../../ground/model/names.ts'
import { compareAge, objectKey } from '../../ground/model/names.ts'
import { portSection } from '../../ground/model/port-section.ts'
import type { PolicyPhase, PolicyResource, PolicyTarget } from '../../ground/model/resources.ts'
import type { PolicyDefinition } from './define.ts'

/** Identifies a target of policies. */
export type TargetKey = string

export function targetKey(target: PolicyTarget): TargetKey {
  const section = target.section === undefined ? '' : `#${target.section}`
  return `${target.inline === true ? 'inline:' : ''}${objectKey(target)}${section}`
}

/** Levels from the least specific to the most specific. The targets of a level have equal precedence. */
export type Levels = readonly (readonly TargetKey[])[]

export interface ListenerPlace {
  readonly gateway: ObjectRef
  /** The Gateway itself, or the ListenerSet with the listener. */
  readonly owner: ObjectRef
  /** Name of the listener, or of the ListenerSet's entry. */
  readonly section: string
  readonly port: number
}

interface RulePlace {
  readonly route: ObjectRef
  readonly ruleIndex: number
  readonly ruleName?: string
  /** The rules that delegate requests to this one, from the first. */
  readonly delegatedFrom?: readonly Omit<RulePlace, 'delegatedFrom'>[]
}

export interface BackendPlace {
  readonly backend: ObjectRef
  /** Names of the used part: a Service port's name and number, or a sub-backend's name. */
  readonly sections: readonly string[]
}

export function gatewayLevels(gateway: ObjectRef): Levels {
  return [[targetKey(gateway)]]
}

/** Levels of the section `frontend` on one port of a Gateway. */
export function frontendLevels({ gateway, port }: Pick<ListenerPlace, 'gateway' | 'port'>) {
  const onPort = targetKey({ ...refOf(gateway), section: portSection(port) })
  return [...gatewayLevels(gateway), [onPort]] satisfies Levels
}

/** Levels of a listener. Policies in phase PreRouting use only these levels. */
export function listenerLevels({ gateway, owner, section, port }: ListenerPlace): Levels {
  const levels = [...frontendLevels({ gateway, port })]
  const isEntry = objectKey(owner) !== objectKey(gateway)
  if (isEntry) levels.push([targetKey(owner)])
  levels.push([targetKey({ ...refOf(owner), section })])
  return levels
}

export function ruleLevels(listener: ListenerPlace, rule: RulePlace): Levels {
  const rules = [...(rule.delegatedFrom ?? []), rule]
  return [...listenerLevels(listener), ...rules.flatMap(levelsInRoute)]
}

function levelsInRoute({ route, ruleIndex, ruleName }: RulePlace): Levels {
  const ofRule = ruleName === undefined ? [] : [[targetKey({ ...refOf(route), section: ruleName })]]
  return [[targetKey(route)], ...ofRule, [targetKey(inlineRule(route, ruleIndex))]]
}

/** The target of policies inside a rule. It contains the rule's position, because rules may have no name. */
export function inlineRule(route: ObjectRef, ruleIndex: number): PolicyTarget {
  return { ...refOf(route), section: `${ruleIndex}`, inline: true }
}

/**
 * The levels of a rule, followed by those of its chosen destination. `behind` is a Service that an MCP
 * backend has selected as its target. Its policies are more specific than those of the backend.
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

/** The policies of one field that apply after merging. */
interface MergedPolicy {
  readonly definition: PolicyDefinition
  /** The winning policy; with `append` all policies, from the least specific level, oldest first. */
  readonly policies: readonly PolicyResource[]
}

/**
 * Merges the policies on the given levels, in the order of `definitions`. Fields that no policy sets are
 * left out. `policiesOf` returns the policies of a target in any order. A policy that cannot be enforced
 * has no effect if a more specific one overrides it; with `append` nothing is overridden.
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

/** The oldest policy of the most specific level that has policies. */
function winner(levels: readonly PolicyResource[][]): PolicyResource[] {
  const mostSpecific = levels.findLast((level) => level.length > 0)
  return mostSpecific === undefined ? [] : mostSpecific.slice(0, 1)
}

/** Returns whether the policy sets this field, in this phase, on a kind of target where it has an effect. */
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

/** Sorts the policies of a level by age, as Gateway API resolves conflicts. */
export function byAge(a: PolicyResource, b: PolicyResource): number {
  return compareAge(
    { created: a.created, order: a.order, ...a.policy },
    { created: b.created, order: b.order, ...b.policy },
  )
}
