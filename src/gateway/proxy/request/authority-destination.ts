import { isIP } from 'node:net'
import { withoutRootDot } from '../../../ground/base/root-dot.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import type { BackendAccess } from '../config/backend-access.ts'
import { defaultPort, splitAuthority } from '../upstream/authority.ts'
import type { Destination } from '../upstream/destination.ts'
import { plainAddress, type UpstreamEndpoint } from '../upstream/endpoint.ts'
import { type RequestTraits, upstreamVersion } from '../upstream/http-version.ts'
import { atAddress, atHost, endpointsOfName, type ResolveContext } from './destinations.ts'

/**
 * Resolves the authority of a request. `isAllowed` decides about addresses; the default is for authorities of clients.
 * A name is refused unless all of its addresses are allowed, and connections go only to the addresses that were checked.
 */
export async function resolveAuthority(
  context: ResolveContext,
  access: BackendAccess,
  request: RequestTraits,
  avoid: UpstreamEndpoint | undefined,
  isAllowed = context.resolver.mayClientsReach,
): Promise<Destination> {
  const { connection } = access.policies
  const target = splitAuthority(request.authority)
  if (target === undefined) throw new GatewayError('bad_request', 'no host to forward to')
  const { host } = target
  const isTunnel = request.method === 'CONNECT'
  const port = target.port ?? defaultPort(isTunnel ? 'https' : access.profiles.of(host).scheme)
  // Read this before the lookup, because the request may end during the lookup.
  const version = upstreamVersion(connection, request)
  const place = { host, port, access, version }
  if (isIP(host) !== 0) {
    if (!isAllowed(host)) throw new GatewayError('destination_refused')
    return atAddress(place, plainAddress(host, port), true)
  }
  // The proxies of the environment are not meant for destinations that clients name.
  const { hosts, mayClientsReach } = context.resolver
  const resolver = isAllowed === mayClientsReach ? { hosts } : context.resolver
  const endpoints = await endpointsOfName({ resolver }, connection, host, port)
  if (endpoints.all[0]?.address.via !== undefined) {
    if (!mayAskProxy(host, isAllowed)) throw new GatewayError('destination_refused')
    return atHost(endpoints, context, place, { avoid })
  }
  if (!endpoints.all.every(({ address }) => isAllowed(address.host))) {
    throw new GatewayError('destination_refused')
  }
  return atHost(endpoints, context, place, { avoid })
}

/**
 * Whether a proxy may be asked for a name. It resolves the name, so its own rules decide about the addresses. Other
 * spellings of addresses, such as `2852039166`, `0x7f.1` or `127.0.0.1..`, are refused, and so is `localhost` if loopback
 * is refused.
 */
function mayAskProxy(host: string, isAllowed: (address: string) => boolean): boolean {
  const last = withoutRootDot(host).toLowerCase().split('.').at(-1) ?? ''
  if (last === 'localhost') return isAllowed('127.0.0.1')
  return !/^(?:\d*|0x[0-9a-f]*)$/.test(last)
}
