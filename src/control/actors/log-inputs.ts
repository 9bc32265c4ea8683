/** What only events of the log have: no object names it. */
import type { SluiceEvent } from '../../../events/index.ts'
import type { EndedEntry } from '../../ground/model/ended-sessions.ts'
import type { Graph } from '../desired/graph.ts'
import { DynamicApiKeys, type StoredDynamicKey } from './dynamic-api-keys.ts'
import { EndedSessions } from './ended-sessions.ts'
import { ObservedTools, type StoredList } from './observed-tools.ts'

/** Members of a snapshot. They are not set if there are none. */
export interface StoredInputs {
  readonly dynamicKeys?: readonly StoredDynamicKey[]
  /** What MCP servers list. */
  readonly observedLists?: readonly StoredList[]
  /** Sessions and tokens that are refused. */
  readonly ended?: readonly EndedEntry[]
}

export class LogInputs {
  readonly ended = new EndedSessions()
  readonly #keys: DynamicApiKeys
  readonly #tools: ObservedTools

  constructor(graph: Graph) {
    this.#keys = new DynamicApiKeys(graph)
    this.#tools = new ObservedTools(graph)
  }

  /** Returns whether an input has changed. */
  apply(event: SluiceEvent): boolean {
    return this.#keys.apply(event) || this.#tools.apply(event) || this.ended.apply(event)
  }

  snapshot(): StoredInputs {
    return { ...this.#keys.snapshot(), ...this.#tools.snapshot(), ...this.ended.snapshot() }
  }

  restore({ dynamicKeys, observedLists, ended }: StoredInputs): void {
    this.#keys.restore(dynamicKeys)
    this.#tools.restore(observedLists)
    this.ended.restore(ended)
  }
}
