/** GatewayBackends with one address or host name. */

import { isIP } from 'node:net'
import { andThen } from '../../../../ground/base/and-then.ts'
import { bareHost } from '../../../../ground/base/bare-host.ts'
import { GatewayError } from '../../../../ground/errors/index.ts'
import type { UpstreamVersion } from '../../../../ground/exchange/connection.ts'
import type { BackendAccess } from '../../../proxy/config/backend-access.ts'
import { type BackendKind, CompiledBackends } from '../../../proxy/request/backend-kind.ts'
import {
  atAddress,
  atHost,
  type DestinationOptions,
  type ResolveContext,
  requireRoom,
  usableAccess,
} from '../../../proxy/request/destinations.ts'
import type { Destination } from '../../../proxy/upstream/destination.ts'
import { plainAddress, UpstreamEndpoint } from '../../../proxy/upstream/endpoint.ts'
import { type RequestTraits, upstreamVersion } from '../../../proxy/upstream/http-version.ts'

interface StaticBackend {
  /** Host name or IP address, without brackets. */
  readonly host: string
  readonly port: number
  /** Undefined if the host is a name, which has to be resolved. */
  readonly endpoint?: UpstreamEndpoint
}

export function staticKind(context: ResolveContext): BackendKind {
  const backends = new CompiledBackends('static', (_, settings) => compile(settings))
  return {
    type: 'static',
    protocol: 'http',
    set: backends.set,
    remove: backends.remove,
    destination(placement, named, request, options) {
      const backend = backends.find(named.name)
      if (backend === undefined) throw new GatewayError('service_not_found', named.name)
      return atStatic(context, backend, usableAccess(placement, named), request, options)
    },
    warmUp({ destination }) {
      if (destination.type === 'static') context.resolver.hosts.warm(destination.host)
    },
  }
}

function compile({ host, port }: { host: string; port: number }): StaticBackend {
  const bare = bareHost(host)
  if (isIP(bare) === 0) return { host: bare, port }
  return { host: bare, port, endpoint: new UpstreamEndpoint(plainAddress(bare, port)) }
}

function atStatic(
  context: ResolveContext,
  backend: StaticBackend,
  access: BackendAccess,
  request: RequestTraits,
  options: DestinationOptions,
): Destination | Promise<Destination> {
  const { host, port, endpoint } = backend
  // Read this before the lookup, because the request may end during the lookup.
  const version = upstreamVersion(access.policies.connection, request)
  if (endpoint !== undefined) {
    requireRoom(context, endpoint)
    return keptDestination(backend, endpoint, access, version)
  }
  const place = { host, port, access, version }
  return andThen(context.resolver.hosts.endpoints(host, port), atHost, context, place, options)
}

/** The destination of a backend with an IP address, cached until the configuration changes. */
function keptDestination(
  backend: StaticBackend,
  endpoint: UpstreamEndpoint,
  access: BackendAccess,
  version: UpstreamVersion,
): Destination {
  if (access.destinations?.of !== backend) access.destinations = { of: backend }
  const { destinations } = access
  let destination = destinations[version]
  if (destination === undefined) {
    const { host, port } = backend
    const place = { host, port, access, version }
    destination = atAddress(place, endpoint.address, false, endpoint)
    destinations[version] = destination
  }
  return destination
}
