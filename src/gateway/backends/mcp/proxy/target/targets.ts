/** The targets of MCP backends: their endpoints, and the names by which policies refer to them. */
import { isIP } from 'node:net'
import type { UpstreamAddress } from '../../../../../engines/http/sockets/upstream-address.ts'
import { bareHost } from '../../../../../ground/base/bare-host.ts'
import { GatewayError } from '../../../../../ground/errors/index.ts'
import type {
  McpPins,
  McpPrefixMode,
  McpTarget,
  McpToolSearch,
} from '../../../../../ground/model/mcp-targets.ts'
import type { Destinations } from '../../../../../ground/model/resources.ts'
import type { BackendAccess, BackendPart } from '../../../../proxy/config/backend-access.ts'
import type { RulePlacement } from '../../../../proxy/config/placement.ts'
import { type NamedTarget, nameTarget } from '../../../../proxy/config/rules.ts'
import type { BackendName } from '../../../../proxy/request/backend-kind.ts'
import { endpointsOfName, type ResolveContext } from '../../../../proxy/request/destinations.ts'
import { joinAuthority } from '../../../../proxy/upstream/authority.ts'
import {
  chooseEndpoint,
  type EndpointSet,
  now,
  plainAddress,
  UpstreamEndpoint,
} from '../../../../proxy/upstream/endpoint.ts'
import { statedVersion } from '../../../../proxy/upstream/http-version.ts'
import { NameEndpoints, type NameRace } from '../../../../proxy/upstream/name-endpoints.ts'
import { portPart } from '../../../../proxy/upstream/services.ts'
import type { StdioTarget } from '../../stdio/settings.ts'
import { ToolSelection } from '../../tool-selection.ts'
import { VirtualServer } from './virtual-server.ts'

/** One target of a backend. The same object is used until the configuration of the target changes. */
export interface McpTargetEntry {
  readonly target: McpTarget
  /** Key for merging policies. Every target has its own. */
  readonly named: NamedTarget
  /** The endpoint of a target with an IP address; undefined for host names and Services. */
  readonly endpoints: EndpointSet | undefined
  /** Which of its tools clients get, and how; undefined if all as they are. */
  readonly tools: ToolSelection | undefined
}

/** What is remembered of each target, until its configuration changes. */
export class TargetMemory<Value> {
  readonly #values = new WeakMap<McpTargetEntry, Value>()
  readonly #make: () => Value

  constructor(make: () => Value) {
    this.#make = make
  }

  of(entry: McpTargetEntry): Value {
    let value = this.#values.get(entry)
    if (value === undefined) {
      value = this.#make()
      this.#values.set(entry, value)
    }
    return value
  }
}

export interface McpBackend {
  readonly targets: readonly McpTargetEntry[]
  readonly isStateless: boolean
  /** Digests of approved versions by name, by the target and list that `pinKey` names. */
  readonly pins: ReadonlyMap<string, ReadonlyMap<string, string>>
  readonly prefixMode: McpPrefixMode
  /** Whether a joined request fails if one target does. */
  readonly isFailClosed: boolean
  /** Names of tools and prompts that are known from the log, by the target and list that `pinKey` names. */
  readonly names: ReadonlyMap<string, readonly string[]>
  readonly toolSearch: McpToolSearch | undefined
  readonly servers: readonly VirtualServer[]
}

export const pinKey = ({ target, list }: Pick<McpPins, 'target' | 'list'>): string =>
  `${list} ${target}`

/** Compiles the targets of a backend. Targets that did not change since `previous` keep their state. */
export function compileTargets(
  backend: BackendName,
  { targets, isStateless, pins = [], ...settings }: Destinations['mcp'],
  previous: McpBackend | undefined,
): McpBackend {
  const known = new Map(
    previous?.targets.map((entry) => [JSON.stringify(entry.target), entry] as const),
  )
  const { prefixMode = 'Always', failureMode, names = [], toolSearch, virtualServers } = settings
  return {
    targets: targets.map((one) => known.get(JSON.stringify(one)) ?? compileTarget(backend, one)),
    isStateless,
    pins: new Map(
      pins.map((one) => [
        pinKey(one),
        new Map(one.items.map(({ name, digest }) => [name, digest])),
      ]),
    ),
    prefixMode,
    isFailClosed: failureMode === 'FailClosed',
    names: new Map(names.map((one) => [pinKey(one), one.names])),
    toolSearch,
    servers: (virtualServers ?? []).map((one) => new VirtualServer(one)),
  }
}

function compileTarget({ namespace, name }: BackendName, target: McpTarget): McpTargetEntry {
  const named = nameTarget({ type: 'backend', namespace, name })
  const tools = target.tools && new ToolSelection(target.tools)
  const hosts = hostsOf(target)
  const isFixed = hosts.length > 0 && hosts.every(({ host }) => isIP(bareHost(host)) !== 0)
  if (!isFixed) return { target, named, endpoints: undefined, tools }
  const all = hosts.map(({ host, port }) => endpointAtIp(host, port))
  return { target, named, endpoints: { preferred: all, all }, tools }
}

const endpointAtIp = (host: string, port: number): UpstreamEndpoint =>
  new UpstreamEndpoint(plainAddress(bareHost(host), port))

/** The servers of a static target, which are equal. */
const hostsOf = ({ destination, endpoints = [] }: McpTarget) =>
  destination.type === 'static' ? [destination, ...endpoints] : []

/** Returns the names by which policies may refer to the target: its own, and those of its Service. */
function targetPart({ config }: ResolveContext, { target }: McpTargetEntry): BackendPart {
  const { destination, sections } = target
  if (destination.type === 'static') return { sections, needsTls: false }
  const { namespace, name, port } = destination
  const ports = config.services.find(`${namespace}/${name}`)?.ports ?? []
  const { sections: ofService, needsTls } = portPart(ports, port)
  const backend = { kind: 'Service', namespace, name }
  return { sections, needsTls, behind: { backend, sections: ofService } }
}

/** Returns the merged policies of a target. */
export function accessAt(
  placement: RulePlacement,
  context: ResolveContext,
  entry: McpTargetEntry,
): BackendAccess {
  // Called many times for each request, so that not even the function is made in vain.
  const known = placement.knownBackend(entry.named)
  return known ?? placement.backend(entry.named, () => targetPart(context, entry))
}

/** Whether sessions at the target share a command, so that a client keeps nothing there. */
export const sharesProcess = ({ stdio }: McpTarget): boolean =>
  stdio !== undefined && (JSON.parse(stdio) as StdioTarget).scope !== 'Session'

/** Maximum number of other addresses to try. */
const maxFallbacks = 3

/** The endpoint of a target and how to connect to it. */
export interface McpPlace {
  readonly endpoint: UpstreamEndpoint
  readonly address: UpstreamAddress
  /**
   * Addresses to try if no connection can be made. A server there that lacks the session responds with an
   * error.
   */
  readonly fallbackAddresses: readonly UpstreamAddress[]
  /** Set if a host name has several addresses, of which this is one. */
  readonly race: NameRace | undefined
  /** Value of the Host header. */
  readonly authority: string
}

/**
 * Resolves a target. `pinned` is the label of the endpoint with the session, which is used if it still
 * exists.
 */
export function placeOf(
  context: ResolveContext,
  entry: McpTargetEntry,
  access: BackendAccess,
  pinned: string | undefined,
): McpPlace | Promise<McpPlace> {
  const found = entry.endpoints ?? endpointsOf(context, entry.target, access)
  return found instanceof Promise
    ? found.then((endpoints) => placeAt(context, entry, access, pinned, endpoints))
    : placeAt(context, entry, access, pinned, found)
}

function endpointsOf(
  { config, resolver }: ResolveContext,
  target: McpTarget,
  { policies }: BackendAccess,
): EndpointSet | Promise<EndpointSet> {
  const { destination } = target
  if (destination.type === 'static') {
    const found = hostsOf(target).map(({ host, port }) =>
      endpointsOfName({ resolver }, policies.connection, bareHost(host), port),
    )
    const [only] = found
    return found.length === 1 && only !== undefined ? only : joinEndpoints(found)
  }
  const { namespace, name, port } = destination
  return config.services.endpoints(`${namespace}/${name}`, port)
}

/** Joins the addresses of several names. A name that cannot be resolved is left out, unless none can. */
async function joinEndpoints(
  found: readonly (EndpointSet | Promise<EndpointSet>)[],
): Promise<EndpointSet> {
  const sets = await Promise.allSettled(found)
  const good = sets.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []))
  const [first] = sets
  if (good.length === 0 && first?.status === 'rejected') throw first.reason
  return {
    preferred: good.flatMap(({ preferred }) => preferred),
    all: good.flatMap(({ all }) => all),
  }
}

function placeAt(
  context: ResolveContext,
  entry: McpTargetEntry,
  access: BackendAccess,
  pinned: string | undefined,
  endpoints: EndpointSet,
): McpPlace {
  const { destination, name } = entry.target
  const host =
    destination.type === 'service'
      ? `${destination.name}.${destination.namespace}.svc.${context.resolver.clusterDomain}`
      : bareHost(destination.host)
  const version = versionOf(context, entry, access)
  const profile = access.profiles.of(host)
  const kept = endpoints.all.find(({ address }) => address.label === pinned)
  const endpoint = kept ?? chooseEndpoint(endpoints, { random: context.random, now })
  if (endpoint === undefined) throw new GatewayError('no_endpoints', name)
  const isName = endpoints instanceof NameEndpoints
  return {
    endpoint,
    address: profile.address(endpoint.address, version),
    fallbackAddresses: isName ? none : fallbacksOf(endpoints, endpoint, profile, version),
    race: isName ? profile.race(endpoints, version, kept !== undefined) : undefined,
    authority: joinAuthority(host, destination.port, profile.scheme),
  }
}

const none: readonly UpstreamAddress[] = []

function fallbacksOf(
  { all }: EndpointSet,
  chosen: UpstreamEndpoint,
  profile: ReturnType<BackendAccess['profiles']['of']>,
  version: ReturnType<typeof versionOf>,
): readonly UpstreamAddress[] {
  if (all.length === 1) return none
  const others = all.filter((one) => one !== chosen).slice(0, maxFallbacks)
  return others.map(({ address }) => profile.address(address, version))
}

function versionOf({ config }: ResolveContext, { target }: McpTargetEntry, access: BackendAccess) {
  const { destination } = target
  const { connection } = access.policies
  if (destination.type === 'static') return statedVersion(connection) ?? '1.1'
  const { namespace, name, port } = destination
  return statedVersion(connection, config.services.version(`${namespace}/${name}`, port)) ?? '1.1'
}
