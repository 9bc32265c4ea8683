/** Kubernetes Services: requests go to one of the endpoints in their EndpointSlices. */
import { GatewayError } from '../../../../ground/errors/index.ts'
import { serviceHost } from '../../../../ground/model/service-host.ts'
import type { NamedTarget } from '../../../proxy/config/rules.ts'
import type { BackendKind } from '../../../proxy/request/backend-kind.ts'
import {
  atMember,
  choose,
  type DestinationOptions,
  type PolicyPlace,
  type ResolveContext,
  usableAccess,
} from '../../../proxy/request/destinations.ts'
import type { CheckedBackend } from '../../../proxy/upstream/checked-backend.ts'
import type { Destination } from '../../../proxy/upstream/destination.ts'
import {
  plainCall,
  type RequestTraits,
  upstreamVersion,
} from '../../../proxy/upstream/http-version.ts'
import { portPart } from '../../../proxy/upstream/services.ts'

export const serviceKind = (context: ResolveContext): BackendKind => ({
  type: 'service',
  protocol: 'http',
  destination: (placement, backend, request, options) =>
    resolveService(context, placement, backend, request, options),
  checked: (placement, backend) => checkedService(context, placement, backend),
  hasEndpoint: ({ name, target }, endpoint) =>
    target.type === 'service' &&
    context.config.services.endpoints(name, target.port, 'UDP').all.includes(endpoint),
})

function resolveService(
  context: ResolveContext,
  placement: PolicyPlace,
  named: NamedTarget,
  request: RequestTraits,
  options: DestinationOptions,
): Destination {
  const { config, resolver } = context
  const { transport = 'TCP' } = options
  const { name, target } = named
  const service = config.services.find(name)
  if (service === undefined || target.type !== 'service') {
    throw new GatewayError('service_not_found', name)
  }
  const { port } = target
  const access = usableAccess(placement, named, () => portPart(service.ports, port, transport))
  const { connection } = access.policies
  const proxy = connection.tunnel?.identity
  const endpoints = config.services.endpoints(name, port, transport, proxy)
  const endpoint = choose(context, endpoints, options, connection)
  if (endpoint === undefined) throw new GatewayError('no_endpoints', `${name}:${port}`)
  const host = serviceHost(service.name, service.namespace, resolver.clusterDomain)
  const version = upstreamVersion(connection, request, config.services.version(name, port))
  return atMember(context, { host, port, access, version }, endpoint)
}

function checkedService(
  { config: { services }, resolver }: ResolveContext,
  placement: PolicyPlace,
  named: NamedTarget,
): CheckedBackend | undefined {
  const { name, target } = named
  const service = services.find(name)
  if (service === undefined || target.type !== 'service') return undefined
  const { port } = target
  const access = usableAccess(placement, named, () => portPart(service.ports, port))
  const { connection } = access.policies
  return {
    label: named.label ?? name,
    settings: connection,
    profiles: access.profiles,
    host: serviceHost(service.name, service.namespace, resolver.clusterDomain),
    port,
    version: upstreamVersion(connection, plainCall, services.version(name, port)),
    find: () => services.endpoints(name, port, 'TCP', connection.tunnel?.identity),
  }
}
