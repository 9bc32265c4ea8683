/** The API keys that are events of the log, by namespace. Policies read them as inputs of the graph. */
import type { SluiceEvent } from '../../../events/index.ts'
import { type DynamicKeys, dynamicKeysInput } from '../../ground/model/dynamic-keys.ts'
import type { Graph } from '../desired/graph.ts'

/** One entry of a snapshot. */
export type StoredDynamicKey = readonly [namespace: string, name: string, entry: string]

export class DynamicApiKeys {
  readonly #graph: Graph
  readonly #keys = new Map<string, DynamicKeys>()

  constructor(graph: Graph) {
    this.#graph = graph
  }

  /** Returns whether keys have changed. */
  apply(event: SluiceEvent): boolean {
    if (event.type !== 'dev.sluice.apikeys.changed.v1') return false
    const { namespace, entries } = event.data
    const keys = new Map(this.#keys.get(namespace))
    for (const [name, entry] of Object.entries(entries)) {
      if (entry === null) keys.delete(name)
      else keys.set(name, entry)
    }
    this.#set(namespace, keys)
    return true
  }

  snapshot(): { readonly dynamicKeys?: readonly StoredDynamicKey[] } {
    const dynamicKeys = [...this.#keys].flatMap(([namespace, keys]) =>
      Array.from(keys, ([name, entry]): StoredDynamicKey => [namespace, name, entry]),
    )
    return dynamicKeys.length === 0 ? {} : { dynamicKeys }
  }

  restore(stored: readonly StoredDynamicKey[] = []): void {
    for (const namespace of [...this.#keys.keys()]) this.#set(namespace, new Map())
    const restored = new Map<string, Map<string, string>>()
    for (const [namespace, name, entry] of stored) {
      const keys = restored.get(namespace) ?? new Map<string, string>()
      restored.set(namespace, keys.set(name, entry))
    }
    for (const [namespace, keys] of restored) this.#set(namespace, keys)
  }

  #set(namespace: string, keys: DynamicKeys): void {
    if (keys.size === 0) this.#keys.delete(namespace)
    else this.#keys.set(namespace, keys)
    this.#graph.setInput(dynamicKeysInput(namespace), keys.size === 0 ? undefined : keys)
  }
}
