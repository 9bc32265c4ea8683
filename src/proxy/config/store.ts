/**
 * The configuration that is in force. Change sets are applied one resource at a time: a changed
 * route costs its own entries, a changed listener those of its routes, a changed policy a new merge
 * where it is next used. What requests have picked up are immutable objects, so a change never
 * reaches a request that is under way.
 *
 *   policy ----target----> gateway, listener, route, rule, service, backend   (by name)
 *   route --attachments--> listener     --backends--> service | backend | pool (by key, by name)
 *   workload ------------> service          pod ------------> pool            (by name)
 */
import type { IoCore } from '../../core/io-core.ts'
import type { StreamProtocol } from '../../engine/contracts/streams.ts'
import type { TicketKeyring } from '../../engine/tls/session-tickets.ts'
import type { TlsChoice } from '../../engine/tls/tls-choice.ts'
import type { ErrorCode } from '../../errors/index.ts'
import type { ClientSettings } from '../../exchange/connection.ts'
import type {
  DesiredDelta,
  ListenerResource,
  Resource,
  ResourceKey,
  ResourceType,
  RouteResource,
  VersionedResource,
} from '../../model/resources.ts'
import type { Locality } from '../upstream/locality.ts'
import { ServiceTable } from '../upstream/services.ts'
import { Certificates } from './certificates.ts'
import { enter, type InstalledRoute, isOn, leave, nowhere } from './installed-route.ts'
import { differsInCertificates, ListenerTables, type PortUse } from './listener-tables.ts'
import type { ListenerPlacement } from './placement.ts'
import { type PolicyAppliers, PolicyIndex, type PolicyServices } from './policies.ts'
import { PortTable } from './port-table.ts'
import { ReceivedSecrets } from './received-secrets.ts'
import { closeRule, compileRule } from './rules.ts'
import { StreamTable } from './streams.ts'

/** A resource that is not in force as it was sent. */
interface RejectedResource {
  readonly key: ResourceKey
  readonly code: ErrorCode
  readonly message: string
}

export interface ApplyResult {
  readonly rejected: readonly RejectedResource[]
  /** Every port that has a listener to serve, ascending. */
  readonly ports: readonly number[]
}

/** Later types lead to earlier ones, so that a change set is complete before routes go live. */
const applyOrder: readonly ResourceType[] = [
  'secret',
  'service',
  'workload',
  'backend',
  'pool',
  'pod',
  'policy',
  'listener',
  'route',
  'stream',
]

/** Keeps resources that only some kinds of backends are made of. */
interface ResourceTable {
  /** `old`: what the resource was until now. */
  set(resource: Resource, old: Resource | undefined): void
  remove(resource: Resource): void
}

interface StoreOptions {
  /** If omitted, such resources are ignored. */
  readonly backends?: ResourceTable
  /** Where the process runs; unknown where absent. */
  readonly locality?: Locality | undefined
  /** With which TLS sessions are taken up again. */
  readonly tickets?: TicketKeyring
}

export class ConfigStore {
  readonly services: ServiceTable
  readonly policies: PolicyIndex
  readonly streams: StreamTable
  /** Rises with every change set. */
  generation = 0
  readonly #core: IoCore
  readonly #backends: ResourceTable | undefined
  readonly #secrets = new ReceivedSecrets()
  readonly #certificates: Certificates
  readonly #tables = new ListenerTables()
  readonly #resources = new Map<ResourceKey, Resource>()
  readonly #routes = new Map<ResourceKey, InstalledRoute>()
  readonly #routesByListener = new Map<ResourceKey, Set<ResourceKey>>()
  /** Of what is in force as it was sent; the same version again is nothing to do. */
  readonly #versions = new Map<ResourceKey, string>()
  /** Of the change set that is being applied. */
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
  }

  /** The value of a secret that was received; undefined where it has not been. */
  secret(digest: string): Uint8Array | undefined {
    return this.#secrets.find(digest)
  }

  /** What is served on a port, in plaintext or over TLS; undefined where nothing is. */
  port(number: number, scheme: 'http' | 'https'): PortTable | undefined {
    return this.#tables.forRequests(number, scheme)
  }

  /** Which listener a TLS handshake is for; undefined where it must fail. */
  chooseTls(port: number, serverName: string | undefined): TlsChoice | 'close' | undefined {
    const table = this.#tables.forStreams(port, 'tls')
    const listener = table?.byServerName(serverName)
    const choice = listener?.tls
    if (listener && choice?.carries === 'http') return choice
    const isRouted = listener !== undefined && this.streams.find(listener, serverName) !== undefined
    return isRouted && choice ? choice : table?.hasStreams() ? 'close' : undefined
  }

  /** What policies settle for connections on a port; several Gateways may share it, one decides. */
  clientSettings(port: number, use: PortUse): ClientSettings {
    return this.#tables.deciding(port, use)?.frontend().client ?? {}
  }

  /** Which listener a connection or session that is forwarded unread is for. */
  streamListener(
    port: number,
    protocol: StreamProtocol,
    serverName: string | undefined,
  ): ListenerPlacement | undefined {
    return this.#tables.forStreams(port, protocol)?.byServerName(serverName)
  }

  /**
   * Takes a change set in. A resource that cannot be applied is named in the result: its last good
   * version stays in force, or what it covers is answered 500; the others are applied.
   */
  apply(delta: DesiredDelta): ApplyResult {
    this.#rejected.clear()
    this.generation++
    for (const key of delta.removed) this.#remove(key)
    for (const type of applyOrder) {
      for (const one of delta.upserted) if (one.resource.type === type) this.#upsert(one)
    }
    return { rejected: [...this.#rejected.values()], ports: this.#tables.ports() }
  }

  /** A full state after a lost connection mostly repeats what is there. */
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
    switch (resource.type) {
      case 'service':
        this.services.setService(resource)
        // Policies may name its ports.
        this.policies.generation++
        break
      case 'workload':
        this.services.setSlice(resource, this.#resources.get(resource.key))
        break
      case 'policy': {
        const problem = this.policies.set(resource)
        if (problem !== undefined) this.#reject(resource.key, problem.code, problem.message)
        break
      }
      case 'listener':
        this.#setListener(resource)
        break
      case 'secret':
        this.#secrets.set(resource)
        break
      case 'route':
        if (!this.#setRoute(resource)) return
        break
      case 'stream': {
        const old = this.#resources.get(resource.key)
        if (old?.type === 'stream') this.streams.remove(old)
        this.streams.set(resource)
        break
      }
      default:
        this.#backends?.set(resource, this.#resources.get(resource.key))
    }
    this.#resources.set(resource.key, resource)
  }

  #remove(key: ResourceKey): void {
    const resource = this.#resources.get(key)
    if (resource === undefined) return
    this.#resources.delete(key)
    this.#versions.delete(key)
    switch (resource.type) {
      case 'service':
        this.services.removeService(resource)
        this.policies.generation++
        break
      case 'workload':
        this.services.removeSlice(resource)
        break
      case 'policy':
        this.policies.remove(key)
        break
      case 'listener':
        this.#dropListener(resource)
        break
      case 'secret':
        this.#secrets.remove(resource)
        break
      case 'route':
        this.#dropRoute(key)
        break
      case 'stream':
        this.streams.remove(resource)
        break
      default:
        this.#backends?.remove(resource)
    }
  }

  // Listeners ------------------------------------------------------------------------------------

  #setListener(listener: ListenerResource): void {
    const old = this.#resources.get(listener.key)
    this.#resources.set(listener.key, listener)
    if (old?.type === 'listener') {
      if (differsInCertificates(old, listener)) {
        this.#renewListener(old, listener)
        return
      }
      this.#dropListener(old)
    }
    const tables = this.#tables.of(listener)
    let table = tables.get(listener.port)
    if (table === undefined) {
      table = new PortTable(this.#core.createRouteTable({ keepsSpecs: false }), this.policies)
      tables.set(listener.port, table)
    }
    table.claim(listener)
    this.#settle(table, listener.hostname)
    if (table.contest(listener.hostname).first !== listener) this.#displace(listener)
  }

  /** New certificates cost new handshakes only: routes and open connections stay as they are. */
  #renewListener(old: ListenerResource, listener: ListenerResource): void {
    const table = this.#tables.of(listener).get(listener.port)
    const serving = table?.renew(old, listener)
    if (serving !== undefined) this.#secureWith(serving)
    else this.#displace(listener)
  }

  /** A certificate that cannot be used leaves the one before it in use, where there is one. */
  #secureWith(placement: ListenerPlacement): void {
    const { resource } = placement
    if (resource.protocol !== 'HTTPS' && resource.protocol !== 'TLS') return
    const problem = placement.secure(this.#certificates)
    if (problem !== undefined) this.#reject(resource.key, 'certificate_unusable', problem)
  }

  #dropListener(listener: ListenerResource): void {
    const tables = this.#tables.of(listener)
    const table = tables.get(listener.port)
    if (table === undefined) return
    table.unclaim(listener)
    this.#settle(table, listener.hostname)
    if (!table.isEmpty) return
    tables.delete(listener.port)
    table.free()
  }

  /** Brings who serves a hostname in line with who may. */
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
    return [...keys].flatMap((key) => this.#routes.get(key) ?? [])
  }

  // Routes ---------------------------------------------------------------------------------------

  /** False where the old version stays in force. */
  #setRoute(resource: RouteResource): boolean {
    const old = this.#routes.get(resource.key)
    const route: InstalledRoute = { rule: compileRule(resource), entries: nowhere }
    const refused = this.#enterAll(route)
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
   * A rule that the core refuses in part, with no last good version: what can be matched is
   * answered 500 rather than left to other, perhaps more open, rules.
   */
  #closeRoute({ rule }: InstalledRoute, refused: readonly string[]): void {
    const why = refused.join('; ')
    const closed = { rule: closeRule(rule, why), entries: nowhere }
    this.#enterAll(closed)
    this.#keepRoute(closed)
    this.#reject(rule.resource.key, 'rule_unusable', why)
  }

  #keepRoute(route: InstalledRoute): void {
    const { key, attachments } = route.rule.resource
    this.#routes.set(key, route)
    for (const { listener } of attachments) {
      const keys = this.#routesByListener.get(listener) ?? new Set()
      this.#routesByListener.set(listener, keys.add(key))
    }
  }

  #dropRoute(key: ResourceKey): void {
    const route = this.#routes.get(key)
    if (route === undefined) return
    leave(route)
    this.#routes.delete(key)
    for (const { listener } of route.rule.resource.attachments) {
      const keys = this.#routesByListener.get(listener)
      keys?.delete(key)
      if (keys?.size === 0) this.#routesByListener.delete(listener)
    }
  }

  /** Enters a route on every listener that serves now; the others find it when they open. */
  #enterAll(route: InstalledRoute): string[] {
    const refused: string[] = []
    for (const { listener: key } of route.rule.resource.attachments) {
      const listener = this.#resources.get(key)
      if (listener?.type !== 'listener' || isOn(route, key)) continue
      const table = this.#tables.of(listener).get(listener.port)
      const serving = table?.servingOf(listener)
      if (table === undefined || serving === undefined) continue
      enter(route, { listener: key, table, ids: table.add(serving, route.rule, refused) })
    }
    return refused
  }

  /** Enters a route on a listener that has just opened. */
  #enter(route: InstalledRoute, table: PortTable, listener: ListenerPlacement): void {
    const refused: string[] = []
    const ids = table.add(listener, route.rule, refused)
    enter(route, { listener: listener.resource.key, table, ids })
    if (refused.length === 0) return
    leave(route)
    this.#closeRoute(route, refused)
  }
}
