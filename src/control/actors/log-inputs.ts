/** Inputs of the graph that only events of the log have: no object names them. */
import type { SluiceEvent } from '../../../events/index.ts'
import type { Graph } from '../desired/graph.ts'
import { DynamicApiKeys, type StoredDynamicKey } from './dynamic-api-keys.ts'
import { ObservedTools, type StoredList } from './observed-tools.ts'

/** Members of a snapshot. They are not set if there are none. */
export interface StoredInputs {
  readonly dynamicKeys?: readonly StoredDynamicKey[]
  /** What MCP servers list. */
  readonly observedLists?: readonly StoredList[]
}

export class LogInputs {
  readonly #keys: DynamicApiKeys
  readonly #tools: ObservedTools

  constructor(graph: Graph) {
    this.#keys = new DynamicApiKeys(graph)
    this.#tools = new ObservedTools(graph)
  }

  /** Returns whether an input has changed. */
  apply(event: SluiceEvent): boolean {
    return this.#keys.apply(event) || this.#tools.apply(event)
  }

  snapshot(): StoredInputs {
    return { ...this.#keys.snapshot(), ...this.#tools.snapshot() }
  }

  restore({ dynamicKeys, observedLists }: StoredInputs): void {
    this.#keys.restore(dynamicKeys)
    this.#tools.restore(observedLists)
  }
}
