/** Gateways and ListenerSets, which own listeners. */
import { SetMap } from '../../ground/base/set-map.ts'
import type { ObjectKey } from '../../ground/model/names.ts'
import type { ObjectState } from '../desired/object-state.ts'
import { gatewayOfSet, specOf } from '../desired/specs.ts'

/** `namespace/name` of the Gateway whose proxies serve the listeners. */
export function gatewayOf({ ref, object }: ObjectState): string | undefined {
  if (ref.kind === 'Gateway') return `${ref.namespace}/${ref.name}`
  if (object === undefined) return undefined
  const gateway = gatewayOfSet(ref.namespace, specOf<'ListenerSet'>(object))
  return gateway === undefined ? undefined : `${gateway.namespace}/${gateway.name}`
}

export class ListenerOwners {
  readonly #owners = new Map<ObjectKey, ObjectState>()
  /** Gateway -> its key, if it is known, and those of its ListenerSets. */
  readonly #keys = new SetMap<string, ObjectKey>()
  /** The Gateways that are known. */
  readonly #gateways = new Set<string>()
  /** Gateway -> position of the newest generation of its owners; undefined until it is read. */
  #newest: ReadonlyMap<string, number> | undefined

  get(key: ObjectKey): ObjectState | undefined {
    return this.#owners.get(key)
  }

  set(key: ObjectKey, owner: ObjectState | undefined): void {
    const before = this.#owners.get(key)
    const known = before && gatewayOf(before)
    const gateway = owner && gatewayOf(owner)
    this.#newest = undefined
    if (owner === undefined) this.#owners.delete(key)
    else this.#owners.set(key, owner)
    if (gateway === known) return
    if (known !== undefined) this.#keys.delete(known, key)
    if (gateway !== undefined) this.#keys.add(gateway, key)
    if ((owner ?? before)?.ref.kind !== 'Gateway') return
    if (known !== undefined) this.#gateways.delete(known)
    if (gateway !== undefined) this.#gateways.add(gateway)
  }

  /** The Gateways, as `namespace/name`. */
  gateways(): string[] {
    return [...this.#gateways]
  }

  hasGateway(name: string): boolean {
    return this.#gateways.has(name)
  }

  /** Keys of a Gateway and of its ListenerSets. */
  keysOf(gateway: string): ReadonlySet<ObjectKey> {
    return this.#keys.get(gateway)
  }

  /**
   * Position of the newest generation of any owner of a Gateway's listeners; of all Gateways if it is
   * undefined. Returns -1 if there is no owner.
   */
  newestGeneration(gateway: string | undefined): number {
    this.#newest ??= this.#findNewest()
    if (gateway !== undefined) return this.#newest.get(gateway) ?? -1
    return Math.max(-1, ...this.#newest.values())
  }

  #findNewest(): ReadonlyMap<string, number> {
    const newest = new Map<string, number>()
    for (const owner of this.#owners.values()) {
      const gateway = gatewayOf(owner)
      if (gateway === undefined) continue
      newest.set(gateway, Math.max(newest.get(gateway) ?? -1, owner.generationSequence))
    }
    return newest
  }
}

/** The latch value if a version other than the one in force was programmed. Generations begin with 1. */
const otherGeneration = 0

/** The latch of a changed owner. A generation that takes effect again must be acknowledged again. */
export function latchAfter(
  latched: number | undefined,
  before: ObjectState | undefined,
  after: ObjectState | undefined,
): number | undefined {
  if (latched === undefined || before?.uid !== after?.uid) return undefined
  if (latched !== after?.generation) return latched
  return before?.generationSequence === after.generationSequence ? latched : otherGeneration
}
