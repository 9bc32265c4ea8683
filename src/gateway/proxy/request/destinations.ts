/** Makes the destination of one attempt from the endpoints of a backend. */
import type { UpstreamAddress } from '../../../engines/http/sockets/upstream-address.ts'
import { GatewayError } from '../../../ground/errors/index.ts'
import type { ConnectionSettings, UpstreamVersion } from '../../../ground/exchange/connection.ts'
import type { ProxyFor } from '../../policies/backend-simple/tunnel/environment-proxies.ts'
import type { BackendAccess, BackendPart } from '../config/backend-access.ts'
import type { RulePlacement } from '../config/placement.ts'
import type { NamedTarget } from '../config/rules.ts'
import type { ConfigStore } from '../config/store.ts'
import { joinAuthority } from '../upstream/authority.ts'
import type { Destination } from '../upstream/destination.ts'
import type { UpstreamEndpoint } from '../upstream/endpoint.ts'
import {
  chooseBySession,
  chooseEndpoint,
  type EndpointSet,
  endpointAt,
  now,
} from '../upstream/endpoint.ts'
import type { HostResolver } from '../upstream/host-resolver.ts'
import type { NameEndpoints, NameRace } from '../upstream/name-endpoints.ts'
import type { RequestCap } from '../upstream/request-cap.ts'

export interface DestinationResolver {
  readonly hosts: HostResolver
  /** Whether a call of the gateway may go to this address if another server names it in a URL. */
  readonly isAllowed: (address: string) => boolean
  /** Whether a request whose destination the client names may go to this address. */
  readonly mayClientsReach: (address: string) => boolean
  /** The last part of the host names of Services, such as `cluster.local`. */
  readonly clusterDomain: string
  /** The proxies of the environment, for hosts that the configuration names. If omitted, there are none. */
  readonly proxyFor?: ProxyFor | undefined
}

export interface ResolveContext {
  readonly config: ConfigStore
  readonly resolver: DestinationResolver
  /** Returns random numbers, uniform in [0, 1). */
  readonly random: () => number
  /** Maximum number of concurrent requests to one address of a backend; no limit if omitted. */
  readonly cap?: RequestCap
}

/** The part of a rule or stream route on a listener that merges the policies of destinations. */
export type PolicyPlace = Pick<RulePlacement, 'backend'>

export interface DestinationOptions {
  /** TCP if omitted. */
  readonly transport?: 'TCP' | 'UDP'
  /** An endpoint that has just failed. Other endpoints are preferred to it. */
  readonly avoid?: UpstreamEndpoint | undefined
  /** Host of the endpoint of a persistent session, which is chosen if it is still in use. */
  readonly host?: string
  /** Port of that endpoint. */
  readonly port?: number
  /** The exchange of the request, if a policy may have session affinity. */
  readonly exchange?: object
}

/**
 * Returns the endpoint of the session if it is still in use, then the one of session affinity, otherwise the better of
 * two random ones.
 */
export function choose(
  { random, cap }: ResolveContext,
  endpoints: EndpointSet,
  { avoid, host, port, exchange }: DestinationOptions,
  { health, sessionOf }: Pick<ConnectionSettings, 'health' | 'sessionOf'> = {},
): UpstreamEndpoint | undefined {
  const chance = {
    random,
    now,
    most: cap?.most,
    panicPercent: health?.panicPercent,
    slowStartMs: health?.slowStartMs,
    checked: health?.active?.results,
  }
  const kept = host === undefined ? undefined : endpointAt(endpoints, host, port, chance)
  if (kept !== undefined) return kept
  const session = exchange && sessionOf?.(exchange)
  const affine = session && chooseBySession(endpoints, session, chance, avoid)
  return affine || chooseEndpoint(endpoints, chance, avoid)
}

/** A host and port, with the policies and the HTTP version for it. */
interface HostPlace {
  readonly host: string
  readonly port: number
  readonly access: BackendAccess
  readonly version: UpstreamVersion
}

/** Resolves a name, unless connections use a proxy of a policy or of the environment, which resolves it. */
export function endpointsOfName(
  { resolver }: { readonly resolver: Pick<DestinationResolver, 'hosts' | 'proxyFor'> },
  { tunnel, tls }: ConnectionSettings,
  host: string,
  port: number,
): NameEndpoints | Promise<NameEndpoints> {
  const { hosts, proxyFor } = resolver
  if (tunnel !== undefined) return hosts.unresolved(tunnel, host, port)
  const proxy = proxyFor?.(tls !== undefined, host, port)
  return proxy === undefined ? hosts.endpoints(host, port) : hosts.unresolved(proxy, host, port)
}

export function atAddress(
  { host, port, access, version }: HostPlace,
  address: UpstreamAddress,
  isHostname: boolean,
  endpoint?: UpstreamEndpoint,
  race?: NameRace,
): Destination {
  const profile = access.profiles.of(host)
  return {
    address: profile.address(address, version),
    race,
    authority: joinAuthority(host, port, profile.scheme),
    isHostname,
    settings: access.policies.connection,
    steps: access.steps,
    endpoint,
  }
}

/** Refuses a request if the endpoint has reached its limit. @throws GatewayError `overloaded` */
export function requireRoom(
  { cap }: Pick<ResolveContext, 'cap'>,
  endpoint: UpstreamEndpoint,
): void {
  if (cap !== undefined && endpoint.load >= cap.most) throw endpoint.overload()
}

export function atHost(
  endpoints: NameEndpoints,
  context: ResolveContext,
  place: HostPlace,
  options: DestinationOptions,
): Destination {
  const endpoint = choose(context, endpoints, options, place.access.policies.connection)
  if (endpoint === undefined) throw new GatewayError('dns_failed', place.host)
  requireRoom(context, endpoint)
  const profile = place.access.profiles.of(place.host)
  // A session stays at its address as long as the address can be reached.
  const isKept = options.host !== undefined && endpoint.address.host === options.host
  const race = profile.race(endpoints, place.version, isKept)
  return atAddress(place, endpoint.address, true, endpoint, race)
}

/** Makes the destination for an endpoint of a Service or an InferencePool. Throws `overloaded`. */
export function atMember(
  context: Pick<ResolveContext, 'cap'>,
  place: HostPlace,
  endpoint: UpstreamEndpoint,
): Destination {
  requireRoom(context, endpoint)
  return atAddress(place, endpoint.address, false, endpoint)
}

/** Returns the access to a backend. Throws `policy_unenforceable` or `backend_needs_tls`. */
export function usableAccess(
  placement: PolicyPlace,
  named: NamedTarget,
  part = wholeBackend,
): BackendAccess {
  const access = placement.backend(named, part)
  requireUsable(access)
  return access
}

/** Throws `policy_unenforceable` or `backend_needs_tls`. */
export function requireUsable({ problem }: BackendAccess): void {
  if (problem !== undefined) throw new GatewayError(problem.code, problem.detail)
}

const whole: BackendPart = { sections: [], needsTls: false }
export const wholeBackend = (): BackendPart => whole
