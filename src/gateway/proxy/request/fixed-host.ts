/** The destination of a backend that has one address or host name. */
import { isIP } from 'node:net'
import { andThen } from '../../../ground/base/and-then.ts'
import { bareHost } from '../../../ground/base/bare-host.ts'
import type { ConnectionSettings, UpstreamVersion } from '../../../ground/exchange/connection.ts'
import type { BackendAccess } from '../config/backend-access.ts'
import type { CheckedBackend } from '../upstream/checked-backend.ts'
import type { Destination } from '../upstream/destination.ts'
import { plainAddress, UpstreamEndpoint } from '../upstream/endpoint.ts'
import { plainCall, type RequestTraits, upstreamVersion } from '../upstream/http-version.ts'
import {
  atAddress,
  atHost,
  type DestinationOptions,
  endpointsOfName,
  type ResolveContext,
  requireRoom,
} from './destinations.ts'

export interface FixedHost {
  /** Host name or IP address, without brackets. */
  readonly host: string
  readonly port: number
  /**
   * The endpoint for each proxy before it, by the identity of the proxy; empty without one. Undefined if the host is a
   * name, which has to be resolved.
   */
  readonly endpoints?: Map<string, UpstreamEndpoint>
}

export function fixedHost({ host, port }: { host: string; port: number }): FixedHost {
  const bare = bareHost(host)
  if (isIP(bare) === 0) return { host: bare, port }
  return { host: bare, port, endpoints: new Map() }
}

/** Health of an address by way of one proxy says nothing about the others. */
function endpointOf(
  { host, port, endpoints }: FixedHost,
  { tunnel }: ConnectionSettings,
): UpstreamEndpoint | undefined {
  if (endpoints === undefined) return undefined
  const proxy = tunnel?.identity ?? ''
  let endpoint = endpoints.get(proxy)
  if (endpoint === undefined) {
    endpoint = new UpstreamEndpoint(plainAddress(host, port))
    endpoints.set(proxy, endpoint)
  }
  return endpoint
}

/** Resolves a fixed host. Throws or rejects with `dns_failed` or `overloaded`. */
export function atFixedHost(
  context: ResolveContext,
  backend: FixedHost,
  access: BackendAccess,
  request: RequestTraits,
  options: DestinationOptions,
): Destination | Promise<Destination> {
  const { host, port } = backend
  const endpoint = endpointOf(backend, access.policies.connection)
  // Read this before the lookup, because the request may end during the lookup.
  const version = upstreamVersion(access.policies.connection, request)
  if (endpoint !== undefined) {
    requireRoom(context, endpoint)
    return keptDestination(backend, endpoint, access, version)
  }
  const place = { host, port, access, version }
  const { hosts } = context.resolver
  // Proxies carry no datagrams.
  const resolver = options.transport === 'UDP' ? { hosts } : context.resolver
  return andThen(
    endpointsOfName({ resolver }, access.policies.connection, host, port),
    atHost,
    context,
    place,
    options,
  )
}

/** Returns what active health checks of a fixed host probe. */
export function checkedFixedHost(
  context: ResolveContext,
  backend: FixedHost,
  access: BackendAccess,
  label: string,
): CheckedBackend {
  const { host, port } = backend
  const { connection } = access.policies
  const version = upstreamVersion(connection, plainCall)
  const endpoint = endpointOf(backend, connection)
  const only = endpoint && { preferred: [endpoint], all: [endpoint] }
  const find = () => only ?? endpointsOfName(context, connection, host, port)
  return { label, settings: connection, profiles: access.profiles, host, port, version, find }
}

/** The destination of a host with an IP address, cached until the configuration changes. */
function keptDestination(
  backend: FixedHost,
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
