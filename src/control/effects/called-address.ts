/** Where the control plane calls a backend: address, server name and TLS settings. */

import type { BackendTlsConfig } from '../../ground/model/backend-tls.ts'
import type { KeySetRequest } from '../../ground/model/key-sets.ts'
import type { Resource } from '../../ground/model/resources.ts'
import { serviceHost } from '../../ground/model/service-host.ts'
import { usableEndpoints } from '../../ground/model/usable-endpoints.ts'
import { backendPolicy } from '../desired/backend-policy.ts'

/** A backend, with the address of a static one. */
type CalledBackend = Pick<KeySetRequest, 'target' | 'address'> & {
  /** The target of the backend whose policies apply, too. */
  readonly section?: string
}

export interface CalledAddress {
  /** A name or an IP address. */
  readonly host: string
  readonly port: number
  /** Name of the server, in the Host header and, unless `tls` has another one, in TLS. */
  readonly name: string
  readonly tls: BackendTlsConfig | undefined
}

/** @throws Error for users if there is no address, or if a policy cannot be enforced */
export function calledAddress(
  request: CalledBackend,
  resources: readonly Resource[],
  clusterDomain: string,
  random: () => number,
): CalledAddress {
  const { target, address } = request
  const tls = tlsOf(request, resources)
  if (address !== undefined) return { ...address, name: address.host, tls }
  if (target.type !== 'service') throw new Error('the backend has no address')
  const { namespace, name, port } = target
  const endpoints = endpointsOf(resources, namespace, name, port)
  const chosen = endpoints[Math.floor(random() * endpoints.length)]
  if (chosen === undefined) throw new Error(`Service ${namespace}/${name} has no ready endpoint`)
  return { ...chosen, name: serviceHost(name, namespace, clusterDomain), tls }
}

function tlsOf(
  { target, section }: CalledBackend,
  resources: readonly Resource[],
): BackendTlsConfig | undefined {
  const policy = backendPolicy(resources, target, 'tls', section)
  if (policy === undefined) return undefined
  // The call fails; it never falls back to plaintext.
  if (policy.unenforceable !== undefined) throw new Error(policy.unenforceable)
  return JSON.parse(policy.config) as BackendTlsConfig
}

function endpointsOf(
  resources: readonly Resource[],
  namespace: string,
  name: string,
  port: number,
): { host: string; port: number }[] {
  const service = resources.find(({ key }) => key === `service/${namespace}/${name}`)
  if (service?.type !== 'service') return []
  const portName = service.ports.find((candidate) => candidate.port === port)?.name
  const bound = resources.flatMap((resource) => {
    if (resource.type !== 'workload' || resource.service !== name) return []
    if (resource.namespace !== namespace) return []
    const found = resource.ports.find((candidate) => candidate.name === portName)
    if (found === undefined) return []
    return resource.endpoints.map((endpoint) => ({ ...endpoint, port: found.port }))
  })
  return usableEndpoints(bound, service.publishNotReady).map((one) => ({
    host: one.address,
    port: one.port,
  }))
}
