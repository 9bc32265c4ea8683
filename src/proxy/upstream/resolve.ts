/** From a backendRef to an address: the last thing that can go wrong before bytes are sent. */
import { GatewayError } from '../../errors.ts'
import type { RequestHead } from '../../exchange/exchange.ts'
import type { BackendAccess, RulePlacement } from '../config/placement.ts'
import type { NamedTarget } from '../config/rules.ts'
import type { ConfigStore } from '../config/store.ts'
import { defaultPort, joinAuthority, splitAuthority } from './authority.ts'
import type { StaticDestination } from './backends.ts'
import type { Destination } from './destination.ts'
import { type Lookup, resolveHost } from './dynamic.ts'
import { chooseEndpoint, plainAddress } from './endpoint.ts'
import { portSections } from './services.ts'

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

/** Where policies of destinations are merged: a rule or a stream route on a listener. */
type PolicyPlace = Pick<RulePlacement, 'backend'>

/** What names the destination of a dynamic forward proxy. */
type Authority = Pick<RequestHead, 'authority' | 'scheme'>

/**
 * Throws or rejects with `backend_invalid`, `service_not_found`, `policy_unenforceable`,
 * `no_endpoints`, `backend_unsupported`, `destination_refused` or `dns_failed`.
 */
export function resolveDestination(
  context: ResolveContext,
  placement: PolicyPlace,
  named: NamedTarget,
  request: Authority,
  transport: 'TCP' | 'UDP' = 'TCP',
): Destination | Promise<Destination> {
  const { target, name } = named
  if (target.type === 'invalid') throw new GatewayError('backend_invalid', target.message)
  if (target.type === 'service') {
    return resolveService(context, placement, named, target.port, transport)
  }
  const backend = context.config.backends.find(name)
  if (backend === undefined) throw new GatewayError('backend_invalid', name)
  const access = enforced(placement, named, noSections)
  if (backend.type === 'static') return atStatic(backend, access)
  if (backend.type === 'dynamic') return resolveDynamic(context, access, request)
  throw new GatewayError('backend_unsupported', backend.message)
}

function atStatic({ host, port, address, isHostname }: StaticDestination, access: BackendAccess) {
  const profile = access.profiles.of(host)
  return {
    address: profile.address(address),
    others: [],
    authority: joinAuthority(host, port, profile.scheme),
    isHostname,
  }
}

function resolveService(
  { config, random, resolver }: ResolveContext,
  placement: PolicyPlace,
  named: NamedTarget,
  port: number,
  transport: 'TCP' | 'UDP',
): Destination {
  const { name } = named
  const service = config.services.find(name)
  if (service === undefined) throw new GatewayError('service_not_found', name)
  const { profiles } = enforced(placement, named, () =>
    portSections(service.ports, port, transport),
  )
  const endpoint = chooseEndpoint(config.services.endpoints(name, port, transport), random)
  if (endpoint === undefined) throw new GatewayError('no_endpoints', `${name}:${port}`)
  const host = `${service.name}.${service.namespace}.svc.${resolver.clusterDomain}`
  const profile = profiles.of(host)
  return {
    address: profile.address(endpoint.address),
    others: [],
    authority: joinAuthority(host, port, profile.scheme),
    isHostname: false,
    endpoint,
  }
}

async function resolveDynamic(
  { resolver }: ResolveContext,
  { profiles }: BackendAccess,
  { authority }: Authority,
): Promise<Destination> {
  const { lookup, isAllowed } = resolver
  const target = splitAuthority(authority)
  if (target === undefined) throw new GatewayError('bad_request', 'no host to forward to')
  const { host } = target
  const profile = profiles.of(host)
  const port = target.port ?? defaultPort(profile.scheme)
  const [first, ...others] = await resolveHost(host, lookup, isAllowed)
  const at = (address: string) => profile.address(plainAddress(address, port))
  return {
    address: at(first),
    others: others.map(at),
    authority: joinAuthority(host, port, profile.scheme),
    isHostname: true,
  }
}

/** A backend policy that cannot be enforced (TLS, credentials) closes the way to its backend. */
function enforced(
  placement: PolicyPlace,
  named: NamedTarget,
  sections: () => readonly string[],
): BackendAccess {
  const access = placement.backend(named, sections)
  const { closed } = access.policies
  if (closed !== undefined) throw new GatewayError('policy_unenforceable', closed)
  return access
}

const noSections = (): readonly string[] => []
