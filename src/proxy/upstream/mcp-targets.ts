/** MCP servers: where they are, and how policies find them. */
import { isIP } from 'node:net'
import { GatewayError } from '../../errors.ts'
import type { McpTarget } from '../../model/mcp-targets.ts'
import type { BackendAccess, BackendPart } from '../config/backend-access.ts'
import { type NamedTarget, nameTarget } from '../config/rules.ts'
import type { UpstreamAddress } from '../engine/types.ts'
import { bareHost, joinAuthority } from './authority.ts'
import { chooseEndpoint, type EndpointSet, now } from './choose.ts'
import { plainAddress, UpstreamEndpoint } from './endpoint.ts'
import { statedVersion } from './http-version.ts'
import { NameEndpoints, type NameRace } from './name-endpoints.ts'
import type { ResolveContext } from './resolve.ts'
import { portPart } from './services.ts'

/** One target of a backend. Lives as long as the target stays what it is. */
export interface McpTargetEntry {
  readonly target: McpTarget
  /** By which policies are merged; one for each target. */
  readonly named: NamedTarget
  /** The one endpoint of a static target with an address; undefined for names and Services. */
  readonly endpoints: EndpointSet | undefined
}

export interface McpBackend {
  readonly type: 'mcp'
  readonly targets: readonly McpTargetEntry[]
  readonly isStateless: boolean
}

interface BackendName {
  readonly namespace: string
  readonly name: string
}

/** `before`: what the backend was; targets that have not changed keep what is known of them. */
export function compileTargets(
  backend: BackendName,
  targets: readonly McpTarget[],
  isStateless: boolean,
  before: McpBackend | undefined,
): McpBackend {
  const known = new Map(
    before?.targets.map((entry) => [JSON.stringify(entry.target), entry] as const),
  )
  return {
    type: 'mcp',
    targets: targets.map((one) => known.get(JSON.stringify(one)) ?? compileTarget(backend, one)),
    isStateless,
  }
}

function compileTarget({ namespace, name }: BackendName, target: McpTarget): McpTargetEntry {
  const { destination } = target
  const named = nameTarget({ type: 'backend', namespace, name })
  if (destination.type === 'service' || isIP(bareHost(destination.host)) === 0) {
    return { target, named, endpoints: undefined }
  }
  const address = plainAddress(bareHost(destination.host), destination.port)
  const all = [new UpstreamEndpoint(address)]
  return { target, named, endpoints: { preferred: all, all } }
}

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
  const isHttp2 = versionOf(context, entry, access) === '2'
  const profile = access.profiles.of(host)
  const choose = (endpoints: EndpointSet): McpPlace => {
    const kept = endpoints.all.find(({ address }) => address.label === pinned)
    const endpoint = kept ?? chooseEndpoint(endpoints, { random: context.random, now })
    if (endpoint === undefined) throw new GatewayError('no_endpoints', entry.target.name)
    const place = {
      endpoint,
      address: profile.address(endpoint.address, isHttp2),
      authority: joinAuthority(host, destination.port, profile.scheme),
    }
    if (endpoints instanceof NameEndpoints) {
      const race = profile.race(endpoints, isHttp2, kept !== undefined)
      return { ...place, others: [], ...(race && { race }) }
    }
    const others = endpoints.all.filter((one) => one !== endpoint).slice(0, mostOthers)
    return { ...place, others: others.map(({ address }) => profile.address(address, isHttp2)) }
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
  if (destination.type === 'static') return statedVersion(connection)
  const { namespace, name, port } = destination
  return statedVersion(connection, config.services.version(`${namespace}/${name}`, port))
}
