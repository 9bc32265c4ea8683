import { isIP } from 'node:net'
import { GatewayError } from '../../../ground/errors/index.ts'
import type { BackendAccess } from '../config/backend-access.ts'
import { defaultPort, splitAuthority } from '../upstream/authority.ts'
import type { Destination } from '../upstream/destination.ts'
import { plainAddress, type UpstreamEndpoint } from '../upstream/endpoint.ts'
import { type RequestTraits, upstreamVersion } from '../upstream/http-version.ts'
import { atAddress, atHost, type ResolveContext } from './destinations.ts'

/**
 * Resolves the authority of a request. A name is refused unless all of its addresses are allowed, and
 * connections go only to the addresses that were checked.
 */
export async function resolveAuthority(
  context: ResolveContext,
  access: BackendAccess,
  request: RequestTraits,
  avoid: UpstreamEndpoint | undefined,
): Promise<Destination> {
  const { hosts, isAllowed } = context.resolver
  const target = splitAuthority(request.authority)
  if (target === undefined) throw new GatewayError('bad_request', 'no host to forward to')
  const { host } = target
  const isTunnel = request.method === 'CONNECT'
  const port = target.port ?? defaultPort(isTunnel ? 'https' : access.profiles.of(host).scheme)
  // Read this before the lookup, because the request may end during the lookup.
  const version = upstreamVersion(access.policies.connection, request)
  const place = { host, port, access, version }
  if (isIP(host) !== 0) {
    if (!isAllowed(host)) throw new GatewayError('destination_refused')
    return atAddress(place, plainAddress(host, port), true)
  }
  const endpoints = await hosts.endpoints(host, port)
  if (!endpoints.all.every(({ address }) => isAllowed(address.host))) {
    throw new GatewayError('destination_refused')
  }
  return atHost(endpoints, context, place, { avoid })
}
