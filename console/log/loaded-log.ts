/** A log that was read and folded: its events, and everything that views show of any moment. */
import { LogError } from '../../src/control/log/log.ts'
import type { ObjectKey } from '../../src/ground/model/names.ts'
import { type Fold, foldVersion } from '../../src/past/replay/index.ts'
import { EventTable, type FetchLines } from './event-table.ts'
import { type ObjectHistory, readHistories } from './histories.ts'
import { type ObjectVersion, Segment, type SegmentMoment } from './segment.ts'
import { type StoredState, StoredStates } from './stored-states.ts'

/** One moment of a log: the state after an event. It stays as it is when other moments are looked at. */
export interface Moment extends SegmentMoment {
  readonly log: LoadedLog
  /** Index of the last event; -1 before the first. */
  readonly index: number
  /** Position of the last event; 0 before the first. */
  readonly position: number
  /** A fold of the events up to the moment, for what only derivations know. It is slow for earlier moments. */
  fold(): Fold
  /**
   * How the conditions of objects changed up to the moment. `most` limits the decisions that are read about
   * events before the states that are computed.
   */
  histories(
    objects: readonly ObjectKey[],
    most?: number,
  ): Promise<ReadonlyMap<ObjectKey, ObjectHistory>>
  /** Index of the first event from which on every change of a condition has its event; 0 if all have. */
  readonly knownFrom: number
}

/** Maximum number of segments besides the leading one. */
const maxOthers = 3
/** Lets other work run if there is some; called between events. */
type Pause = () => Promise<void> | undefined

interface LoadingOptions {
  /** Fetches the lines of events that are only reserved. */
  readonly fetch?: FetchLines | undefined
  readonly pause?: Pause
  /** Number of events that are folded rather than restoring a state. */
  readonly nearEnough?: number
}

export class LoadedLog {
  readonly events: EventTable
  readonly states = new StoredStates()
  /** What a reader should know about the states. */
  readonly notices = new Set<string>()
  /** Why the log ends before its last line. */
  damage: Error | undefined
  /** Goes on to the end of the log. */
  #leading: Segment | undefined
  /** Whether the leading segment was begun at a stored state of this fold version. */
  #canLendLeading = false
  /** Those that were begun at stored states, the last one used first. */
  #others: Segment[] = []
  #working: Promise<unknown> = Promise.resolve()
  readonly #pause: Pause
  readonly #nearEnough: number

  constructor(name: string, options: LoadingOptions = {}) {
    const { fetch, pause = () => undefined, nearEnough = 2_000 } = options
    this.events = new EventTable(name, (part) => this.states.addPart(part), fetch)
    this.#pause = pause
    this.#nearEnough = nearEnough
  }

  /** Number of events up to which the leading states are computed; later ones are only listed. */
  get folded(): number {
    return this.#leading?.end ?? 0
  }

  /** Versions of the fold that published states. */
  get foldVersions(): ReadonlySet<string> {
    return this.#leading?.foldVersions ?? new Set()
  }

  /**
   * Begins to compute states: from a stored one if it is given, or if the events before it are gone; otherwise
   * from the first event.
   */
  async begin(stored?: StoredState): Promise<void> {
    const first = this.events.positions[0] ?? 1
    const next = () => {
      if (stored !== undefined) return this.states.nearest(stored.position)
      return first > 1 ? this.states.covering(first) : undefined
    }
    for (let at = next(); at !== undefined; at = next()) {
      this.#leading = await this.#restore(at, () => undefined)
      if (this.#leading === undefined) continue
      this.#canLendLeading = at.foldVersion === foldVersion
      return this.#noteBeginning(at, first)
    }
    if (first > 1) {
      this.notices.add(
        `The log begins at position ${first}: objects that have not changed since are missing.`,
      )
    }
    this.#leading = new Segment(this.events, this.#borrow)
  }

  #noteBeginning({ position, foldVersion: writer }: StoredState, first: number): void {
    if (first > 1) {
      this.notices.add(
        `The log begins at position ${first}: states begin with the one that was stored at ${position}.`,
      )
    }
    if (writer === foldVersion) return
    this.notices.add(
      `The state at ${position} was stored by fold version ${writer}; this page has ${foldVersion}, so that states may differ from what was in force.`,
    )
  }

  /**
   * Folds the next event. If its line is damaged, the log ends before it.
   * @throws LogError `foreign`
   */
  foldNext(): void {
    this.#leading ??= new Segment(this.events, this.#borrow)
    this.#advance(this.#leading)
  }

  #advance(segment: Segment): void {
    const index = segment.end
    try {
      segment.foldNext()
    } catch (error) {
      if (!(error instanceof LogError)) throw error
      this.damage = error
      this.events.truncate(index)
      this.#others = this.#others.filter(({ end }) => end <= index)
      throw error
    }
  }

  /** Computes the state after an event unless it is known, before the states that are computed in order. */
  reach(index: number): Promise<void> {
    const reached = this.#working.then(() => this.#reach(index + 1))
    this.#working = reached.catch(() => undefined)
    return reached
  }

  /** Resolves when no state is computed out of order. */
  async idle(): Promise<void> {
    for (let last: unknown; last !== this.#working; ) {
      last = this.#working
      await last
    }
  }

  /** Whether the state after an event is known, or can be computed from a stored one. */
  isSoonKnown(index: number): boolean {
    if (this.#segmentOf(index + 1) !== undefined) return true
    const stored = this.states.nearest(this.events.positions[index] ?? 0)
    return stored !== undefined && this.events.indexAt(stored.position) >= this.folded
  }

  async #reach(count: number): Promise<void> {
    const segment = this.#segmentOf(count) ?? (await this.#segmentBefore(count))
    if (segment.begin > count) return
    await this.events.loadRange(segment.end, count - 1)
    while (segment.end < Math.min(count, this.events.length)) {
      this.#advance(segment)
      await this.#pause()
    }
  }

  #segmentOf(count: number): Segment | undefined {
    return [this.#leading, ...this.#others].find((segment) => segment?.covers(count))
  }

  /** The segment that is extended to a moment, or a new one from the nearest stored state. */
  async #segmentBefore(count: number): Promise<Segment> {
    const position = this.events.positions[count - 1] ?? 0
    const all = [this.#leading, ...this.#others].filter((segment) => segment !== undefined)
    const nearest = all.filter(({ end }) => end <= count).sort((a, b) => b.end - a.end)[0]
    for (;;) {
      const stored = this.states.nearest(position)
      if (stored === undefined) break
      const begin = this.events.indexAt(stored.position) + 1
      const isFar = nearest === undefined || begin - nearest.end > this.#nearEnough
      if (!isFar) break
      const segment = await this.#restore(stored)
      if (segment !== undefined) return this.#keep(segment)
    }
    if (nearest !== undefined) return nearest
    if (this.events.positions[0] === 1) return this.#keep(new Segment(this.events, this.#borrow))
    throw new RangeError(`The state after event ${position} is not known: earlier events are gone.`)
  }

  /** Undefined if the state is damaged; it is not used again. */
  async #restore(stored: StoredState, lend = this.#borrow): Promise<Segment | undefined> {
    const { position } = stored
    try {
      const base = await stored.load()
      if (base.position !== position) throw new TypeError(`it is that of ${base.position}`)
      const isOwn = stored.foldVersion === foldVersion
      const borrow = isOwn ? lend : undefined
      return new Segment(this.events, borrow, this.events.indexAt(position) + 1, base)
    } catch (error) {
      this.states.remove(stored)
      const why = error instanceof Error ? error.message : String(error)
      this.notices.add(
        `The stored state at position ${position} cannot be used (${why}); an earlier one is.`,
      )
      return undefined
    }
  }

  /**
   * Takes the fold of a segment that was begun at a stored state: to move it costs what differs between two states,
   * while a new one derives everything. The leading segment gets a new fold when the next event is to be folded.
   */
  readonly #borrow = (): Fold | undefined => {
    for (const segment of this.#others) {
      const fold = segment.release()
      if (fold !== undefined) return fold
    }
    return this.#canLendLeading ? this.#leading?.release() : undefined
  }

  #keep(segment: Segment): Segment {
    this.#others.unshift(segment)
    for (const old of this.#others.splice(maxOthers)) {
      for (let index = old.begin; index < old.end; index++) {
        if (this.#segmentOf(index + 1) === undefined) this.events.release(index)
      }
    }
    return segment
  }

  /**
   * The state after the event at or before a position; without a position, after the last event whose state is
   * known.
   * @throws RangeError if the state is not computed yet
   */
  at(position?: number): Moment {
    const index = position === undefined ? this.folded - 1 : this.events.indexAt(position)
    const segment = this.#segmentOf(index + 1) ?? (this.events.length === 0 && this.#empty)
    const isGone =
      position !== undefined && position > 0 && position < (this.events.positions[0] ?? 1) - 1
    if (!segment || isGone) {
      throw new RangeError(
        `The state after event ${position} is not known: earlier events are gone.`,
      )
    }
    return {
      log: this,
      index,
      position: this.events.positions[index] ?? 0,
      ...segment.at(index),
      fold: () => segment.foldAt(index),
      histories: (objects, most) => readHistories(this.events, segment, index, objects, most),
      knownFrom: segment.begin,
    }
  }

  get #empty(): Segment {
    return new Segment(this.events)
  }

  /** The manifest of the version in force, as the log has it. */
  manifest({ applied, stored }: ObjectVersion): Readonly<Record<string, unknown>> {
    if (stored?.object !== undefined) return { ...stored.object }
    const event = applied === undefined ? undefined : this.events.read(applied).event
    return event?.type === 'dev.sluice.resource.applied.v1' ? { ...event.data.object } : {}
  }

  /** Why the later version was refused. */
  refusal({ refused, stored }: ObjectVersion) {
    if (stored?.refused !== undefined) return stored.refused
    const event = refused === undefined ? undefined : this.events.read(refused).event
    return event?.type === 'dev.sluice.resource.refused.v1'
      ? event.data
      : { generation: 0, problems: [] }
  }
}
