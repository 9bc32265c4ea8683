/**
 * The configuration in force. Change sets are applied one resource at a time. A changed route replaces its
 * own entries, and a changed listener the entries of its routes. Changed policies are merged again when they
 * are next used. Requests hold immutable objects, so a change never affects a request that has begun.
 *
 *   policy ----target----> gateway, listener, route, rule, service, backend   (by name)
 *   route --attachments--> listener     --backends--> service | backend | pool (by key, by name)
 *   workload ------------> service          pod ------------> pool            (by name)
 */
import type { IoCore } from '../../../engines/core/io-core.ts'
import type { StreamProtocol } from '../../../engines/http/contracts/streams.ts'
import type { TicketKeyring } from '../../../engines/http/tls/session-tickets.ts'
import type { TlsChoice } from '../../../engines/http/tls/tls-choice.ts'
import type { ErrorCode } from '../../../ground/errors/index.ts'
import type { ClientSettings } from '../../../ground/exchange/connection.ts'
import type {
  DesiredDelta,
  ListenerResource,
  PolicyResource,
  Resource,
  ResourceKey,
  ResourceType,
  RouteResource,
  VersionedResource,
} from '../../../ground/model/resources.ts'
import { type Locality, ServiceTable } from '../upstream/services.ts'
import { HeaderReferences } from './header-references.ts'
import { differsInCertificates, ListenerTables, type PortUse } from './listener-tables.ts'
import { Certificates } from './listener-tls.ts'
import type { ListenerPlacement } from './placement.ts'
import { type PolicyAppliers, PolicyIndex, type PolicyServices } from './policies.ts'
import { enter, type InstalledRoute, isOn, leave, noEntries, PortTable } from './port-table.ts'
import { ReceivedSecrets } from './received-secrets.ts'
import { compileRule } from './rules.ts'
import { mayChangePorts, type PortConflict } from './shared-ports.ts'
import { StreamTable } from './streams.ts'

/** A resource that could not be applied. */
interface RejectedResource {
  readonly key: ResourceKey
  readonly code: ErrorCode
  readonly message: string
}

export interface ApplyResult {
  readonly rejected: readonly RejectedResource[]
  /** Ports with at least one listener, ascending. */
  readonly ports: readonly number[]
}

/** The order in which the types of a change set are applied. Later types refer to earlier ones. */
const applyOrder: { readonly [type: string]: number } = {
  secret: 0,
  service: 1,
  workload: 2,
  policy: 4,
  listener: 5,
  route: 6,
  stream: 7,
}
const backendOrder = 3

const orderOf = ({ resource }: VersionedResource): number =>
  applyOrder[resource.type] ?? backendOrder

/** Stores one type of resource. */
interface ResourceStore<Stored extends Resource = Resource> {
  /** Stores a resource. Returns false if its previous version, `old`, stays in force. */
  set(resource: Stored, old: Resource | undefined): unknown
  remove(resource: Stored): void
}

interface StoreOptions {
  /** Stores the resources of backend kinds. If omitted, such resources are ignored. */
  readonly backends?: ResourceStore
  /** Zone and node of the process, if known. */
  readonly locality?: Locality | undefined
  /** Session-ticket keys shared by all listeners. If omitted, the store makes its own. */
  readonly tickets?: TicketKeyring
}

export class ConfigStore {
  readonly services: ServiceTable
  readonly policies: PolicyIndex
  readonly streams: StreamTable
  readonly headers = new HeaderReferences()
  readonly routes = new Map<ResourceKey, InstalledRoute>()
  /** Incremented by every change set. */
  generation = 0
  /** Position in the event log of the configuration in force. */
  position = 0
  /** Policies that have no effect on a port, because Gateways that share it have other settings. */
  portConflicts: readonly PortConflict[] = []
  readonly #core: IoCore
  readonly #backends: ResourceStore | undefined
  readonly #stores = new Map<ResourceType, ResourceStore>()
  readonly #secrets = new ReceivedSecrets()
  readonly #certificates: Certificates
  readonly listeners = new ListenerTables()
  readonly #resources = new Map<ResourceKey, Resource>()
  readonly #routesByListener = new Map<ResourceKey, Set<ResourceKey>>()
  /** Versions by key. A resource that is received again with the same version changes nothing. */
  readonly #versions = new Map<ResourceKey, string>()
  /** Rejected resources of the change set that is being applied. */
  readonly #rejected = new Map<ResourceKey, RejectedResource>()

  constructor(
    core: IoCore,
    appliers: PolicyAppliers,
    services: PolicyServices,
    { locality, tickets, backends }: StoreOptions = {},
  ) {
    this.#core = core
    this.#certificates = new Certificates(this.#secrets, tickets)
    this.#backends = backends
    this.services = new ServiceTable(locality)
    this.policies = new PolicyIndex(appliers, services, this.#secrets)
    this.streams = new StreamTable(this.policies)
    this.#addStores()
  }

  #addStores(): void {
    const { services, policies, streams } = this
    this.#add('secret', this.#secrets)
    this.#add('stream', streams)
    this.#add('service', {
      set(resource) {
        services.setService(resource)
        // Policies may target its ports by name, so they must be merged again.
        policies.generation++
      },
      remove(resource) {
        services.removeService(resource)
        policies.generation++
      },
    })
    this.#add('workload', {
      set: (resource, old) => services.setSlice(resource, old),
      remove: (resource) => services.removeSlice(resource),
    })
    this.#add('policy', {
      set: (resource) => this.#setPolicy(resource),
      remove: ({ key }) => policies.remove(key),
    })
    this.#add('listener', {
      set: (resource, old) => this.#setListener(resource, old),
      remove: (resource) => this.#dropListener(resource),
    })
    this.#add('route', {
      set: (resource) => this.#setRoute(resource),
      remove: ({ key }) => this.#dropRoute(key),
    })
  }

  #add<Type extends ResourceType>(
    type: Type,
    store: ResourceStore<Extract<Resource, { readonly type: Type }>>,
  ): void {
    this.#stores.set(type, store)
  }

  /** Returns the value of a secret; undefined if it has not been received. */
  secret(digest: string): Uint8Array | undefined {
    return this.#secrets.find(digest)
  }

  /** Returns the listeners and routes of a port, for plaintext or TLS; undefined if there are none. */
  port(number: number, scheme: 'http' | 'https'): PortTable | undefined {
    return this.listeners.forRequests(number, scheme)
  }

  /** Finds the listener of a TLS handshake; undefined if the handshake must fail. */
  chooseTls(port: number, serverName: string | undefined): TlsChoice | 'close' | undefined {
    const table = this.listeners.forStreams(port, 'tls')
    const listener = table?.byServerName(serverName)
    const choice = listener?.tls
    if (listener && choice?.carries === 'http') return choice
    const isRouted = listener !== undefined && this.streams.find(listener, serverName) !== undefined
    return isRouted && choice ? choice : table?.hasStreams() ? 'close' : undefined
  }

  /** Settings of the client connections of a port. */
  clientSettings(port: number, use: PortUse): ClientSettings {
    return this.listeners.clientSettings(port, use)
  }

  /** Finds the listener of a connection or UDP session that is forwarded without being read. */
  streamListener(
    port: number,
    protocol: StreamProtocol,
    serverName: string | undefined,
  ): ListenerPlacement | undefined {
    return this.listeners.forStreams(port, protocol)?.byServerName(serverName)
  }

  /**
   * Applies a change set. The result names the resources that cannot be applied. Their last good version
   * stays in force or, if there is none, their requests get 500.
   */
  apply(delta: DesiredDelta): ApplyResult {
    this.#rejected.clear()
    this.generation++
    for (const key of delta.removed) this.#remove(key)
    const ordered = delta.upserted.toSorted((a, b) => orderOf(a) - orderOf(b))
    for (const one of ordered) this.#upsert(one)
    if (mayChangePorts(delta)) this.portConflicts = this.listeners.portConflicts()
    return { rejected: [...this.#rejected.values()], ports: this.listeners.ports() }
  }

  /** Skips versions that are in force: after a reconnect, the full state mostly repeats them. */
  #upsert({ resource, version }: VersionedResource): void {
    const { key } = resource
    if (this.#versions.get(key) === version) return
    this.#versions.set(key, version)
    this.#set(resource)
  }

  #reject(key: ResourceKey, code: ErrorCode, message: string): void {
    this.#versions.delete(key)
    this.#rejected.set(key, { key, code, message })
  }

  #set(resource: Resource): void {
    const store = this.#storeOf(resource)
    const old = this.#resources.get(resource.key)
    const isKept = store?.set(resource, old) === false
    if (isKept) return
    this.#resources.set(resource.key, resource)
    this.headers.replace(old, resource)
  }

  #remove(key: ResourceKey): void {
    const resource = this.#resources.get(key)
    if (resource === undefined) return
    this.#resources.delete(key)
    this.#versions.delete(key)
    this.headers.replace(resource, undefined)
    this.#storeOf(resource)?.remove(resource)
  }

  #storeOf({ type }: Resource): ResourceStore | undefined {
    return this.#stores.get(type) ?? this.#backends
  }

  #setPolicy(resource: PolicyResource): void {
    const problem = this.policies.set(resource)
    if (problem !== undefined) this.#reject(resource.key, problem.code, problem.message)
  }

  #setListener(listener: ListenerResource, old: Resource | undefined): void {
    this.#resources.set(listener.key, listener)
    if (old?.type === 'listener') {
      if (differsInCertificates(old, listener)) {
        this.#renewListener(old, listener)
        return
      }
      this.#dropListener(old)
    }
    const tables = this.listeners.of(listener)
    let table = tables.get(listener.port)
    if (table === undefined) {
      table = new PortTable(this.#core.createRouteTable({ keepsSpecs: false }), this.policies)
      tables.set(listener.port, table)
    }
    table.claim(listener)
    this.#settle(table, listener.hostname)
    if (table.contest(listener.hostname).first !== listener) this.#displace(listener)
  }

  /** Replaces the certificates of a listener. Its routes and open connections stay. */
  #renewListener(old: ListenerResource, listener: ListenerResource): void {
    const table = this.listeners.of(listener).get(listener.port)
    const serving = table?.renew(old, listener)
    if (serving !== undefined) this.#secureWith(serving)
    else this.#displace(listener)
  }

  /** Loads the certificates of a listener. If they are unusable, the previous ones stay in use. */
  #secureWith(placement: ListenerPlacement): void {
    const { resource } = placement
    if (resource.protocol !== 'HTTPS' && resource.protocol !== 'TLS') return
    const problem = placement.secure(this.#certificates)
    if (problem !== undefined) this.#reject(resource.key, 'certificate_unusable', problem)
  }

  #dropListener(listener: ListenerResource): void {
    const tables = this.listeners.of(listener)
    const table = tables.get(listener.port)
    if (table === undefined) return
    table.unclaim(listener)
    this.#settle(table, listener.hostname)
    if (!table.isEmpty) return
    tables.delete(listener.port)
    table.free()
  }

  /** Serves the first listener that has a hostname, and stops the one that was served before. */
  #settle(table: PortTable, hostname: string): void {
    const { first, serving } = table.contest(hostname)
    if (serving?.resource === first) return
    if (serving !== undefined) {
      for (const route of this.#routesOf(serving)) leave(route, serving.resource.key)
      table.close(serving)
      if (table.isClaimedBy(serving.resource)) this.#displace(serving.resource)
    }
    if (first === undefined) return
    this.#rejected.delete(first.key)
    const opened = table.open(first)
    if (typeof opened === 'string') {
      this.#reject(first.key, 'rule_unusable', opened)
      return
    }
    this.#secureWith(opened)
    for (const route of this.#routesOf(opened)) this.#enter(route, table, opened)
  }

  #displace({ key, port }: ListenerResource): void {
    this.#reject(key, 'port_in_use', `another listener has port ${port} and the same hostname`)
  }

  #routesOf({ resource }: ListenerPlacement): InstalledRoute[] {
    const keys = this.#routesByListener.get(resource.key) ?? []
    return [...keys].flatMap((key) => this.routes.get(key) ?? [])
  }

  /** Stores a route rule. Returns false if the old version stays in force. */
  #setRoute(resource: RouteResource): boolean {
    const old = this.routes.get(resource.key)
    const route: InstalledRoute = { rule: compileRule(resource, this.#secrets), entries: noEntries }
    const { incomplete } = route.rule
    const refused = incomplete === undefined ? this.#enterAll(route) : [incomplete]
    if (refused.length > 0) {
      leave(route)
      if (old === undefined) this.#closeRoute(route, refused)
      else this.#reject(resource.key, 'rule_unusable', refused.join('; '))
      return old === undefined
    }
    if (old !== undefined) this.#dropRoute(resource.key)
    this.#keepRoute(route)
    return true
  }

  /**
   * Closes a rule that the core refuses in part and that has no last good version. Its requests get 500.
   * Otherwise they could match other rules, which may allow more.
   */
  #closeRoute({ rule }: InstalledRoute, refused: readonly string[]): void {
    const why = refused.join('; ')
    const closed = { rule: { ...rule, unusable: rule.unusable ?? why }, entries: noEntries }
    this.#enterAll(closed)
    this.#keepRoute(closed)
    this.#reject(rule.resource.key, 'rule_unusable', why)
  }

  #keepRoute(route: InstalledRoute): void {
    const { key, attachments } = route.rule.resource
    this.routes.set(key, route)
    for (const { listener } of attachments) {
      const keys = this.#routesByListener.get(listener) ?? new Set()
      this.#routesByListener.set(listener, keys.add(key))
    }
  }

  #dropRoute(key: ResourceKey): void {
    const route = this.routes.get(key)
    if (route === undefined) return
    leave(route)
    this.routes.delete(key)
    for (const { listener } of route.rule.resource.attachments) {
      const keys = this.#routesByListener.get(listener)
      keys?.delete(key)
      if (keys?.size === 0) this.#routesByListener.delete(listener)
    }
  }

  /** Adds a route to every listener that is served now, and returns why matches were refused, if any. */
  #enterAll(route: InstalledRoute): string[] {
    const refused: string[] = []
    for (const { listener: key } of route.rule.resource.attachments) {
      const listener = this.#resources.get(key)
      if (listener?.type !== 'listener' || isOn(route, key)) continue
      const table = this.listeners.of(listener).get(listener.port)
      const serving = table?.servingOf(listener)
      if (table === undefined || serving === undefined) continue
      enter(route, { listener: key, table, ids: table.add(serving, route.rule, refused) })
    }
    return refused
  }

  /** Adds a route to a listener that has just been opened. */
  #enter(route: InstalledRoute, table: PortTable, listener: ListenerPlacement): void {
    const refused: string[] = []
    const ids = table.add(listener, route.rule, refused)
    enter(route, { listener: listener.resource.key, table, ids })
    if (refused.length === 0) return
    leave(route)
    this.#closeRoute(route, refused)
  }
}
