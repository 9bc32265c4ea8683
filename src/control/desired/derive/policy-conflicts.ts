/**
 * Finds fields of a policy that another policy on the same target overrides or is combined with. Only
 * equal targets are compared: overriding by a more specific target is intended, and depends on the
 * request.
 */

import { byAge, targetKey } from '../../../gateway/policies/merge.ts'
import { findPolicy } from '../../../gateway/policies/registry.ts'
import { objectKey } from '../../../ground/model/names.ts'
import type { PolicyResource } from '../../../ground/model/resources.ts'
import type { Contribution, Reader } from '../graph.ts'

/** Relation from target and field to the policies that set the field there, oldest first. */
const relation = 'policy-claims'

export interface FieldClaim {
  /** Key of the relation; claims with the same key conflict. */
  readonly key: string
  readonly member: string
  /** Field name with its section: `section.field`. */
  readonly field: string
  /** The target in messages, with its section: `HTTPRoute default/app#rule`. */
  readonly place: string
  /** The target as `Kind/namespace/name`. */
  readonly target: string
}

interface Conflicts {
  /** One sentence for each field that another policy overrides. */
  readonly overridden: readonly string[]
  /** One sentence for each field that is combined with those of other policies. */
  readonly combined: readonly string[]
}

/** Makes a relation member. Numbers have a fixed width, so that members sort like `byAge`. */
function memberOf({ created, order, policy }: PolicyResource): string {
  const age = `${String(created).padStart(16, '0')}/${String(order).padStart(16, '0')}`
  return `${age}/${policy.namespace}/${policy.name}`
}

export function claimsOf(resources: readonly PolicyResource[]): FieldClaim[] {
  return [...resources].sort(byAge).map((resource) => {
    const { section, field, phase, target } = resource
    const part = target.section === undefined ? '' : `#${target.section}`
    return {
      key: `${phase} ${section}.${field} ${targetKey(target)}`,
      member: memberOf(resource),
      field: `${section}.${field}`,
      place: `${target.kind} ${target.namespace}/${target.name}${part}`,
      target: objectKey(target),
    }
  })
}

export function contributionsOf(claims: readonly FieldClaim[]): Contribution[] {
  return claims.map(({ key, member }) => [relation, key, member])
}

function merges({ field: name }: FieldClaim): boolean {
  const [section = '', field = ''] = name.split('.')
  return findPolicy(section as PolicyResource['section'], field)?.merge === 'append'
}

/** Returns the policy of a relation member, which is `created/order/namespace/name`. */
const nameOf = (member: string): string => `GatewayPolicy ${member.split('/').slice(2).join('/')}`

export function conflictsOf(claims: readonly FieldClaim[], read: Reader): Conflicts {
  const overridden: string[] = []
  const combined: string[] = []
  for (const claim of claims) {
    const rivals = read.members(relation, claim.key)
    const others = rivals.filter((member) => member !== claim.member)
    const [oldest] = rivals
    if (oldest === undefined || others.length === 0) continue
    if (merges(claim)) {
      const names = others.map(nameOf).join(', ')
      combined.push(`spec.${claim.field} on ${claim.place} is combined with ${names}`)
    } else if (oldest !== claim.member) {
      const winner = nameOf(oldest)
      overridden.push(`spec.${claim.field} on ${claim.place} is overridden by ${winner}`)
    }
  }
  return { overridden, combined }
}
