/** From endpoints of a backend to the destination of one attempt. */
import type { UpstreamAddress } from '../../engine/sockets/upstream-address.ts'
import { GatewayError } from '../../errors/index.ts'
import type { UpstreamVersion } from '../../exchange/connection.ts'
import type { BackendAccess, BackendPart } from '../config/backend-access.ts'
import type { RulePlacement } from '../config/placement.ts'
import type { NamedTarget } from '../config/rules.ts'
import type { ConfigStore } from '../config/store.ts'
import { joinAuthority } from '../upstream/authority.ts'
import { chooseEndpoint, type EndpointSet, endpointAt, now } from '../upstream/choose.ts'
import type { Destination } from '../upstream/destination.ts'
import type { UpstreamEndpoint } from '../upstream/endpoint.ts'
import type { HostResolver } from '../upstream/host-resolver.ts'
import type { NameEndpoints } from '../upstream/name-endpoints.ts'
import type { RequestCap } from '../upstream/request-cap.ts'

/** What is needed besides the configuration. */
export interface DestinationResolver {
  readonly hosts: HostResolver
  /** May a dynamic forward proxy reach this address? */
  readonly isAllowed: (address: string) => boolean
  /** Such as `cluster.local`: the last part of the name of a Service. */
  readonly clusterDomain: string
}

export interface ResolveContext {
  readonly config: ConfigStore
  readonly resolver: DestinationResolver
  readonly random: () => number
  /** Most requests that one address of a backend may have under way; no limit where absent. */
  readonly cap?: RequestCap
}

/** Where policies of destinations are merged: a rule or a stream route on a listener. */
export type PolicyPlace = Pick<RulePlacement, 'backend'>

export interface DestinationOptions {
  /** TCP if omitted. */
  readonly transport?: 'TCP' | 'UDP'
  /** An endpoint that has just failed: another one is chosen if there is one. */
  readonly avoid?: UpstreamEndpoint | undefined
  /** The address that a session belongs to: it is chosen if it is still in use. */
  readonly host?: string
  readonly port?: number
}

/** The endpoint of a session if it still has one, else the better of two. */
export function choose(
  { random, cap }: ResolveContext,
  endpoints: EndpointSet,
  { avoid, host, port }: DestinationOptions,
): UpstreamEndpoint | undefined {
  const chance = { random, now, most: cap?.most ?? Number.POSITIVE_INFINITY }
  const kept = host === undefined ? undefined : endpointAt(endpoints, host, port, chance)
  return kept ?? chooseEndpoint(endpoints, chance, avoid)
}

/** A destination by name or address, with what holds for it. */
interface HostPlace {
  readonly host: string
  readonly port: number
  readonly access: BackendAccess
  readonly version: UpstreamVersion
}

export function atAddress(
  { host, port, access, version }: HostPlace,
  address: UpstreamAddress,
  isHostname: boolean,
): Destination {
  const profile = access.profiles.of(host)
  return {
    address: profile.address(address, version),
    authority: joinAuthority(host, port, profile.scheme),
    isHostname,
    settings: access.policies.connection,
    steps: access.steps,
  }
}

/** More requests would only wait, here and there; refusing leaves clients a choice. */
export function requireRoom(
  { cap }: Pick<ResolveContext, 'cap'>,
  endpoint: UpstreamEndpoint,
): void {
  if (cap !== undefined && endpoint.load >= cap.most) throw endpoint.overload()
}

export function atHost(
  context: ResolveContext,
  place: HostPlace,
  endpoints: NameEndpoints,
  options: DestinationOptions,
): Destination {
  const endpoint = choose(context, endpoints, options)
  if (endpoint === undefined) throw new GatewayError('dns_failed', place.host)
  requireRoom(context, endpoint)
  const profile = place.access.profiles.of(place.host)
  // A session stays where it is for as long as that can be reached.
  const isKept = options.host !== undefined && endpoint.address.host === options.host
  const race = profile.race(endpoints, place.version, isKept)
  return { ...atAddress(place, endpoint.address, true), ...(race && { race }), endpoint }
}

/** An endpoint with the name of what it is a member of. */
interface Member {
  readonly host: string
  readonly port: number
  readonly endpoint: UpstreamEndpoint
  readonly version: UpstreamVersion
}

/** The destination at a member of a Service or an InferencePool. Throws `overloaded`. */
export function atMember(
  context: Pick<ResolveContext, 'cap'>,
  { profiles, policies, steps }: BackendAccess,
  { host, port, endpoint, version }: Member,
): Destination {
  requireRoom(context, endpoint)
  const profile = profiles.of(host)
  return {
    address: profile.address(endpoint.address, version),
    authority: joinAuthority(host, port, profile.scheme),
    isHostname: false,
    settings: policies.connection,
    steps,
    endpoint,
  }
}

/** Throws `policy_unenforceable` or `backend_needs_tls`. */
export function usableAccess(
  placement: PolicyPlace,
  named: NamedTarget,
  part: () => BackendPart = whole,
): BackendAccess {
  const access = placement.backend(named, part)
  const { problem } = access
  if (problem !== undefined) throw new GatewayError(problem.code, problem.detail)
  return access
}

const wholeBackend: BackendPart = { sections: [], needsTls: false }
const whole = (): BackendPart => wholeBackend
