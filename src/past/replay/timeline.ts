/**
 * Steps through a log in both directions.
 *
 * ```
 *   snapshot ──fold──► events whose changes are kept ──► head (the fold is here)
 *                          ▲ the moment that is shown moves between them: no event is folded again
 * ```
 */
import { Fold, type FoldSnapshot, type RecordedEvent } from '../../control/actors/fold.ts'
import { createGraph, type DerivationOptions } from '../../control/desired/derivations.ts'
import type { Status } from '../../control/desired/status-store.ts'
import { type ObjectKey, objectKey } from '../../ground/model/names.ts'
import type { VersionedResource } from '../../ground/model/resources.ts'

/** A log, as a timeline reads it. */
export interface TimelineSource {
  /** Position of the first event. */
  readonly first: number
  /** Reads the events from one position to another, both included. */
  events(from: number, to: number): AsyncIterable<RecordedEvent> | Iterable<RecordedEvent>
  /** The newest stored state at or before a position; undefined if there is none. */
  snapshot?(atMost: number): Promise<FoldSnapshot | undefined>
}

/** A value before and after an event; undefined if there was, or is, none. */
export interface ValueChange<Key, Value> {
  readonly key: Key
  readonly before: Value | undefined
  readonly after: Value | undefined
}

/** What one event changed. */
export interface EventChange {
  readonly statuses: readonly ValueChange<ObjectKey, Status>[]
  readonly resources: readonly ValueChange<string, VersionedResource>[]
}

/** The state after an event. The maps change when the timeline moves. */
export interface Moment {
  readonly position: number
  /** The event; not set if the log has no event at this position, or before the first event. */
  readonly event?: RecordedEvent['event']
  readonly statuses: ReadonlyMap<ObjectKey, Status>
  readonly resources: ReadonlyMap<string, VersionedResource>
  /** What the event changed; not set if the event is that of a stored state. */
  readonly change?: EventChange
}

export interface TimelineLimits {
  /** Maximum number of events whose changes are kept. */
  readonly keptEvents?: number
  /** Maximum number of states that are kept in memory, for logs without stored ones. */
  readonly keptStates?: number
  /** Number of folded events between two of them. */
  readonly stateEvery?: number
}

interface TimelineStep {
  readonly recorded: RecordedEvent
  readonly change: EventChange
}

const unchanged: EventChange = { statuses: [], resources: [] }

export class Timeline {
  readonly #source: TimelineSource
  readonly #derivation: DerivationOptions
  readonly #limits: Required<TimelineLimits>
  /** The fold after the last step. */
  #fold: Fold
  /** Events before the head, in order. */
  #steps: TimelineStep[] = []
  /** Position before the first step. */
  #floor = 0
  /** Number of steps that the maps contain. */
  #shown = 0
  readonly #statuses = new Map<ObjectKey, Status>()
  readonly #resources = new Map<string, VersionedResource>()
  /** States at positions that were passed, in order. */
  #states: FoldSnapshot[] = []
  #moving: Promise<unknown> = Promise.resolve()

  constructor(source: TimelineSource, derivation: DerivationOptions, limits: TimelineLimits = {}) {
    this.#source = source
    this.#derivation = derivation
    this.#limits = { keptEvents: 50_000, keptStates: 64, stateEvery: 5_000, ...limits }
    this.#fold = new Fold(createGraph(derivation))
  }

  /** Moves to the state after the event at a position. Calls are served one after the other. */
  at(position: number): Promise<Moment> {
    const moved = this.#moving.then(() => this.#moveTo(position))
    this.#moving = moved.catch(() => undefined)
    return moved
  }

  /** The fold at a position, to ask what its derivations have read. Steps back fold again. */
  async foldAt(position: number): Promise<Fold> {
    await this.at(position)
    if (this.#fold.position > position) await this.#restart(position)
    await this.at(position)
    return this.#fold
  }

  async #moveTo(position: number): Promise<Moment> {
    // The event at the floor itself is unknown, so it is folded too, if the log has it.
    const isUnknown = position === this.#floor && position >= this.#source.first
    if (position < this.#floor || isUnknown) await this.#restart(position)
    else if (position > this.#fold.position) await this.#advance(position)
    this.#show(position)
    const step = this.#steps[this.#shown - 1]
    const isOwn = step?.recorded.position === position
    return {
      position,
      statuses: this.#statuses,
      resources: this.#resources,
      ...(isOwn && { event: step.recorded.event, change: step.change }),
    }
  }

  /** Continues forward, from a stored state if there is one between the head and the position. */
  async #advance(position: number): Promise<void> {
    const head = this.#fold.position
    const isNear = position - head <= this.#limits.stateEvery
    const stored = isNear ? undefined : await this.#stateFor(position - 1)
    if (stored !== undefined && stored.position > head) this.#begin(stored)
    await this.#foldTo(position)
  }

  /** Folds again from the nearest state before a position. */
  async #restart(position: number): Promise<void> {
    this.#begin(await this.#stateFor(position - 1))
    await this.#foldTo(position)
  }

  async #stateFor(position: number): Promise<FoldSnapshot | undefined> {
    const stored = await this.#source.snapshot?.(position)
    const own = this.#states.findLast((state) => state.position <= position)
    return (own?.position ?? -1) > (stored?.position ?? -1) ? own : stored
  }

  #begin(state: FoldSnapshot | undefined): void {
    this.#fold = new Fold(createGraph(this.#derivation))
    if (state !== undefined) this.#fold.restore(state)
    this.#fold.dropChange()
    this.#floor = this.#fold.position
    this.#steps = []
    this.#shown = 0
    this.#statuses.clear()
    this.#resources.clear()
    for (const [key, status] of state?.statuses ?? []) this.#statuses.set(key, status)
    for (const resource of this.#fold.resources()) {
      this.#resources.set(resource.resource.key, resource)
    }
  }

  async #foldTo(position: number): Promise<void> {
    const from = Math.max(this.#fold.position + 1, this.#source.first)
    if (from > position) return
    for await (const recorded of this.#source.events(from, position)) {
      this.#show(this.#fold.position)
      this.#fold.apply(recorded)
      this.#steps.push({ recorded, change: this.#takeChange() })
      this.#shown = this.#steps.length
      this.#keepState()
    }
    const surplus = this.#steps.length - this.#limits.keptEvents
    if (surplus <= 0) return
    this.#floor = this.#steps[surplus - 1]?.recorded.position ?? this.#floor
    this.#steps = this.#steps.slice(surplus)
    this.#shown -= surplus
  }

  /** Takes the change of the last event and applies it to the maps. */
  #takeChange(): EventChange {
    const { delta, statuses, dropped } = this.#fold.takeChange()
    if (delta.upserted.length + delta.removed.length + statuses.length + dropped.length === 0) {
      return unchanged
    }
    const change = {
      statuses: [
        ...statuses.map(({ ref, status }) => changeOf(this.#statuses, objectKey(ref), status)),
        ...dropped.map((ref) => changeOf(this.#statuses, objectKey(ref), undefined)),
      ],
      resources: [
        ...delta.upserted.map((one) => changeOf(this.#resources, one.resource.key, one)),
        ...delta.removed.map((key) => changeOf(this.#resources, key, undefined)),
      ],
    }
    this.#apply(change, 'after')
    return change
  }

  #show(position: number): void {
    for (;;) {
      const next = this.#steps[this.#shown]
      if (next === undefined || next.recorded.position > position) break
      this.#apply(next.change, 'after')
      this.#shown++
    }
    for (;;) {
      const last = this.#steps[this.#shown - 1]
      if (last === undefined || last.recorded.position <= position) break
      this.#apply(last.change, 'before')
      this.#shown--
    }
  }

  #apply({ statuses, resources }: EventChange, side: 'before' | 'after'): void {
    for (const change of statuses) put(this.#statuses, change.key, change[side])
    for (const change of resources) put(this.#resources, change.key, change[side])
  }

  /** Keeps a state from time to time. If there are too many, every other one is dropped. */
  #keepState(): void {
    const { position } = this.#fold
    const { keptStates, stateEvery } = this.#limits
    if (position % stateEvery !== 0 || this.#source.snapshot !== undefined) return
    if ((this.#states.at(-1)?.position ?? 0) >= position) return
    this.#states.push(this.#fold.snapshot())
    if (this.#states.length > keptStates) {
      this.#states = this.#states.filter((_, index) => index % 2 === 1)
    }
  }
}

const changeOf = <Key, Value>(
  values: ReadonlyMap<Key, Value>,
  key: Key,
  after: Value | undefined,
): ValueChange<Key, Value> => ({ key, before: values.get(key), after })

function put<Key, Value>(values: Map<Key, Value>, key: Key, value: Value | undefined): void {
  if (value === undefined) values.delete(key)
  else values.set(key, value)
}
