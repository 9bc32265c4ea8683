/** From a target of an MCP backend to an address. */

import { bareHost } from '../../../base/bare-host.ts'
import type { UpstreamAddress } from '../../../engine/sockets/upstream-address.ts'
import { GatewayError } from '../../../errors/index.ts'
import type { BackendAccess, BackendPart } from '../../../proxy/config/backend-access.ts'
import type { ResolveContext } from '../../../proxy/request/destinations.ts'
import { joinAuthority } from '../../../proxy/upstream/authority.ts'
import { chooseEndpoint, type EndpointSet, now } from '../../../proxy/upstream/choose.ts'
import type { UpstreamEndpoint } from '../../../proxy/upstream/endpoint.ts'
import { statedVersion } from '../../../proxy/upstream/http-version.ts'
import { NameEndpoints, type NameRace } from '../../../proxy/upstream/name-endpoints.ts'
import { portPart } from '../../../proxy/upstream/services.ts'
import type { McpTargetEntry } from './mcp-targets.ts'

/** The target as policies may name it: by its own names, and by the Service that it is. */
export function targetPart({ config }: ResolveContext, { target }: McpTargetEntry): BackendPart {
  const { destination, sections } = target
  if (destination.type === 'static') return { sections, needsTls: false }
  const { namespace, name, port } = destination
  const ports = config.services.find(`${namespace}/${name}`)?.ports ?? []
  const { sections: ofService, needsTls } = portPart(ports, port)
  const backend = { kind: 'Service', namespace, name }
  return { sections, needsTls, behind: { backend, sections: ofService } }
}

const mostOthers = 3

/** An endpoint of a target, as it is connected to. */
export interface McpPlace {
  readonly endpoint: UpstreamEndpoint
  readonly address: UpstreamAddress
  /** Asked where no connection can be made: those that do not know a session will say so. */
  readonly others: readonly UpstreamAddress[]
  /** Set where the address is one of a name. */
  readonly race?: NameRace
  /** Host and port, as Host names them. */
  readonly authority: string
}

/**
 * Where requests to the target go. `pinned`: the label of the endpoint that has the session; another
 * one is taken where that is gone. Throws or rejects with `no_endpoints` or `dns_failed`.
 */
export function placeOf(
  context: ResolveContext,
  entry: McpTargetEntry,
  access: BackendAccess,
  pinned: string | undefined,
): McpPlace | Promise<McpPlace> {
  const { destination } = entry.target
  const { clusterDomain, hosts } = context.resolver
  const host =
    destination.type === 'service'
      ? `${destination.name}.${destination.namespace}.svc.${clusterDomain}`
      : bareHost(destination.host)
  const version = versionOf(context, entry, access)
  const profile = access.profiles.of(host)
  const choose = (endpoints: EndpointSet): McpPlace => {
    const kept = endpoints.all.find(({ address }) => address.label === pinned)
    const endpoint = kept ?? chooseEndpoint(endpoints, { random: context.random, now })
    if (endpoint === undefined) throw new GatewayError('no_endpoints', entry.target.name)
    const place = {
      endpoint,
      address: profile.address(endpoint.address, version),
      authority: joinAuthority(host, destination.port, profile.scheme),
    }
    if (endpoints instanceof NameEndpoints) {
      const race = profile.race(endpoints, version, kept !== undefined)
      return { ...place, others: [], ...(race && { race }) }
    }
    const others = endpoints.all.filter((one) => one !== endpoint).slice(0, mostOthers)
    return { ...place, others: others.map(({ address }) => profile.address(address, version)) }
  }
  if (entry.endpoints !== undefined) return choose(entry.endpoints)
  if (destination.type === 'service') {
    const { namespace, name, port } = destination
    return choose(context.config.services.endpoints(`${namespace}/${name}`, port))
  }
  const found = hosts.endpoints(host, destination.port)
  return found instanceof Promise ? found.then(choose) : choose(found)
}

function versionOf({ config }: ResolveContext, { target }: McpTargetEntry, access: BackendAccess) {
  const { destination } = target
  const { connection } = access.policies
  if (destination.type === 'static') return statedVersion(connection) ?? '1.1'
  const { namespace, name, port } = destination
  return statedVersion(connection, config.services.version(`${namespace}/${name}`, port)) ?? '1.1'
}
