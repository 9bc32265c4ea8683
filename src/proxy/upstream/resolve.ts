/** From a backendRef to an address: the last thing that can go wrong before bytes are sent. */
import { GatewayError } from '../../errors.ts'
import type { BackendAccess, BackendPart } from '../config/backend-access.ts'
import type { RulePlacement } from '../config/placement.ts'
import type { NamedTarget } from '../config/rules.ts'
import type { ConfigStore } from '../config/store.ts'
import { defaultPort, joinAuthority, splitAuthority } from './authority.ts'
import type { StaticDestination } from './backends.ts'
import { chooseEndpoint, now } from './choose.ts'
import type { Destination } from './destination.ts'
import { type Lookup, resolveHost } from './dynamic.ts'
import { plainAddress, type UpstreamEndpoint } from './endpoint.ts'
import { type Asked, wantsHttp2 } from './http-version.ts'
import { portPart } from './services.ts'

/** What is needed besides the configuration. */
export interface DestinationResolver {
  readonly lookup: Lookup
  /** May a dynamic forward proxy reach this address? */
  readonly isAllowed: (address: string) => boolean
  /** Such as `cluster.local`: the last part of the name of a Service. */
  readonly clusterDomain: string
}

interface ResolveContext {
  readonly config: ConfigStore
  readonly resolver: DestinationResolver
  readonly random: () => number
}

interface ResolveOptions {
  /** TCP where absent. */
  readonly transport?: 'TCP' | 'UDP'
  /** An endpoint that has failed just now: another one is taken, where there is one. */
  readonly avoid?: UpstreamEndpoint | undefined
}

interface ServicePortChoice {
  readonly port: number
  readonly transport: 'TCP' | 'UDP'
  readonly avoid: UpstreamEndpoint | undefined
  readonly request: Asked
}

/** Where policies of destinations are merged: a rule or a stream route on a listener. */
type PolicyPlace = Pick<RulePlacement, 'backend'>

/**
 * Throws or rejects with `backend_invalid`, `service_not_found`, `policy_unenforceable`,
 * `no_endpoints`, `backend_unsupported`, `destination_refused` or `dns_failed`.
 */
export function resolveDestination(
  context: ResolveContext,
  placement: PolicyPlace,
  named: NamedTarget,
  request: Asked,
  { transport = 'TCP', avoid }: ResolveOptions = {},
): Destination | Promise<Destination> {
  const { target, name } = named
  if (target.type === 'invalid') throw new GatewayError('backend_invalid', target.message)
  if (target.type === 'service') {
    const choice = { port: target.port, transport, avoid, request }
    return resolveService(context, placement, named, choice)
  }
  const backend = context.config.backends.find(name)
  if (backend === undefined) throw new GatewayError('backend_invalid', name)
  const access = usable(placement, named, whole)
  if (backend.type === 'static') return atStatic(backend, access, request)
  if (backend.type === 'dynamic') return resolveDynamic(context, access, request)
  const why = backend.type === 'ai' ? 'only requests to a model can go there' : backend.message
  throw new GatewayError('backend_unsupported', why)
}

function atStatic(
  { host, port, address, isHostname }: StaticDestination,
  access: BackendAccess,
  request: Asked,
): Destination {
  const profile = access.profiles.of(host)
  const isHttp2 = wantsHttp2(access.policies.connection.version, request)
  return {
    address: profile.address(address, isHttp2),
    others: [],
    authority: joinAuthority(host, port, profile.scheme),
    isHostname,
    settings: access.policies.connection,
    steps: access.steps,
  }
}

function resolveService(
  { config, random, resolver }: ResolveContext,
  placement: PolicyPlace,
  named: NamedTarget,
  { port, transport, avoid, request }: ServicePortChoice,
): Destination {
  const { name } = named
  const service = config.services.find(name)
  if (service === undefined) throw new GatewayError('service_not_found', name)
  const { profiles, policies, steps } = usable(placement, named, () =>
    portPart(service.ports, port, transport),
  )
  const endpoints = config.services.endpoints(name, port, transport)
  const endpoint = chooseEndpoint(endpoints, { random, now }, avoid)
  if (endpoint === undefined) throw new GatewayError('no_endpoints', `${name}:${port}`)
  const host = `${service.name}.${service.namespace}.svc.${resolver.clusterDomain}`
  const profile = profiles.of(host)
  const stated = policies.connection.version ?? config.services.version(name, port)
  return {
    address: profile.address(endpoint.address, wantsHttp2(stated, request)),
    others: [],
    authority: joinAuthority(host, port, profile.scheme),
    isHostname: false,
    settings: policies.connection,
    steps,
    endpoint,
  }
}

async function resolveDynamic(
  { resolver }: ResolveContext,
  { profiles, policies, steps }: BackendAccess,
  request: Asked,
): Promise<Destination> {
  const { lookup, isAllowed } = resolver
  const target = splitAuthority(request.authority)
  if (target === undefined) throw new GatewayError('bad_request', 'no host to forward to')
  const { host } = target
  const profile = profiles.of(host)
  const port = target.port ?? defaultPort(profile.scheme)
  // The request may be over by the time of the lookup.
  const isHttp2 = wantsHttp2(policies.connection.version, request)
  const [first, ...others] = await resolveHost(host, lookup, isAllowed)
  const at = (address: string) => profile.address(plainAddress(address, port), isHttp2)
  return {
    address: at(first),
    others: others.map(at),
    authority: joinAuthority(host, port, profile.scheme),
    isHostname: true,
    settings: policies.connection,
    steps,
  }
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

const wholeBackend: BackendPart = { sections: [], needsTls: false }
const whole = (): BackendPart => wholeBackend
