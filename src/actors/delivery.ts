/**
 * What proxies have put in force, joined into facts that statuses read: a Gateway or a ListenerSet
 * is programmed once every ready proxy that serves it has acknowledged the position of its
 * generation. It latches for that generation, so that a restarting proxy does not make the condition
 * flap. A rejection stands until a ready proxy no longer has it: that a proxy went away programs
 * nothing.
 *
 * Facts: `programmed:<object key>` = the latched generation; `addresses:<ns>/<name>` = addresses
 * that the proxies of a Gateway serve on; `rejected:<resource key>` and
 * `rejected-code:<resource key>` = why some proxy refuses the resource.
 */
import { initialTransition, type SnapshotFrom, transition } from 'xstate'
import type { SluiceEvent } from '../../events/index.ts'
import type { Graph } from '../desired/graph.ts'
import type { ObjectState } from '../desired/object-state.ts'
import { gatewayOfSet, type ListenerSetSpec, specOf } from '../desired/shapes.ts'
import { type ObjectKey, type ObjectRef, objectKey } from '../model/names.ts'
import { type ProxyInput, type ProxyState, proxyMachine, type Rejection } from './proxy.machine.ts'

type ProxySnapshot = SnapshotFrom<typeof proxyMachine>

interface Persisted {
  readonly proxies: readonly (readonly [string, Pick<ProxySnapshot, 'value' | 'context'>])[]
  readonly latched: readonly (readonly [ObjectKey, number])[]
  readonly rejected: readonly (readonly [string, Rejection])[]
  readonly addresses: readonly (readonly [string, string])[]
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
  readonly #rejected = new Map<string, Rejection>()

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
    if (before !== undefined && before.uid !== after?.uid) this.#latch(key, undefined)
    if (after === undefined) this.#owners.delete(key)
    else this.#owners.set(key, after)
    this.#setAddresses(ref)
  }

  /** Folds a delivery event; false where the event is of another sort. */
  apply(event: SluiceEvent): boolean {
    const input = toProxyInput(event)
    if (input === undefined) return false
    const { proxy } = event.data as { proxy: string }
    const before = this.#proxies.get(proxy) ?? initialTransition(proxyMachine, { proxy })[0]
    const [after] = transition(proxyMachine, before, input)
    if (after.matches('absent')) this.#proxies.delete(proxy)
    else this.#proxies.set(proxy, after)
    this.#join()
    return true
  }

  proxies(): readonly string[] {
    return [...this.#proxies.keys()].sort()
  }

  snapshot(): Persisted {
    return {
      proxies: [...this.#proxies].map(([key, { value, context }]) => [key, { value, context }]),
      latched: [...this.#latched],
      rejected: [...this.#rejected],
      addresses: [...this.#addresses],
    }
  }

  restore(persisted: unknown): void {
    const { proxies, latched, rejected, addresses } = persisted as Persisted
    for (const [key, { value, context }] of proxies) {
      this.#proxies.set(key, proxyMachine.resolveState({ value, context }))
    }
    for (const [key, generation] of latched) this.#latch(key, generation)
    for (const [key, rejection] of rejected) this.#setRejected(key, rejection)
    for (const [name, text] of addresses) this.#putAddresses(name, text)
  }

  #join(): void {
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

  #joinRejections(): void {
    const standing = new Map<string, Rejection>()
    for (const key of [...this.#proxies.keys()].sort()) {
      const rejections = this.#proxies.get(key)?.context.rejections ?? {}
      for (const [resource, rejection] of Object.entries(rejections)) {
        if (!standing.has(resource)) standing.set(resource, rejection)
      }
    }
    const isAnyReady = [...this.#proxies.values()].some((snapshot) => snapshot.matches('ready'))
    for (const key of isAnyReady ? [...this.#rejected.keys()] : []) {
      if (!standing.has(key)) this.#setRejected(key, undefined)
    }
    for (const [key, rejection] of standing) this.#setRejected(key, rejection)
  }

  #setRejected(key: string, rejection: Rejection | undefined): void {
    if (rejection === undefined) this.#rejected.delete(key)
    else this.#rejected.set(key, rejection)
    this.#graph.setFact(`rejected:${key}`, rejection?.message)
    this.#graph.setFact(`rejected-code:${key}`, rejection?.code)
  }
}

/** `namespace/name` of the Gateway whose proxies serve the listeners. */
function gatewayOf({ ref, object }: ObjectState): string | undefined {
  if (ref.kind === 'Gateway') return `${ref.namespace}/${ref.name}`
  if (object === undefined) return undefined
  const gateway = gatewayOfSet(ref.namespace, specOf<ListenerSetSpec>(object))
  return gateway === undefined ? undefined : `${gateway.namespace}/${gateway.name}`
}

function serves(proxy: ProxyState, gateway: string): boolean {
  return proxy.gateway === undefined || proxy.gateway === gateway
}

function toProxyInput(event: SluiceEvent): ProxyInput | undefined {
  switch (event.type) {
    case 'dev.sluice.proxy.connected.v1': {
      const { gateway, address } = event.data
      return { type: 'CONNECTED', ...(gateway && { gateway }), ...(address && { address }) }
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
