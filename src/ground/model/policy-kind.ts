/** The kind of the object that a policy comes from, which is a part of the key of its resource. */
import type { PolicyResource } from './resources.ts'

/**
 * Adds the kind to the key of a policy that does not come from a GatewayPolicy, so that it differs from the key of a
 * GatewayPolicy of the same name.
 */
export const withPolicyKind = (resource: PolicyResource, kind: string): PolicyResource => ({
  ...resource,
  key: resource.key.replace('policy/', `policy/${kind}/`),
})

/** Returns the kind of the object that a policy comes from. A policy in its own target comes from the target. */
export function kindOfPolicy({ key, section, target }: PolicyResource): string {
  if (target.inline === true) return target.kind
  const [, place = section] = key.split('/', 2)
  return place === section ? 'GatewayPolicy' : place
}
