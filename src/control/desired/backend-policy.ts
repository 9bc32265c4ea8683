/** Finds the backend policy for calls to a backend that do not come from a route. */

import { backendLevels, mergePolicies, targetKey } from '../../gateway/policies/merge.ts'
import { findPolicy } from '../../gateway/policies/registry.ts'
import { targetObject } from '../../ground/model/destinations.ts'
import type { DirectTarget, PolicyResource, Resource } from '../../ground/model/resources.ts'

/**
 * The policy that wins for one field of the section `backend`, of those that target the Service or
 * GatewayBackend itself, or a section of the GatewayBackend; undefined if there is none.
 */
export function backendPolicy(
  resources: Iterable<Resource>,
  target: Exclude<DirectTarget, { readonly type: 'invalid' }>,
  field: string,
  section?: string,
): PolicyResource | undefined {
  const definition = findPolicy('backend', field)
  if (definition === undefined) return undefined
  const all = [...resources]
  const sections =
    target.type === 'service' ? portSections(all, target) : section === undefined ? [] : [section]
  const levels = backendLevels([], { backend: targetObject(target), sections })
  const policies = all.filter((resource) => resource.type === 'policy')
  const [merged] = mergePolicies([definition], 'PostRouting', levels, (key) =>
    policies.filter((policy) => targetKey(policy.target) === key),
  )
  return merged?.policies[0]
}

/** Names by which policies can refer to a port: its name and its number. */
function portSections(
  resources: readonly Resource[],
  { namespace, name, port }: { namespace: string; name: string; port: number },
): string[] {
  const key = `service/${namespace}/${name}`
  const service = resources.find((resource) => resource.key === key)
  const ports = service?.type === 'service' ? service.ports : []
  const named = ports.find((candidate) => candidate.port === port)?.name ?? ''
  return named === '' ? [`${port}`] : [named, `${port}`]
}
