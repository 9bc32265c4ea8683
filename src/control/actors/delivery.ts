/**
 * Derives inputs of statuses from what proxies have in force. A Gateway or a ListenerSet is
 * programmed once every ready proxy that serves it has acknowledged the position of its generation.
 * This latches for the generation, so that a restarting proxy does not change the condition; it ends
 * if there is no proxy for a while. A rejection stands until a ready proxy no longer has it. A proxy
 * that does not answer for too long is named and not waited for until it answers. On a new log, a
 * status in the cluster may show that an object was programmed, which latches it too.
 *
 * Inputs: `programmed:<object key>` = the latched generation; `addresses:<ns>/<name>` = addresses on
 * which the proxies of a Gateway serve; `rejected:<resource key>` and `rejected-code:<resource key>` =
 * why a proxy rejects the resource; `refused:<object key>` = the same for the object of the resource;
 * `absent:<ns>/<name>` = no proxy of the Gateway has been connected for a while;
 * `silent:<ns>/<name>` = its proxies that do not answer, joined by commas; `older:<ns>/<name>` = its
 * proxies that know only a part of their configuration.
 */
import type { SluiceEvent, WasProgrammed } from '../../../events/index.ts'
import { compareText, type ObjectKey } from '../../ground/model/names.ts'
import type { Graph } from '../desired/graph.ts'
import type { ObjectState } from '../desired/object-state.ts'
import { FoldTimers, type PendingTimer } from './delivery-timers.ts'
import { gatewayOf, ListenerOwners, latchAfter } from './listener-owners.ts'
import {
  absentProxy,
  nextProxy,
  type ProxyInput,
  type ProxySnapshot,
  type ProxyState,
  type RecordedRejection,
} from './proxy.machine.ts'
import { byObject } from './rejected-objects.ts'

/** How long a Gateway stays programmed without a proxy. */
const absenceMs = 30_000
/** How long a proxy may take to answer. */
const silenceMs = 30_000
const absent = 'absent:'
/** Code of a resource that a proxy applies without the parts that its older version does not know. */
const partlyKnown = 'resource_partly_known'
const silent = 'silent:'

/** A connected proxy according to the log; `ready` once it has a configuration in force. */
export interface ConnectedProxy extends ProxyState {
  readonly state: 'connected' | 'ready' | 'silent'
}

/** A rejection, with the Gateway of the proxy. */
interface ProxyRejection extends RecordedRejection {
  readonly gateway?: string
}

interface Persisted {
  readonly proxies: readonly (readonly [string, ProxySnapshot])[]
  readonly latched: readonly (readonly [ObjectKey, number])[]
  readonly rejected: readonly (readonly [string, ProxyRejection])[]
  readonly addresses: readonly (readonly [string, string])[]
  readonly timers: readonly PendingTimer[]
  readonly silent: readonly string[]
  readonly absent: readonly string[]
}

export class Delivery {
  readonly #graph: Graph
  readonly #proxies = new Map<string, ProxySnapshot>()
  readonly #owners = new ListenerOwners()
  /** Owner -> the programmed generation. */
  readonly #latched = new Map<ObjectKey, number>()
  /** Owners whose generation is not programmed yet. */
  readonly #unlatched = new Set<ObjectKey>()
  /** Gateway, `namespace/name` -> addresses, joined by commas; kept while there is no proxy. */
  readonly #addresses = new Map<string, string>()
  /** Resource key -> why it is rejected; each is an input of the graph. */
  readonly #rejected = new Map<string, ProxyRejection>()
  /** Objects with a rejected resource; each is an input of the graph. */
  #refusedObjects: readonly ObjectKey[] = []
  /** Proxies that have not answered for too long. */
  readonly #silent = new Set<string>()
  /** Gateways, `namespace/name`, that have had no proxy for too long. */
  readonly #absent = new Set<string>()
  readonly #timers = new FoldTimers()
  /** Whether `settle` must update the timers. */
  #areTimersStale = false

  constructor(graph: Graph) {
    this.#graph = graph
  }

  /** Updates the owners of listeners. Called with every object that changes. */
  noteObject(
    key: ObjectKey,
    before: ObjectState | undefined,
    after: ObjectState | undefined,
  ): void {
    const ref = (after ?? before)?.ref
    if (ref?.kind !== 'Gateway' && ref?.kind !== 'ListenerSet') return
    this.#areTimersStale = true
    this.#owners.set(key, after)
    this.#latch(key, latchAfter(this.#latched.get(key), before, after))
    if (ref.kind !== 'Gateway') return
    const gateway = `${ref.namespace}/${ref.name}`
    this.#setAddresses(gateway)
    this.#setPresence(gateway)
  }

  /**
   * Latches what was programmed before the object was in this log, according to its status in the cluster.
   */
  remember(key: ObjectKey, { generation, addresses }: WasProgrammed): void {
    const owner = this.#owners.get(key)
    if (owner?.generation !== generation) return
    this.#latch(key, generation)
    const { kind, namespace, name } = owner.ref
    const gateway = `${namespace}/${name}`
    if (kind !== 'Gateway' || addresses.length === 0 || this.#addresses.has(gateway)) return
    this.#putAddresses(gateway, [...addresses].sort().join(','))
  }

  /** Folds a delivery event. Returns false for other events. */
  apply(event: SluiceEvent): boolean {
    if (event.type === 'dev.sluice.timer.fired.v1') return this.#fire(event.data)
    const input = toProxyInput(event)
    if (input === undefined) return false
    const { proxy, stream } = event.data as { proxy: string; stream?: string }
    const before = this.#proxies.get(proxy) ?? absentProxy(proxy)
    // Events about an older connection are ignored. It may be found broken after the proxy has reconnected.
    const isOther = stream !== undefined && before.context.stream !== stream
    if (input.type !== 'CONNECTED' && isOther) return true
    const after = nextProxy(before, input)
    if (after.value === 'absent') this.#proxies.delete(proxy)
    else this.#proxies.set(proxy, after)
    const wasSilent = input.type !== 'REJECTED' && this.#silent.delete(proxy)
    if (isProgress(before, after) && !wasSilent) this.#takeProgress(after)
    else this.#join()
    return true
  }

  /** Of a proxy that answers and rejects nothing, only the position has changed. */
  #takeProgress(proxy: ProxySnapshot): void {
    this.#latchReached()
    if (!this.#isLate(proxy)) this.#timers.cancel(silent + proxy.context.proxy)
  }

  /** The pending timers; the same array until they change. */
  timers(): readonly PendingTimer[] {
    return this.#timers.list
  }

  /** Updates timers after an event; `time` is the event's time. */
  settle(time: string): void {
    if (!this.#areTimersStale) return
    this.#areTimersStale = false
    const timeMs = Date.parse(time)
    const isLatched = (name: string) =>
      [...this.#owners.keysOf(name)].some((key) => this.#latched.has(key))
    const lost = this.#owners
      .gateways()
      .filter((name) => !this.#isAttended(name) && isLatched(name))
    const late = [...this.#proxies].filter(([, proxy]) => this.#isLate(proxy)).map(([key]) => key)
    const named = (prefix: string, names: string[]) => new Set(names.map((name) => prefix + name))
    this.#timers.want(named(absent, lost), timeMs, absenceMs, absent)
    this.#timers.want(named(silent, late), timeMs, silenceMs, silent)
  }

  #fire(fired: PendingTimer): boolean {
    if (!this.#timers.fire(fired)) return true
    const { timer } = fired
    if (timer.startsWith(silent)) this.#silent.add(timer.slice(silent.length))
    if (timer.startsWith(absent)) this.#unlatch(timer.slice(absent.length))
    this.#join()
    return true
  }

  #unlatch(gateway: string): void {
    this.#absent.add(gateway)
    for (const key of this.#owners.keysOf(gateway)) this.#latch(key, undefined)
  }

  /** Whether any proxy of the Gateway is connected and answers. */
  #isAttended(gateway: string): boolean {
    for (const [key, { context }] of this.#proxies) {
      if (serves(context, gateway) && !this.#silent.has(key)) return true
    }
    return false
  }

  /** Whether an answer of the proxy is due. */
  #isLate({ context }: ProxySnapshot): boolean {
    if (this.#silent.has(context.proxy)) return false
    if (context.watermark < 0) return true
    return context.watermark < this.#owners.newestGeneration(context.gateway)
  }

  proxies(): readonly ConnectedProxy[] {
    return [...this.#proxies.values()]
      .map((proxy) => ({ ...proxy.context, state: this.#stateOf(proxy) }))
      .sort((a, b) => compareText(a.proxy, b.proxy))
  }

  #stateOf(proxy: ProxySnapshot): ConnectedProxy['state'] {
    if (this.#silent.has(proxy.context.proxy)) return 'silent'
    return proxy.value === 'ready' ? 'ready' : 'connected'
  }

  snapshot(): Persisted {
    return {
      proxies: [...this.#proxies],
      latched: [...this.#latched],
      rejected: [...this.#rejected],
      addresses: [...this.#addresses],
      timers: this.#timers.list,
      silent: [...this.#silent],
      absent: [...this.#absent],
    }
  }

  restore(persisted: unknown): void {
    const { proxies, latched, rejected, addresses, timers, ...sets } = persisted as Persisted
    for (const [key, proxy] of proxies) this.#proxies.set(key, proxy)
    for (const [key, generation] of latched) this.#latch(key, generation)
    for (const [key, rejection] of rejected) this.#setRejected(key, rejection)
    for (const [name, text] of addresses) this.#putAddresses(name, text)
    for (const proxy of sets.silent) this.#silent.add(proxy)
    for (const name of sets.absent) this.#absent.add(name)
    this.#timers.restore(timers)
    this.#joinPresence()
    this.#joinObjects()
  }

  #join(): void {
    this.#areTimersStale = true
    this.#joinPresence()
    this.#joinRejections()
    for (const gateway of this.#owners.gateways()) this.#setAddresses(gateway)
    this.#latchReached()
  }

  /** Latches the owners of listeners whose generation is in force. */
  #latchReached(): void {
    for (const key of this.#unlatched) {
      const owner = this.#owners.get(key)
      const gateway = owner && gatewayOf(owner)
      if (owner === undefined || gateway === undefined) continue
      if (this.#watermark(gateway) < owner.generationSequence) continue
      this.#latch(key, owner.generation)
    }
  }

  #latch(key: ObjectKey, generation: number | undefined): void {
    if (generation === undefined) this.#latched.delete(key)
    else this.#latched.set(key, generation)
    const owner = this.#owners.get(key)
    if (owner === undefined || owner.generation === generation) this.#unlatched.delete(key)
    else this.#unlatched.add(key)
    this.#graph.setInput(`programmed:${key}`, generation)
  }

  /**
   * The position that every proxy of a Gateway has reached, except for those that do not answer; -1 if one has
   * connected and not answered yet, because it may still serve an older configuration, or if there is none.
   */
  #watermark(gateway: string): number {
    let lowest = Number.POSITIVE_INFINITY
    for (const { value, context } of this.#proxies.values()) {
      if (!serves(context, gateway) || this.#silent.has(context.proxy)) continue
      lowest = Math.min(lowest, value === 'ready' ? context.watermark : -1)
    }
    return lowest === Number.POSITIVE_INFINITY ? -1 : lowest
  }

  #setAddresses(name: string): void {
    if (!this.#owners.hasGateway(name)) {
      this.#putAddresses(name, undefined)
      return
    }
    const addresses = new Set<string>()
    for (const { context } of this.#proxies.values()) {
      if (context.address !== undefined && serves(context, name)) addresses.add(context.address)
    }
    if (addresses.size > 0) this.#putAddresses(name, [...addresses].sort().join(','))
  }

  #putAddresses(name: string, text: string | undefined): void {
    if (text === undefined) this.#addresses.delete(name)
    else this.#addresses.set(name, text)
    this.#graph.setInput(`addresses:${name}`, text)
  }

  #joinPresence(): void {
    for (const name of this.#owners.gateways()) this.#setPresence(name)
  }

  /** Sets the inputs about the proxies of a Gateway, and removes them if it is gone. */
  #setPresence(name: string): void {
    const isKnown = this.#owners.hasGateway(name)
    if (this.#absent.has(name) && this.#isAttended(name)) this.#absent.delete(name)
    const silent = [...this.#silent].filter((proxy) => {
      const context = this.#proxies.get(proxy)?.context
      return context !== undefined && serves(context, name)
    })
    const set = (input: string, value: unknown) =>
      this.#graph.setInput(`${input}:${name}`, (isKnown && value) || undefined)
    set('absent', this.#absent.has(name))
    set('silent', silent.sort().join(', '))
    set('older', this.#olderProxies(name))
  }

  /** Proxies that know only a part of their configuration, with an example for each. */
  #olderProxies(gateway: string): string {
    const older: string[] = []
    for (const [key, { context }] of this.#proxies) {
      if (!serves(context, gateway)) continue
      const partly = Object.keys(context.rejections).filter(
        (resource) => context.rejections[resource]?.code === partlyKnown,
      )
      if (partly.length > 0) older.push(`${key} (such as ${partly.sort()[0]})`)
    }
    return older.sort().join(', ')
  }

  #joinRejections(): void {
    const standing = new Map<string, ProxyRejection>()
    for (const key of [...this.#proxies.keys()].sort()) {
      const context = this.#proxies.get(key)?.context
      for (const [resource, rejection] of Object.entries(context?.rejections ?? {})) {
        // A partly known resource is in force; the Gateway's condition names it.
        if (rejection.code === partlyKnown || standing.has(resource)) continue
        standing.set(resource, named(rejection, context))
      }
    }
    for (const [key, { gateway }] of [...this.#rejected]) {
      if (!standing.has(key) && this.#hasReady(gateway)) this.#setRejected(key, undefined)
    }
    for (const [key, rejection] of standing) this.#setRejected(key, rejection)
    this.#joinObjects()
  }

  /** Sets the inputs about objects, which follow from those about resources. */
  #joinObjects(): void {
    const refused = byObject(this.#rejected)
    for (const object of this.#refusedObjects) {
      if (!refused.has(object)) this.#graph.setInput(`refused:${object}`, undefined)
    }
    for (const [object, message] of refused) this.#graph.setInput(`refused:${object}`, message)
    this.#refusedObjects = [...refused.keys()]
  }

  #hasReady(gateway: string | undefined): boolean {
    for (const snapshot of this.#proxies.values()) {
      if (snapshot.value !== 'ready') continue
      if (gateway === undefined || serves(snapshot.context, gateway)) return true
    }
    return false
  }

  #setRejected(key: string, rejection: ProxyRejection | undefined): void {
    if (rejection === undefined) this.#rejected.delete(key)
    else this.#rejected.set(key, rejection)
    this.#graph.setInput(`rejected:${key}`, rejection?.message)
    this.#graph.setInput(`rejected-code:${key}`, rejection?.code)
  }
}

/** Adds the name of the proxy to the message if a Gateway can have several proxies. */
function named(rejection: RecordedRejection, context: ProxyState | undefined): ProxyRejection {
  if (context?.gateway === undefined) return rejection
  const { code, message } = rejection
  return { code, message: `proxy ${context.proxy}: ${message}`, gateway: context.gateway }
}

/** Whether the proxy is ready, and rejects nothing, in all of these states. */
function isProgress(...snapshots: readonly ProxySnapshot[]): boolean {
  const rejects = ({ context }: ProxySnapshot) => Object.keys(context.rejections).length > 0
  return snapshots.every((snapshot) => snapshot.value === 'ready' && !rejects(snapshot))
}

function serves(proxy: ProxyState, gateway: string): boolean {
  return proxy.gateway === undefined || proxy.gateway === gateway
}

function toProxyInput(event: SluiceEvent): ProxyInput | undefined {
  switch (event.type) {
    case 'dev.sluice.proxy.connected.v1': {
      const { gateway, address, stream, replica, version } = event.data
      return { type: 'CONNECTED', gateway, address: address || undefined, stream, replica, version }
    }
    case 'dev.sluice.proxy.disconnected.v1':
      return { type: 'DISCONNECTED' }
    case 'dev.sluice.config.acked.v1': {
      const { sequence, refused } = event.data
      return { type: 'ACKED', sequence, ...(refused && { refused }) }
    }
    case 'dev.sluice.config.rejected.v1': {
      const { key, code, message } = event.data
      return { type: 'REJECTED', key, rejection: { code, message } }
    }
    default:
      return undefined
  }
}
