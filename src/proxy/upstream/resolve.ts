/** From a backendRef to an address: the last thing that can go wrong before bytes are sent. */
import { GatewayError } from '../../errors.ts'
import type { RequestHead } from '../../exchange/exchange.ts'
import type { RulePlacement } from '../config/placement.ts'
import type { NamedTarget } from '../config/rules.ts'
import type { ConfigStore } from '../config/store.ts'
import { joinAuthority, splitAuthority } from './authority.ts'
import type { Destination } from './destination.ts'
import { type Lookup, resolveAuthority } from './dynamic.ts'
import { chooseEndpoint } from './endpoint.ts'
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

/**
 * Throws or rejects with `backend_invalid`, `service_not_found`, `policy_unenforceable`,
 * `no_endpoints`, `backend_unsupported`, `destination_refused` or `dns_failed`.
 */
export function resolveDestination(
  context: ResolveContext,
  placement: RulePlacement,
  named: NamedTarget,
  request: RequestHead,
): Destination | Promise<Destination> {
  const { target, name } = named
  if (target.type === 'invalid') throw new GatewayError('backend_invalid', target.message)
  if (target.type === 'service') return resolveService(context, placement, named, target.port)
  const backend = context.config.backends.find(name)
  if (backend === undefined) throw new GatewayError('backend_invalid', name)
  requireEnforced(placement, named, noSections)
  if (backend.type === 'static') return backend.destination
  if (backend.type === 'dynamic') return resolveDynamic(context, request)
  throw new GatewayError('backend_unsupported', backend.message)
}

function resolveService(
  { config, random, resolver }: ResolveContext,
  placement: RulePlacement,
  named: NamedTarget,
  port: number,
): Destination {
  const { name } = named
  const service = config.services.find(name)
  if (service === undefined) throw new GatewayError('service_not_found', name)
  requireEnforced(placement, named, () => portSections(service.ports, port))
  const endpoint = chooseEndpoint(config.services.endpoints(name, port), random)
  if (endpoint === undefined) throw new GatewayError('no_endpoints', `${name}:${port}`)
  const host = `${service.name}.${service.namespace}.svc.${resolver.clusterDomain}`
  return {
    address: endpoint.address,
    others: [],
    authority: joinAuthority(host, port, 'http'),
    isHostname: false,
    endpoint,
  }
}

async function resolveDynamic(
  { resolver }: ResolveContext,
  { authority, scheme }: RequestHead,
): Promise<Destination> {
  const { lookup, isAllowed } = resolver
  const [address, ...others] = await resolveAuthority(authority, scheme, lookup, isAllowed)
  const host = splitAuthority(authority)?.host ?? address.host
  return {
    address,
    others,
    authority: joinAuthority(host, address.port, 'http'),
    isHostname: true,
  }
}

/** A backend policy that cannot be enforced (TLS, credentials) closes the way to its backend. */
function requireEnforced(
  placement: RulePlacement,
  named: NamedTarget,
  sections: () => readonly string[],
): void {
  const { closed } = placement.backend(named, sections)
  if (closed !== undefined) throw new GatewayError('policy_unenforceable', closed)
}

const noSections = (): readonly string[] => []
