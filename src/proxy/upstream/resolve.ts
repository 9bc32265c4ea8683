/** From a backendRef to an address: the last thing that can go wrong before bytes are sent. */
import { isIP } from 'node:net'
import type { UpstreamAddress } from '../../engine/sockets/upstream-address.ts'
import { GatewayError } from '../../errors/index.ts'
import type { UpstreamVersion } from '../../exchange/connection.ts'
import { serviceHost } from '../../model/service-host.ts'
import type { BackendAccess, BackendPart } from '../config/backend-access.ts'
import type { RulePlacement } from '../config/placement.ts'
import type { NamedTarget } from '../config/rules.ts'
import type { ConfigStore } from '../config/store.ts'
import { defaultPort, joinAuthority, splitAuthority } from './authority.ts'
import type { StaticDestination } from './backends.ts'
import { chooseEndpoint, type EndpointSet, endpointAt, now } from './choose.ts'
import type { Destination } from './destination.ts'
import { plainAddress, type UpstreamEndpoint } from './endpoint.ts'
import type { HostResolver } from './host-resolver.ts'
import { type Asked, upstreamVersion } from './http-version.ts'
import type { NameEndpoints } from './name-endpoints.ts'
import type { RequestCap } from './request-cap.ts'
import { portPart } from './services.ts'

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

interface ResolveOptions {
  /** TCP where absent. */
  readonly transport?: 'TCP' | 'UDP'
  /** An endpoint that has failed just now: another one is taken, where there is one. */
  readonly avoid?: UpstreamEndpoint | undefined
  /** The address that a session belongs to: it is taken where it is there and in use. */
  readonly host?: string
  readonly port?: number
}

interface ServicePortChoice {
  readonly port: number
  readonly options: ResolveOptions
  readonly request: Asked
}

/** Where policies of destinations are merged: a rule or a stream route on a listener. */
type PolicyPlace = Pick<RulePlacement, 'backend'>

/**
 * Throws or rejects with `backend_invalid`, `service_not_found`, `policy_unenforceable`,
 * `no_endpoints`, `backend_unsupported`, `destination_refused`, `overloaded` or `dns_failed`.
 */
export function resolveDestination(
  context: ResolveContext,
  placement: PolicyPlace,
  named: NamedTarget,
  request: Asked,
  options: ResolveOptions = {},
): Destination | Promise<Destination> {
  const { target, name } = named
  if (target.type === 'invalid') {
    const isMissing = target.reason === 'BackendNotFound'
    throw new GatewayError(isMissing ? 'service_not_found' : 'backend_invalid', target.message)
  }
  // Who is to answer for a pool is asked elsewhere: inference/resolve-pool.ts.
  if (target.type === 'pool') throw new GatewayError('backend_unsupported', wanted.pool)
  if (target.type === 'service') {
    const choice = { port: target.port, options, request }
    return resolveService(context, placement, named, choice)
  }
  const backend = context.config.backends.find(name)
  if (backend === undefined) throw new GatewayError('service_not_found', name)
  const access = usable(placement, named, whole)
  if (backend.type === 'static') return atStatic(context, backend, access, request, options)
  if (backend.type === 'dynamic') return resolveDynamic(context, access, request, options.avoid)
  const why =
    backend.type === 'unsupported' ? backend.message : `only ${wanted[backend.type]} can go there`
  throw new GatewayError('backend_unsupported', why)
}

const wanted = {
  ai: 'requests to a model',
  mcp: 'requests of MCP clients',
  pool: 'requests of an HTTPRoute',
}

function atStatic(
  context: ResolveContext,
  backend: StaticDestination,
  access: BackendAccess,
  request: Asked,
  options: ResolveOptions,
): Destination | Promise<Destination> {
  const { host, port, endpoint } = backend
  // The request may be over by the time of the lookup.
  const version = upstreamVersion(access.policies.connection, request)
  if (endpoint !== undefined) {
    requireRoom(context, endpoint)
    return keptDestination(backend, endpoint, access, version)
  }
  const place = { host, port, access, version }
  const found = context.resolver.hosts.endpoints(host, port)
  if (!(found instanceof Promise)) return atHost(context, place, found, options)
  return found.then((endpoints) => atHost(context, place, endpoints, options))
}

/** The only one of a backend that is an address, made once for each of its configurations. */
function keptDestination(
  backend: StaticDestination,
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
    destination = { ...atAddress(place, endpoint.address, false), endpoint }
    destinations[version] = destination
  }
  return destination
}

function choose(
  { random, cap }: ResolveContext,
  endpoints: EndpointSet,
  { avoid, host, port }: ResolveOptions,
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

function atAddress(
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
function requireRoom({ cap }: Pick<ResolveContext, 'cap'>, endpoint: UpstreamEndpoint): void {
  if (cap !== undefined && endpoint.load >= cap.most) throw endpoint.overload()
}

function atHost(
  context: ResolveContext,
  place: HostPlace,
  endpoints: NameEndpoints,
  options: ResolveOptions,
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

function resolveService(
  context: ResolveContext,
  placement: PolicyPlace,
  named: NamedTarget,
  { port, options, request }: ServicePortChoice,
): Destination {
  const { config, resolver } = context
  const { transport = 'TCP' } = options
  const { name } = named
  const service = config.services.find(name)
  if (service === undefined) throw new GatewayError('service_not_found', name)
  const access = usable(placement, named, () => portPart(service.ports, port, transport))
  const endpoints = config.services.endpoints(name, port, transport)
  const endpoint = choose(context, endpoints, options)
  if (endpoint === undefined) throw new GatewayError('no_endpoints', `${name}:${port}`)
  const host = serviceHost(service.name, service.namespace, resolver.clusterDomain)
  const { connection } = access.policies
  const version = upstreamVersion(connection, request, config.services.version(name, port))
  return atMember(context, access, { host, port, endpoint, version })
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

function usable(
  placement: PolicyPlace,
  named: NamedTarget,
  part: () => BackendPart,
): BackendAccess {
  const access = placement.backend(named, part)
  const { problem } = access
  if (problem !== undefined) throw new GatewayError(problem.code, problem.detail)
  return access
}

/** What holds for a backend that has no parts. Throws `policy_unenforceable` or `backend_needs_tls`. */
export function usableAccess(placement: PolicyPlace, named: NamedTarget): BackendAccess {
  return usable(placement, named, whole)
}

const wholeBackend: BackendPart = { sections: [], needsTls: false }
const whole = (): BackendPart => wholeBackend
