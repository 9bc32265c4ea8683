/** The states after consecutive events of a log, folded from its beginning or from a stored state. */
import type { SluiceEvent } from '../../events/index.ts'
import { regexProblem } from '../../src/control/plane/api-binding.ts'
import { type ObjectKey, type ObjectRef, objectKey } from '../../src/ground/model/names.ts'
import type { VersionedResource } from '../../src/ground/model/resources.ts'
import { heldChanges, type WaitingChange } from '../../src/past/explain/held-changes.ts'
import { type WaitingObject, waitingObjects } from '../../src/past/explain/pin-text.ts'
import type { Fold, FoldSnapshot } from '../../src/past/replay/index.ts'
import type { EventTable } from './event-table.ts'
import { Folds } from './folds.ts'
import { type Values, Versions } from './versions.ts'

type Status = Readonly<Record<string, unknown>>
type Proxies = ReturnType<Fold['proxies']>
type FoldChange = ReturnType<Fold['takeChange']>
type ObjectState = NonNullable<ReturnType<Fold['graph']['object']>>

/** The version of an object that is in force, and the one that was refused. */
export interface ObjectVersion {
  /** Generation in force; 0 if every version was refused. */
  readonly generation: number
  /** Index of the event with the version in force; undefined if there is none, -1 if the log lacks it. */
  readonly applied: number | undefined
  /** Index of the event that refused a later version; undefined if none is, -1 if the log lacks it. */
  readonly refused: number | undefined
  /** The content of the versions, if it is that of a stored state. */
  readonly stored?: Partial<Pick<ObjectState, 'object' | 'refused'>>
}

/** What is kept out of force: by a pin that is set, and by `changeProtection`. */
interface HeldState {
  readonly pin: Fold['pin']
  /** The first of the objects that wait for the end of the pin. */
  readonly waiting: readonly WaitingObject[]
  /** Number of objects that wait for the end of the pin. */
  readonly count: number
  /** The changes that `changeProtection` holds. */
  readonly changes: readonly WaitingChange[]
  /** Number of objects whose changes are not judged yet. */
  readonly unjudged: number
}

/** Number of waiting objects that are noted for each moment. */
const maxWaiting = 5

/** The values after one event. They stay as they are when others are looked at. */
export interface SegmentMoment {
  readonly statuses: Values<Status>
  readonly resources: Values<VersionedResource>
  readonly objects: Values<ObjectVersion>
  readonly proxies: Proxies
  /** Undefined if no pin is set and no change waits. */
  readonly held: HeldState | undefined
}

/** Whether an event may put versions of other events in force: pins, and judgements of changes. */
const isAboutPin = ({ type, data }: SluiceEvent): boolean =>
  type === 'dev.sluice.timer.fired.v1'
    ? data.timer.startsWith('pin:')
    : /^dev\.sluice\.(pin|change)\./.test(type)

export class Segment {
  /** Number of events before the first one of the segment. */
  readonly begin: number
  /** Versions of the fold that published states. */
  readonly foldVersions = new Set<string>()
  readonly #events: EventTable
  readonly #folds: Folds
  readonly #statuses = new Versions<Status>()
  readonly #resources = new Versions<VersionedResource>()
  readonly #objects = new Versions<ObjectVersion>()
  readonly #proxies = new Versions<Proxies>()
  readonly #held = new Versions<HeldState>()

  /** `base` is the state after the first `begin` events; `borrow` takes a fold from another segment. */
  constructor(
    events: EventTable,
    borrow: () => Fold | undefined = () => undefined,
    begin = 0,
    base?: FoldSnapshot,
  ) {
    this.begin = begin
    this.#events = events
    const read = (index: number) => events.read(index)
    this.#folds = new Folds({ checkRegex: regexProblem }, read, borrow, begin, base)
    if (base !== undefined) this.#noteState()
  }

  /** Number of events whose states are known, from the first of the log on. */
  get end(): number {
    return this.#folds.count
  }

  /** Whether the state after a number of events is known. */
  covers(count: number): boolean {
    return this.begin <= count && count <= this.end
  }

  /** Folds the next event. @throws LogError `foreign` if its line is damaged */
  foldNext(): void {
    const index = this.end
    const recorded = this.#events.read(index)
    const { event } = recorded
    const change = this.#folds.add(recorded)
    this.#noteChange(change, index)
    this.#noteObject(event, index)
    if (isAboutPin(event)) this.#notePin(index)
    if (/\.(proxy|config|timer)\./.test(event.type)) this.#noteProxies(index)
    if (event.type === 'dev.sluice.desired.published.v1') {
      this.foldVersions.add(event.data.foldVersion)
    }
  }

  /** The state after an event of the segment, or after that before its first. */
  at(index: number): SegmentMoment {
    return {
      statuses: this.#statuses.at(index),
      resources: this.#resources.at(index),
      objects: this.#objects.at(index),
      proxies: this.#proxies.at(index).get('') ?? [],
      held: this.#held.at(index).get(''),
    }
  }

  /** A fold of the events up to an index, for what only derivations know. It is slow for earlier moments. */
  foldAt(index: number): Fold {
    return this.#folds.after(index + 1)
  }

  /** Gives away the fold; what was noted of the events stays. */
  release(): Fold | undefined {
    return this.#folds.release()
  }

  /** The statuses of an object, each with the index of its event; that of a stored state has none. */
  statusesOf(object: ObjectKey) {
    return this.#statuses
      .historyOf(object)
      .map(({ cause, status }) => ({ cause: cause < this.begin ? undefined : cause, status }))
  }

  /** Notes everything of a stored state, as if the last event before the segment had brought it. */
  #noteState(): void {
    const { newest } = this.#folds
    const index = this.begin - 1
    for (const [ref, status] of newest.statuses()) {
      this.#statuses.set(objectKey(ref), index, status)
    }
    for (const one of newest.resources()) this.#resources.set(one.resource.key, index, one)
    for (const state of newest.graph.objects()) {
      this.#objects.set(objectKey(state.ref), index, this.#storedVersion(state))
    }
    this.#noteProxies(index)
    this.#noteHeld(index)
  }

  #storedVersion({ generation, generationSequence, object, refused }: ObjectState): ObjectVersion {
    const { positions } = this.#events
    const applied = this.#events.indexAt(generationSequence)
    const isListed = positions[applied] === generationSequence
    return {
      generation,
      applied: object === undefined ? undefined : isListed ? applied : -1,
      refused: refused === undefined ? undefined : -1,
      stored: { object, refused },
    }
  }

  #noteChange(change: FoldChange | undefined, index: number): void {
    this.#events.setChanged(index, { statuses: 0, resources: 0 })
    if (change === undefined) return
    const { delta, statuses, dropped } = change
    for (const { ref, status } of statuses) this.#statuses.set(objectKey(ref), index, status)
    for (const ref of dropped) this.#statuses.set(objectKey(ref), index, undefined)
    for (const one of delta.upserted) this.#resources.set(one.resource.key, index, one)
    for (const key of delta.removed) this.#resources.set(key, index, undefined)
    this.#events.setChanged(index, {
      statuses: statuses.length + dropped.length,
      resources: delta.upserted.length + delta.removed.length,
    })
  }

  #noteProxies(index: number): void {
    this.#proxies.set('', index, this.#folds.newest.proxies())
  }

  /** A pin, and its end, may put another version of any object in force. */
  #notePin(index: number): void {
    const gone = new Set(Array.from(this.#objects.at(index).entries(), ([key]) => key))
    for (const state of this.#folds.newest.graph.objects()) {
      const key = objectKey(state.ref)
      gone.delete(key)
      this.#objects.set(key, index, this.#storedVersion(state))
    }
    for (const key of gone) this.#objects.set(key, index, undefined)
    this.#noteHeld(index)
  }

  #noteHeld(index: number): void {
    const { newest } = this.#folds
    const { pin, heldBack, changes } = newest
    const before = this.#held.newest('')
    if (pin === undefined && changes.waiting.size === 0) {
      if (before !== undefined) this.#held.set('', index, undefined)
      return
    }
    const held = this.#heldChanges(before?.changes ?? [])
    const judged = held.reduce((sum, { objects }) => sum + objects.length, 0)
    this.#held.set('', index, {
      pin,
      waiting: pin === undefined ? [] : waitingObjects(newest, maxWaiting),
      count: pin === undefined ? 0 : heldBack.size,
      changes: held,
      unjudged: changes.waiting.size - judged,
    })
  }

  /** Lists the objects of held changes only if other changes are held than before: thousands may wait. */
  #heldChanges(before: readonly WaitingChange[]): readonly WaitingChange[] {
    const { newest } = this.#folds
    const same = [...newest.changes.held.values()].every(
      ({ position, rejected }, at) =>
        before[at]?.position === position && before[at]?.rejected === rejected,
    )
    return same && before.length === newest.changes.held.size ? before : heldChanges(newest)
  }

  /** Notes which events have the versions of an object; the fold has decided which of them count. */
  #noteObject({ type, data }: SluiceEvent, index: number): void {
    if (!type.startsWith('dev.sluice.resource.')) return
    const key = objectKey(data as ObjectRef)
    this.#noteHeld(index)
    const state = this.#folds.newest.graph.object(key)
    if (state === undefined) {
      this.#objects.set(key, index, undefined)
      return
    }
    // While a pin is set, the version in force may be that of another event.
    if (this.#folds.newest.pin !== undefined) {
      this.#objects.set(key, index, this.#storedVersion(state))
      return
    }
    // The fold ignores versions that it has passed, and those of a writer that lost its lease.
    if (state.resourceVersion !== (data as { resourceVersion?: string }).resourceVersion) return
    const before = this.#objects.newest(key)
    const isApplied = type === 'dev.sluice.resource.applied.v1'
    const applied = isApplied ? index : before?.applied
    const refused = isApplied ? undefined : index
    const stored = isApplied ? undefined : before?.stored?.object
    this.#objects.set(key, index, {
      generation: state.generation,
      applied: state.object === undefined ? undefined : applied,
      refused: state.refused === undefined ? undefined : refused,
      ...(stored !== undefined && { stored: { object: stored } }),
    })
  }
}
