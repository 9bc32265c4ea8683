/** Which policies apply somewhere, field by field, and which are overridden. */

import {
  byAge,
  concerns,
  type Levels,
  mergePolicies,
  type TargetKey,
  targetKey,
} from '../../gateway/policies/merge.ts'
import { policyRegistry } from '../../gateway/policies/registry.ts'
import type { ObjectRef } from '../../ground/model/names.ts'
import type {
  PolicyPhase,
  PolicyResource,
  PolicySection,
  VersionedResource,
} from '../../ground/model/resources.ts'

/** The version of an object that a rule or policy comes from. */
export interface ObjectOrigin {
  readonly generation: number
  /** Position in the log of the event that recorded this version; not set for built-in objects. */
  readonly event?: number
}

export type OriginOf = (ref: ObjectRef) => ObjectOrigin | undefined

/** A policy that sets a field, and whether it applies. */
interface TracedPolicy {
  readonly policy: ObjectRef
  /** The target of the policy, such as `Gateway default/edge#http`. */
  readonly attachedTo: string
  readonly state: 'in force' | 'overridden'
  /** If set, the reason why every request that the policy covers fails with 500. */
  readonly unenforceable?: string
  /** The compiled policy. */
  readonly config: unknown
  readonly origin?: ObjectOrigin
}

/** The policies that set a field, least specific first if several are combined. */
export interface TracedField {
  readonly section: PolicySection
  readonly field: string
  readonly phase: PolicyPhase
  readonly policies: readonly TracedPolicy[]
}

export interface PolicyContext {
  readonly policies: ReadonlyMap<TargetKey, readonly PolicyResource[]>
  readonly originOf: OriginOf
}

export function policiesByTarget(
  resources: readonly VersionedResource[],
): ReadonlyMap<TargetKey, readonly PolicyResource[]> {
  const policies = resources.flatMap(({ resource }) =>
    resource.type === 'policy' ? [resource] : [],
  )
  return Map.groupBy(policies, ({ target }) => targetKey(target))
}

function targetText({ kind, namespace, name, section, inline }: PolicyResource['target']): string {
  const part = section === undefined ? '' : `#${section}`
  return `${kind} ${namespace}/${name}${part}${inline === true ? ' (inline)' : ''}`
}

/** The kind of object that a policy is from. */
function kindOf({ target, section, field }: PolicyResource): string {
  if (target.inline === true) return target.kind
  return section === 'traffic' && field === 'access' ? 'XAccessPolicy' : 'GatewayPolicy'
}

function policyTrace(resource: PolicyResource, applies: boolean, originOf: OriginOf): TracedPolicy {
  const { policy: name, target, unenforceable, config } = resource
  const policy = { kind: kindOf(resource), ...name }
  return {
    policy,
    attachedTo: targetText(target),
    state: applies ? 'in force' : 'overridden',
    unenforceable,
    config: JSON.parse(config) as unknown,
    origin: originOf(policy),
  }
}

/** Every field of a section that a policy sets at one of the levels. */
export function fieldsAt(
  { policies: byTarget, originOf }: PolicyContext,
  section: PolicySection,
  phase: PolicyPhase,
  levels: Levels,
): TracedField[] {
  const policiesAt = (target: TargetKey) => byTarget.get(target) ?? []
  const definitions = policyRegistry.filter((definition) => definition.section === section)
  return mergePolicies(definitions, phase, levels, policiesAt).map(({ definition, policies }) => {
    const all = levels.flatMap((targets) =>
      targets
        .flatMap(policiesAt)
        .filter((policy) => concerns(definition, phase, policy))
        .sort(byAge),
    )
    const traced = all.map((policy) => policyTrace(policy, policies.includes(policy), originOf))
    return { section, field: definition.field, phase, policies: traced }
  })
}
