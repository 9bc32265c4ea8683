/** GatewayBackends that send requests where clients say, as a forward proxy does. */
import { isIP } from 'node:net'
import { GatewayError } from '../../../errors/index.ts'
import type { BackendAccess } from '../../../proxy/config/backend-access.ts'
import type { BackendKind } from '../../../proxy/request/backend-kind.ts'
import {
  atAddress,
  atHost,
  type ResolveContext,
  usableAccess,
} from '../../../proxy/request/destinations.ts'
import { defaultPort, splitAuthority } from '../../../proxy/upstream/authority.ts'
import type { Destination } from '../../../proxy/upstream/destination.ts'
import { plainAddress, type UpstreamEndpoint } from '../../../proxy/upstream/endpoint.ts'
import { type Asked, upstreamVersion } from '../../../proxy/upstream/http-version.ts'

export const dynamicKind = (context: ResolveContext): BackendKind => ({
  type: 'dynamic',
  protocol: 'http',
  destination: (placement, named, request, { avoid }) =>
    resolveDynamic(context, usableAccess(placement, named), request, avoid),
})

/**
 * Where a client sends a request. Addresses are checked after the lookup, and it is these that are
 * connected to. A name that mixes refused and allowed ones is an attempt to slip through.
 */
export async function resolveDynamic(
  context: ResolveContext,
  access: BackendAccess,
  request: Asked,
  avoid: UpstreamEndpoint | undefined,
): Promise<Destination> {
  const { hosts, isAllowed } = context.resolver
  const target = splitAuthority(request.authority)
  if (target === undefined) throw new GatewayError('bad_request', 'no host to forward to')
  const { host } = target
  const port = target.port ?? defaultPort(access.profiles.of(host).scheme)
  // The request may be over by the time of the lookup.
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
  return atHost(context, place, endpoints, { avoid })
}
