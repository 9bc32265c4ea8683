/** The statuses that were decided, and what changed of them since the last batch. */
import { type ObjectKey, type ObjectRef, parseObjectKey } from '../../ground/model/names.ts'
import type { Graph } from '../desired/graph.ts'
import { generationOf } from '../desired/object-state.ts'
import { type Status, StatusStore } from '../desired/status-store.ts'
import { StatusCauses } from './status-causes.ts'

export interface StatusChange {
  readonly ref: ObjectRef
  readonly generation: number
  readonly status: Status
}

interface StatusBatch {
  readonly statuses: readonly StatusChange[]
  /** Objects that no longer have a status of ours: they were deleted, or belong to another controller. */
  readonly dropped: readonly ObjectRef[]
  readonly causes: ReturnType<StatusCauses['take']>
}

export class StatusChanges {
  readonly #graph: Graph
  #store = new StatusStore()
  #changed = new Map<ObjectKey, StatusChange>()
  readonly #dropped = new Set<ObjectKey>()
  readonly #causes = new StatusCauses()

  constructor(graph: Graph) {
    this.#graph = graph
  }

  /** All statuses, with their transition times. */
  get store(): Pick<StatusStore, 'get' | 'entries' | 'digest' | 'changes'> {
    return this.#store
  }

  /** Takes what the graph has decided by the event at a position and time. */
  collect(position: number, time: string): void {
    for (const [key, decided] of this.#graph.outputs.takeStatuses()) {
      if (decided === undefined) {
        this.#drop(key, position)
        continue
      }
      const status = this.#store.decide(key, decided, time)
      if (this.#dropped.size > 0) this.#dropped.delete(key)
      const state = this.#graph.object(key)
      if (status === undefined || state === undefined) continue
      this.#causes.note(key, position)
      this.#changed.set(key, { ref: state.ref, generation: generationOf(state), status })
    }
  }

  /** Returns what changed since the last call. */
  take(): StatusBatch {
    const batch = {
      statuses: [...this.#changed.values()],
      dropped: [...this.#dropped].map(parseObjectKey),
      causes: this.#causes.take(),
    }
    this.#changed = new Map()
    this.#dropped.clear()
    return batch
  }

  /** Forgets what `take` would return, which otherwise accumulates. */
  dropBatch(): void {
    this.#changed = new Map()
    this.#causes.clear()
    this.#dropped.clear()
  }

  /** Replaces all statuses by those of a snapshot. */
  restore(entries: readonly (readonly [ObjectKey, Status])[]): void {
    this.#store = new StatusStore()
    this.#store.restore(entries)
  }

  /** Drops the status of an object, and an earlier decision of the batch about it. */
  #drop(key: ObjectKey, position: number): void {
    if (this.#store.drop(key)) {
      this.#dropped.add(key)
      this.#causes.note(key, position)
    }
    this.#changed.delete(key)
  }
}
