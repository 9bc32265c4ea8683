/**
 * Replays a recorded log with the fold of the controller, but without sources, proxies or clocks. With the
 * same fold version, it computes the same digests that the running controller recorded.
 */
import {
  type Digests,
  Fold,
  type FoldSnapshot,
  foldVersion,
  type RecordedEvent,
} from '../../control/actors/fold.ts'
import { createGraph, type DerivationOptions } from '../../control/desired/derivations.ts'

export {
  type Digests,
  Fold,
  type FoldSnapshot,
  foldVersion,
  type RecordedEvent,
} from '../../control/actors/fold.ts'
export type { DerivationOptions } from '../../control/desired/derivations.ts'
export {
  type EventChange,
  type Moment,
  Timeline,
  type TimelineLimits,
  type TimelineSource,
  type ValueChange,
} from './timeline.ts'

/** A published state whose recorded digests differ from those of the replay. */
export interface Comparison {
  /** Position of the last event that the published state contains. */
  readonly version: number
  readonly recorded: { readonly desired: string; readonly status: string }
  readonly replayed: { readonly desired: string; readonly status: string } | undefined
  readonly equal: false
  /** Version of the fold that published the state. */
  readonly foldVersion: string
}

export interface Replay {
  readonly fold: Fold
  /** Number of events that were read. */
  readonly events: number
  /** Number of events missing between the beginning, or the stored state, and the first event read. */
  readonly missing: number
  /** Number of published states. */
  readonly published: number
  /** Number of published states not compared, because of another fold version or missing earlier events. */
  readonly incomparable: number
  /** Number of published states not compared, because an export leaves out credentials of earlier events. */
  readonly redacted: number
  /** Published states whose digests differ, in order. */
  readonly different: readonly Comparison[]
  /** Version of the fold that replayed the log. */
  readonly foldVersion: string
}

/**
 * Creates a fold that is empty or has the stored state `base`; events are then applied one by one. `reused` is a
 * fold of the same log that is not needed any more, and gets the stored state: only what differs is derived.
 */
export function createFold(options: DerivationOptions, base?: FoldSnapshot, reused?: Fold): Fold {
  const fold = reused ?? new Fold(createGraph(options))
  if (base !== undefined) fold.restore(base)
  return fold
}

type RecordedEvents = AsyncIterable<RecordedEvent> | Iterable<RecordedEvent>

/** A part of a log that is replayed separately from other parts. */
export interface Segment {
  /** Whether another segment ends at the stored state, and compares what was published about it and before. */
  readonly isContinued: boolean
  /** Last position to fold. Later events are only searched for states that were published up to it. */
  readonly end: number
  /** Positions to stop at, in order; the last one may be `end`. */
  readonly stops: readonly number[]
  /** Whether the state to begin with lacks credentials that an export leaves out. */
  readonly isRedacted?: boolean
  /** Called with the fold at each of these positions. */
  readonly onStop: (fold: Fold) => void | Promise<void>
}

/** The state after the last event, from the beginning or from a stored state. Compares no digests. */
export async function foldEvents(
  events: RecordedEvents,
  options: DerivationOptions,
  base?: FoldSnapshot,
): Promise<Fold> {
  const fold = createFold(options, base)
  for await (const entry of events) {
    fold.apply(entry)
    if (entry.event.type === 'dev.sluice.desired.published.v1') fold.dropChange()
  }
  return fold
}

/** Folds recorded events in order, from the beginning or from a stored state, and compares digests. */
export async function replay(
  events: RecordedEvents,
  options: DerivationOptions,
  base?: FoldSnapshot,
  segment: Segment = wholeLog,
): Promise<Replay> {
  const fold = createFold(options, base)
  const stops = [...segment.stops]
  const stopBefore = async (position: number) => {
    for (let stop = stops[0]; stop !== undefined && stop < position; stop = stops[0]) {
      stops.shift()
      digests.foldTo(stop)
      await segment.onStop(fold)
    }
  }
  const digests = new DigestHistory(fold)
  const different: Comparison[] = []
  let published = 0
  let incomparable = 0
  let redacted = 0
  let isRedacted = segment.isRedacted === true
  let count = 0
  let missing = 0
  for await (const entry of events) {
    const { position, event } = entry
    if (count === 0) missing = Math.max(0, position - 1 - fold.position)
    await stopBefore(position)
    if (position <= segment.end) {
      count++
      digests.add(entry)
      isRedacted ||= entry.redacted === true
    }
    if (event.type !== 'dev.sluice.desired.published.v1') continue
    if (!isOwn(event.data.version, position, segment, base)) continue
    const { version, digest, statusDigest, foldVersion: writer } = event.data
    const recorded = { desired: digest, status: statusDigest }
    const replayed = digests.at(version)
    const isSame = replayed?.desired === recorded.desired && replayed.status === recorded.status
    const isKnown = base === undefined || version >= base.position
    published++
    if (writer !== foldVersion || missing > 0 || !isKnown) incomparable++
    else if (isRedacted) redacted++
    else if (!isSame) {
      different.push({ version, recorded, replayed, equal: false, foldVersion: writer })
    }
  }
  digests.finish()
  await stopBefore(Number.POSITIVE_INFINITY)
  return { fold, events: count, missing, published, incomparable, redacted, different, foldVersion }
}

/** A log that is replayed in one piece. */
export const wholeLog: Segment = {
  isContinued: false,
  end: Number.POSITIVE_INFINITY,
  stops: [],
  onStop: () => undefined,
}

/** Number of events that wait for a published state before they are folded without it. */
const maxWaiting = 4_096

/** Number of events after a segment in which states are looked for that were published about it. */
export const segmentOverlap = maxWaiting

/** Whether a published state is compared by this segment, and not by the one before or after it. */
function isOwn(
  version: number,
  position: number,
  { isContinued, end }: Segment,
  base: FoldSnapshot | undefined,
): boolean {
  if (version > end) return false
  const begin = base?.position ?? 0
  return !(isContinued && version <= begin && position <= begin + segmentOverlap)
}

/**
 * Folds events and knows the digests of earlier positions. To hash only what a published state is compared
 * with, an event waits until the next published state, which has the position to compare at.
 */
class DigestHistory {
  readonly #fold: Fold
  #waiting: RecordedEvent[] = []
  /** Known digests, in order. Those before the last queried position are dropped. */
  #known: { readonly position: number; readonly digests: Digests }[] = []
  #last = 0

  constructor(fold: Fold) {
    this.#fold = fold
  }

  add(entry: RecordedEvent): void {
    this.#waiting.push(entry)
    this.#last = entry.position
    if (this.#waiting.length < maxWaiting) return
    for (const waiting of this.#waiting) {
      this.#fold.apply(waiting)
      this.#note()
    }
    this.#waiting = []
  }

  /** Returns the digests at a position, if known. Positions must be queried in ascending order. */
  at(position: number): Digests | undefined {
    if (position > this.#last) return undefined
    const later = this.#waiting.findIndex((entry) => entry.position > position)
    const due = this.#waiting.splice(0, later < 0 ? this.#waiting.length : later)
    for (const entry of due) this.#fold.apply(entry)
    this.#fold.dropChange()
    if (due.length > 0 || this.#known.length === 0) this.#note()
    const index = this.#known.findLastIndex((known) => known.position <= position)
    if (index < 0) return undefined
    // Older positions are not queried again.
    this.#known = this.#known.slice(index)
    return this.#known[0]?.digests
  }

  /** Folds the waiting events up to a position, and remembers the digests of all of them. */
  foldTo(position: number): void {
    while (this.#waiting[0] !== undefined && this.#waiting[0].position <= position) {
      this.#fold.apply(this.#waiting[0])
      this.#waiting.shift()
      this.#note()
    }
  }

  /** Folds the events that still wait. */
  finish(): void {
    for (const entry of this.#waiting) this.#fold.apply(entry)
    this.#waiting = []
  }

  #note(): void {
    const position = this.#fold.changedAt
    if (this.#known.at(-1)?.position === position) return
    this.#known.push({ position, digests: this.#fold.digests() })
  }
}
