/**
 * What proxies have put in force, joined into facts that statuses read: a Gateway is programmed
 * once every ready proxy that serves it has acknowledged the position of its generation. It latches
 * for that generation, so that a restarting proxy does not make the condition flap.
 *
 * Facts: `programmed:<ns>/<name>` = the latched generation; `addresses:<ns>/<name>` = addresses that
 * its proxies serve on; `rejected:<resource key>` = why some proxy refuses the resource.
 */
import { initialTransition, type SnapshotFrom, transition } from 'xstate'
import type { SluiceEvent } from '../../events/index.ts'
import type { Graph } from '../desired/graph.ts'
import type { ObjectState } from '../desired/object-state.ts'
import type { ObjectKey } from '../model/names.ts'
import { type ProxyInput, type ProxyState, proxyMachine, type Rejection } from './proxy.machine.ts'

type ProxySnapshot = SnapshotFrom<typeof proxyMachine>

interface Persisted {
  readonly proxies: readonly (readonly [string, Pick<ProxySnapshot, 'value' | 'context'>])[]
  readonly latched: readonly (readonly [string, number])[]
}

export class Delivery {
  readonly #graph: Graph
  readonly #proxies = new Map<string, ProxySnapshot>()
  /** Gateway object key -> its state; Gateways are few. */
  readonly #gateways = new Map<ObjectKey, ObjectState>()
  /** `namespace/name` -> generation that is programmed. */
  readonly #latched = new Map<string, number>()
  /** Keys whose `rejected:` fact is set. */
  #rejectedKeys = new Set<string>()

  constructor(graph: Graph) {
    this.#graph = graph
  }

  /** Keeps the list of Gateways; called with every object that changes. */
  noteObject(
    key: ObjectKey,
    before: ObjectState | undefined,
    after: ObjectState | undefined,
  ): void {
    if ((after ?? before)?.ref.kind !== 'Gateway') return
    if (after !== undefined) {
      this.#gateways.set(key, after)
      if (before !== undefined && before.uid !== after.uid) this.#latched.delete(nameOf(after))
      this.#setAddresses(after)
      return
    }
    this.#gateways.delete(key)
    if (before === undefined) return
    this.#latched.delete(nameOf(before))
    this.#graph.setFact(`programmed:${nameOf(before)}`, undefined)
    this.#graph.setFact(`addresses:${nameOf(before)}`, undefined)
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
    }
  }

  restore(persisted: unknown): void {
    const { proxies, latched } = persisted as Persisted
    for (const [key, { value, context }] of proxies) {
      this.#proxies.set(key, proxyMachine.resolveState({ value, context }))
    }
    for (const [name, generation] of latched) {
      this.#latched.set(name, generation)
      this.#graph.setFact(`programmed:${name}`, generation)
    }
    this.#join()
  }

  #join(): void {
    this.#joinRejections()
    for (const gateway of this.#gateways.values()) {
      this.#setAddresses(gateway)
      const name = nameOf(gateway)
      if (this.#latched.get(name) === gateway.generation) continue
      if (this.#watermark(name) < gateway.generationSequence) continue
      this.#latched.set(name, gateway.generation)
      this.#graph.setFact(`programmed:${name}`, gateway.generation)
    }
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

  #setAddresses(gateway: ObjectState): void {
    const name = nameOf(gateway)
    const addresses = new Set<string>()
    for (const { context } of this.#proxies.values()) {
      if (context.address !== undefined && serves(context, name)) addresses.add(context.address)
    }
    const sorted = [...addresses].sort().join(',')
    this.#graph.setFact(`addresses:${name}`, sorted === '' ? undefined : sorted)
  }

  #joinRejections(): void {
    const standing = new Map<string, Rejection>()
    for (const key of [...this.#proxies.keys()].sort()) {
      const rejections = this.#proxies.get(key)?.context.rejections ?? {}
      for (const [resource, rejection] of Object.entries(rejections)) {
        if (!standing.has(resource)) standing.set(resource, rejection)
      }
    }
    for (const key of this.#rejectedKeys) {
      if (!standing.has(key)) this.#graph.setFact(`rejected:${key}`, undefined)
    }
    for (const [key, { message }] of standing) this.#graph.setFact(`rejected:${key}`, message)
    this.#rejectedKeys = new Set(standing.keys())
  }
}

function nameOf(state: ObjectState): string {
  return `${state.ref.namespace}/${state.ref.name}`
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
