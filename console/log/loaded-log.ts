/** A log that was read and folded: its events, and everything that views show of any moment. */
import type { SluiceEvent } from '../../events/index.ts'
import { regexProblem } from '../../src/control-plane/api-binding.ts'
import { type ConditionHistory, historyOf } from '../../src/explain/conditions.ts'
import { type ObjectKey, type ObjectRef, objectKey } from '../../src/model/names.ts'
import type { VersionedResource } from '../../src/model/resources.ts'
import type { Fold, RecordedEvent } from '../../src/replay/index.ts'
import { EventTable } from './event-table.ts'
import { Folds } from './folds.ts'
import { type Values, Versions } from './versions.ts'

type Status = Readonly<Record<string, unknown>>
type Proxies = ReturnType<Fold['proxies']>
type FoldChange = ReturnType<Fold['takeChange']>

/** The version of an object that is in force, and the one that was refused. */
interface ObjectVersion {
  /** Generation in force; 0 if every version was refused. */
  readonly generation: number
  /** Index of the event with the version in force; undefined if there is none. */
  readonly applied: number | undefined
  /** Index of the event that refused a later version; undefined if none is. */
  readonly refused: number | undefined
}

/** One moment of a log: the state after an event. It stays as it is when other moments are looked at. */
export interface Moment {
  readonly log: LoadedLog
  /** Index of the last event; -1 before the first. */
  readonly index: number
  /** Position of the last event; 0 before the first. */
  readonly position: number
  readonly statuses: Values<Status>
  readonly resources: Values<VersionedResource>
  readonly objects: Values<ObjectVersion>
  readonly proxies: Proxies
}

export class LoadedLog {
  readonly events: EventTable
  /** Versions of the fold that published states. */
  readonly foldVersions = new Set<string>()
  readonly #folds = new Folds({ checkRegex: regexProblem }, (index) => this.events.read(index))
  readonly #statuses = new Versions<Status>()
  readonly #resources = new Versions<VersionedResource>()
  readonly #objects = new Versions<ObjectVersion>()
  readonly #proxies = new Versions<Proxies>()

  constructor(name: string) {
    this.events = new EventTable(name)
  }

  /** Number of events that are folded; later ones are only listed. */
  get folded(): number {
    return this.#folds.count
  }

  /**
   * Folds the next event. If its line is damaged, the log ends before it.
   * @throws LogError `foreign`
   */
  foldNext(): void {
    const index = this.folded
    try {
      this.#fold(this.events.read(index), index)
    } catch (error) {
      this.events.truncate(index)
      throw error
    }
  }

  #fold(recorded: RecordedEvent, index: number): void {
    const { event } = recorded
    const change = this.#folds.add(recorded)
    if (change !== undefined) this.#noteChange(change, index)
    this.#noteObject(event, index)
    if (/\.(proxy|config|timer)\./.test(event.type)) {
      this.#proxies.set('', index, this.#folds.newest.proxies())
    }
    if (event.type === 'dev.sluice.desired.published.v1') {
      this.foldVersions.add(event.data.foldVersion)
    }
  }

  #noteChange({ delta, statuses, dropped }: FoldChange, index: number): void {
    for (const { ref, status } of statuses) this.#statuses.set(objectKey(ref), index, status)
    for (const ref of dropped) this.#statuses.set(objectKey(ref), index, undefined)
    for (const one of delta.upserted) this.#resources.set(one.resource.key, index, one)
    for (const key of delta.removed) this.#resources.set(key, index, undefined)
    this.events.setChanged(index, {
      statuses: statuses.length + dropped.length,
      resources: delta.upserted.length + delta.removed.length,
    })
  }

  /** Notes which events have the versions of an object; the fold has decided which of them count. */
  #noteObject({ type, data }: SluiceEvent, index: number): void {
    if (!type.startsWith('dev.sluice.resource.')) return
    const key = objectKey(data as ObjectRef)
    const state = this.#folds.newest.graph.object(key)
    if (state === undefined) {
      this.#objects.set(key, index, undefined)
      return
    }
    // The fold ignores versions that it has passed, and those of a writer that lost its lease.
    if (state.resourceVersion !== (data as { resourceVersion?: string }).resourceVersion) return
    const before = this.#objects.newest(key)
    const isApplied = type === 'dev.sluice.resource.applied.v1'
    const applied = isApplied ? index : before?.applied
    const refused = isApplied ? undefined : index
    this.#objects.set(key, index, {
      generation: state.generation,
      applied: state.object === undefined ? undefined : applied,
      refused: state.refused === undefined ? undefined : refused,
    })
  }

  /**
   * The state after the event at or before a position; without a position, after the last folded event.
   * @throws RangeError if the event is not folded yet
   */
  at(position?: number): Moment {
    const index = position === undefined ? this.folded - 1 : this.events.indexAt(position)
    if (index >= this.folded) throw new RangeError(`The state at ${position} is not computed yet.`)
    return {
      log: this,
      index,
      position: this.events.positions[index] ?? 0,
      statuses: this.#statuses.at(index),
      resources: this.#resources.at(index),
      objects: this.#objects.at(index),
      proxies: this.#proxies.at(index).get('') ?? [],
    }
  }

  /** A fold of the events up to an index, for what only derivations know. It is slow for earlier moments. */
  foldAt(index: number): Fold {
    return this.#folds.after(index + 1)
  }

  /** How the conditions of an object changed, with the index of the event that caused each change. */
  conditionsOf(object: ObjectKey): ConditionHistory<number> {
    return historyOf(undefined, this.#statuses.historyOf(object))
  }

  /** The manifest of a version, and the problems of a refused one, as the log has them. */
  manifest(index: number): Readonly<Record<string, unknown>> {
    const { event } = this.events.read(index)
    return event.type === 'dev.sluice.resource.applied.v1' ? { ...event.data.object } : {}
  }

  problems(index: number): readonly { readonly path: string; readonly message: string }[] {
    const { event } = this.events.read(index)
    return event.type === 'dev.sluice.resource.refused.v1' ? event.data.problems : []
  }

  refusedGeneration(index: number): number {
    const { event } = this.events.read(index)
    return event.type === 'dev.sluice.resource.refused.v1' ? event.data.generation : 0
  }
}
