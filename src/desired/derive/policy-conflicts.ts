/**
 * Which fields of a policy lose to another policy that sets them at the same place, or are combined
 * with it. Only places that are the same are compared: that a more specific place wins is how
 * policies are meant to be used, and depends on the request.
 */
import type { ObjectName } from '../../model/names.ts'
import type { PolicyResource } from '../../model/resources.ts'
import { byAge, targetKey } from '../../policies/merge.ts'
import { findPolicy } from '../../policies/registry.ts'
import type { Contribution, Reader } from '../graph.ts'

/** Relation: place and field -> the policies that set it there, the oldest first. */
const relation = 'policy-claims'

export interface Claim {
  /** Key under which rivals meet. */
  readonly key: string
  readonly member: string
  /** `section.field`. */
  readonly field: string
  /** Namespace and name of the target, and its section: `HTTPRoute default/app#rule`. */
  readonly place: string
  /** `Kind/namespace/name` of the target. */
  readonly target: string
}

interface Conflicts {
  /** One sentence for each field that is without effect somewhere. */
  readonly overridden: readonly string[]
  /** One for each that is combined with others. */
  readonly combined: readonly string[]
}

/** The fixed width makes the order of text that of `byAge`. */
function memberOf({ created, order, policy }: PolicyResource): string {
  const age = `${String(created).padStart(16, '0')}/${String(order).padStart(16, '0')}`
  return `${age}/${policy.namespace}/${policy.name}`
}

function ownerOf(member: string): ObjectName {
  const [, , namespace = '', name = ''] = member.split('/')
  return { namespace, name }
}

export function claimsOf(resources: readonly PolicyResource[]): Claim[] {
  return [...resources].sort(byAge).map((resource) => {
    const { section, field, phase, target } = resource
    const part = target.section === undefined ? '' : `#${target.section}`
    return {
      key: `${phase} ${section}.${field} ${targetKey(target)}`,
      member: memberOf(resource),
      field: `${section}.${field}`,
      place: `${target.kind} ${target.namespace}/${target.name}${part}`,
      target: `${target.kind}/${target.namespace}/${target.name}`,
    }
  })
}

export function contributionsOf(claims: readonly Claim[]): Contribution[] {
  return claims.map(({ key, member }) => [relation, key, member])
}

function merges({ field: name }: Claim): boolean {
  const [section = '', field = ''] = name.split('.')
  return findPolicy(section as PolicyResource['section'], field)?.merge === 'append'
}

const nameOf = (member: string): string => {
  const { namespace, name } = ownerOf(member)
  return `GatewayPolicy ${namespace}/${name}`
}

export function conflictsOf(claims: readonly Claim[], read: Reader): Conflicts {
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
