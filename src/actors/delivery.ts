/**
 * What proxies have put in force, joined into facts that statuses read: a Gateway or a ListenerSet
 * is programmed once every ready proxy that serves it has acknowledged the position of its
 * generation. It latches for that generation, so that a restarting proxy does not make the condition
 * flap. A rejection stands until a ready proxy no longer has it: that a proxy went away programs
 * nothing. Where no proxy is there for a while, the latch goes. A proxy that owes an answer for too
 * long is named and no longer waited for, until it answers. Where a log begins anew, the cluster may
 * remember that an object was programmed: that latches it as if its proxies had just gone away.
 *
 * Facts: `programmed:<object key>` = the latched generation; `addresses:<ns>/<name>` = addresses
 * that the proxies of a Gateway serve on; `rejected:<resource key>` and
 * `rejected-code:<resource key>` = why some proxy refuses the resource; `refused:<object key>` = the
 * same for the object that the resource is of; `absent:<ns>/<name>` = no
 * proxy of the Gateway has been there for a while; `silent:<ns>/<name>` = its proxies that owe an
 * answer, joined by commas; `older:<ns>/<name>` = its proxies that do not know all that they get.
 */
import { initialTransition, type SnapshotFrom, transition } from 'xstate'
import type { SluiceEvent, WasProgrammed } from '../../events/index.ts'
import type { Graph } from '../desired/graph.ts'
import type { ObjectState } from '../desired/object-state.ts'
import { gatewayOfSet, specOf } from '../desired/specs.ts'
import { compareText, type ObjectKey, type ObjectRef, objectKey } from '../model/names.ts'
import { FoldTimers, type PendingTimer } from './delivery-timers.ts'
import { type ProxyInput, type ProxyState, proxyMachine, type Rejection } from './proxy.machine.ts'
import { byObject } from './rejected-objects.ts'

type ProxySnapshot = SnapshotFrom<typeof proxyMachine>

/** How long a Gateway stays programmed without a proxy. */
const absenceMs = 30_000
/** How long a proxy may owe an answer. */
const silenceMs = 30_000
const absent = 'absent:'
/** Code of what is in force as far as the proxy knows it. */
const partlyKnown = 'resource_partly_known'
const silent = 'silent:'

/** A proxy as the log knows it; `ready` once it has something in force. */
export interface ConnectedProxy extends ProxyState {
  readonly state: 'connected' | 'ready' | 'silent'
}

/** A rejection with the Gateway whose proxy it comes from, as conditions name it. */
interface ProxyRejection extends Rejection {
  readonly gateway?: string
}

interface Persisted {
  readonly proxies: readonly (readonly [string, Pick<ProxySnapshot, 'value' | 'context'>])[]
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
  /** Gateways and ListenerSets: whatever has listeners of its own. They are few. */
  readonly #owners = new Map<ObjectKey, ObjectState>()
  /** Generation that is programmed, by owner. */
  readonly #latched = new Map<ObjectKey, number>()
  /** Gateway, `namespace/name` -> addresses, joined by commas; they stand while no proxy is there. */
  readonly #addresses = new Map<string, string>()
  /** Resource key -> why it is refused; each is a fact. */
  readonly #rejected = new Map<string, ProxyRejection>()
  /** Objects of which some resource is refused; each is a fact. */
  #refusedObjects: readonly ObjectKey[] = []
  /** Proxies that owe an answer for too long. */
  readonly #silent = new Set<string>()
  /** Gateways, `namespace/name`, that have had no proxy for too long. */
  readonly #absent = new Set<string>()
  readonly #timers = new FoldTimers()
  /** Has anything happened that timers depend on? */
  #isDue = false

  constructor(graph: Graph) {
    this.#graph = graph
  }

  /** Keeps the list of owners of listeners; called with every object that changes. */
  noteObject(
    key: ObjectKey,
    before: ObjectState | undefined,
    after: ObjectState | undefined,
  ): void {
    const ref = (after ?? before)?.ref
    if (ref?.kind !== 'Gateway' && ref?.kind !== 'ListenerSet') return
    this.#isDue = true
    if (before !== undefined && before.uid !== after?.uid) this.#latch(key, undefined)
    if (after === undefined) this.#owners.delete(key)
    else this.#owners.set(key, after)
    this.#setAddresses(ref)
  }

  /** Takes over what was programmed before this log began to know the object. */
  remember(key: ObjectKey, { generation, addresses }: WasProgrammed): void {
    const owner = this.#owners.get(key)
    if (owner?.generation !== generation) return
    this.#latch(key, generation)
    const { kind, namespace, name } = owner.ref
    const gateway = `${namespace}/${name}`
    if (kind !== 'Gateway' || addresses.length === 0 || this.#addresses.has(gateway)) return
    this.#putAddresses(gateway, [...addresses].sort().join(','))
  }

  /** Folds a delivery event; false where the event is of another sort. */
  apply(event: SluiceEvent): boolean {
    if (event.type === 'dev.sluice.timer.fired.v1') return this.#fire(event.data)
    const input = toProxyInput(event)
    if (input === undefined) return false
    const { proxy, stream } = event.data as { proxy: string; stream?: string }
    const before = this.#proxies.get(proxy) ?? initialTransition(proxyMachine, { proxy })[0]
    // A proxy may have come back elsewhere before its older connection was found broken.
    const isOther = stream !== undefined && before.context.stream !== stream
    if (input.type !== 'CONNECTED' && isOther) return true
    const [after] = transition(proxyMachine, before, input)
    if (after.matches('absent')) this.#proxies.delete(proxy)
    else this.#proxies.set(proxy, after)
    if (input.type !== 'REJECTED') this.#silent.delete(proxy)
    this.#isDue = true
    this.#join()
    return true
  }

  /** What the fold wants to be told of; the same array until it changes. */
  timers(): readonly PendingTimer[] {
    return this.#timers.list
  }

  /** Brings timers in line with what an event has changed; `timeMs` is the event's. */
  settle(timeMs: number): void {
    if (!this.#isDue) return
    this.#isDue = false
    const gateways = [...this.#owners.values()].filter(({ ref }) => ref.kind === 'Gateway')
    const left = gateways.map(({ ref }) => `${ref.namespace}/${ref.name}`)
    const lost = left.filter((name) => this.#isLatched(name) && !this.#isAttended(name))
    const owing = [...this.#proxies].filter(([, proxy]) => this.#owes(proxy)).map(([key]) => key)
    const named = (prefix: string, names: string[]) => new Set(names.map((name) => prefix + name))
    this.#timers.want(named(absent, lost), timeMs, absenceMs, absent)
    this.#timers.want(named(silent, owing), timeMs, silenceMs, silent)
  }

  #fire(fired: PendingTimer): boolean {
    if (!this.#timers.fire(fired)) return true
    const { timer } = fired
    if (timer.startsWith(silent)) this.#silent.add(timer.slice(silent.length))
    if (timer.startsWith(absent)) this.#unlatch(timer.slice(absent.length))
    this.#isDue = true
    this.#join()
    return true
  }

  #unlatch(gateway: string): void {
    this.#absent.add(gateway)
    for (const [key, owner] of this.#owners) {
      if (gatewayOf(owner) === gateway) this.#latch(key, undefined)
    }
  }

  #isLatched(gateway: string): boolean {
    for (const [key, owner] of this.#owners) {
      if (this.#latched.has(key) && gatewayOf(owner) === gateway) return true
    }
    return false
  }

  /** Is any proxy of the Gateway there that answers? */
  #isAttended(gateway: string): boolean {
    for (const [key, { context }] of this.#proxies) {
      if (serves(context, gateway) && !this.#silent.has(key)) return true
    }
    return false
  }

  /** Has the proxy not answered something that concerns it? */
  #owes({ context }: ProxySnapshot): boolean {
    if (this.#silent.has(context.proxy)) return false
    if (context.watermark < 0) return true
    for (const owner of this.#owners.values()) {
      const gateway = gatewayOf(owner)
      if (gateway === undefined || !serves(context, gateway)) continue
      if (context.watermark < owner.generationSequence) return true
    }
    return false
  }

  proxies(): readonly ConnectedProxy[] {
    return [...this.#proxies.values()]
      .map((proxy) => ({ ...proxy.context, state: this.#stateOf(proxy) }))
      .sort((a, b) => compareText(a.proxy, b.proxy))
  }

  #stateOf(proxy: ProxySnapshot): ConnectedProxy['state'] {
    if (this.#silent.has(proxy.context.proxy)) return 'silent'
    return proxy.matches('ready') ? 'ready' : 'connected'
  }

  snapshot(): Persisted {
    return {
      proxies: [...this.#proxies].map(([key, { value, context }]) => [key, { value, context }]),
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
    for (const [key, { value, context }] of proxies) {
      this.#proxies.set(key, proxyMachine.resolveState({ value, context }))
    }
    for (const [key, generation] of latched) this.#latch(key, generation)
    for (const [key, rejection] of rejected) this.#setRejected(key, rejection)
    for (const [name, text] of addresses) this.#putAddresses(name, text)
    for (const proxy of sets.silent) this.#silent.add(proxy)
    for (const name of sets.absent) this.#absent.add(name)
    this.#timers.restore(timers)
    this.#joinPresence()
    this.#tellObjects()
  }

  #join(): void {
    this.#joinPresence()
    this.#joinRejections()
    for (const [key, owner] of this.#owners) {
      this.#setAddresses(owner.ref)
      const gateway = gatewayOf(owner)
      if (gateway === undefined || this.#latched.get(key) === owner.generation) continue
      if (this.#watermark(gateway) < owner.generationSequence) continue
      this.#latch(key, owner.generation)
    }
  }

  #latch(key: ObjectKey, generation: number | undefined): void {
    if (generation === undefined) this.#latched.delete(key)
    else this.#latched.set(key, generation)
    this.#graph.setFact(`programmed:${key}`, generation)
  }

  /** The lowest position that every ready proxy of a Gateway has in force; -1 without one. */
  #watermark(gateway: string): number {
    let lowest = Number.POSITIVE_INFINITY
    for (const snapshot of this.#proxies.values()) {
      if (!snapshot.matches('ready') || !serves(snapshot.context, gateway)) continue
      if (this.#silent.has(snapshot.context.proxy)) continue
      lowest = Math.min(lowest, snapshot.context.watermark)
    }
    return lowest === Number.POSITIVE_INFINITY ? -1 : lowest
  }

  #setAddresses(ref: ObjectRef): void {
    if (ref.kind !== 'Gateway') return
    const name = `${ref.namespace}/${ref.name}`
    if (!this.#owners.has(objectKey(ref))) {
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
    this.#graph.setFact(`addresses:${name}`, text)
  }

  #joinPresence(): void {
    for (const { ref } of this.#owners.values()) {
      if (ref.kind !== 'Gateway') continue
      const name = `${ref.namespace}/${ref.name}`
      if (this.#absent.has(name) && this.#isAttended(name)) this.#absent.delete(name)
      this.#graph.setFact(`absent:${name}`, this.#absent.has(name) || undefined)
      const silent = [...this.#silent].filter((proxy) => {
        const context = this.#proxies.get(proxy)?.context
        return context !== undefined && serves(context, name)
      })
      this.#graph.setFact(`silent:${name}`, silent.sort().join(', ') || undefined)
      this.#graph.setFact(`older:${name}`, this.#olderProxies(name) || undefined)
    }
  }

  /** Proxies that do not know all that they were sent, with an example of each. */
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
        // What is partly known is in force; the Gateway tells of it.
        if (rejection.code === partlyKnown || standing.has(resource)) continue
        standing.set(resource, named(rejection, context))
      }
    }
    for (const [key, { gateway }] of [...this.#rejected]) {
      if (!standing.has(key) && this.#hasReady(gateway)) this.#setRejected(key, undefined)
    }
    for (const [key, rejection] of standing) this.#setRejected(key, rejection)
    this.#tellObjects()
  }

  /** Facts about objects follow from those about resources. */
  #tellObjects(): void {
    const told = byObject(this.#rejected)
    for (const object of this.#refusedObjects) {
      if (!told.has(object)) this.#graph.setFact(`refused:${object}`, undefined)
    }
    for (const [object, message] of told) this.#graph.setFact(`refused:${object}`, message)
    this.#refusedObjects = [...told.keys()]
  }

  #hasReady(gateway: string | undefined): boolean {
    for (const snapshot of this.#proxies.values()) {
      if (!snapshot.matches('ready')) continue
      if (gateway === undefined || serves(snapshot.context, gateway)) return true
    }
    return false
  }

  #setRejected(key: string, rejection: ProxyRejection | undefined): void {
    if (rejection === undefined) this.#rejected.delete(key)
    else this.#rejected.set(key, rejection)
    this.#graph.setFact(`rejected:${key}`, rejection?.message)
    this.#graph.setFact(`rejected-code:${key}`, rejection?.code)
  }
}

/** Says which proxy it is, where there can be several. */
function named(rejection: Rejection, context: ProxyState | undefined): ProxyRejection {
  if (context?.gateway === undefined) return rejection
  const { code, message } = rejection
  return { code, message: `proxy ${context.proxy}: ${message}`, gateway: context.gateway }
}

/** `namespace/name` of the Gateway whose proxies serve the listeners. */
function gatewayOf({ ref, object }: ObjectState): string | undefined {
  if (ref.kind === 'Gateway') return `${ref.namespace}/${ref.name}`
  if (object === undefined) return undefined
  const gateway = gatewayOfSet(ref.namespace, specOf<'ListenerSet'>(object))
  return gateway === undefined ? undefined : `${gateway.namespace}/${gateway.name}`
}

function serves(proxy: ProxyState, gateway: string): boolean {
  return proxy.gateway === undefined || proxy.gateway === gateway
}

function toProxyInput(event: SluiceEvent): ProxyInput | undefined {
  switch (event.type) {
    case 'dev.sluice.proxy.connected.v1': {
      const { gateway, address, stream, replica, version } = event.data
      return {
        type: 'CONNECTED',
        ...(gateway && { gateway }),
        ...(address && { address }),
        ...(stream && { stream }),
        ...(replica && { replica }),
        ...(version && { version }),
      }
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
