/**
 * The history of an object's conditions. A log names the causes of every status change in its decisions, so
 * that little of it is folded. An export, and what other fold versions have written, is folded as a whole.
 */
import { conditionsDecided, desiredPublished } from '../../../../events/index.ts'
import {
  type EventLog,
  type Position,
  type Recorded,
  subjectOf,
} from '../../../control/log/index.ts'
import { loadState } from '../../../control/plane/stored-state.ts'
import type { ObjectRef } from '../../../ground/model/names.ts'
import { type ConditionHistory, historyOf } from '../../../past/explain/conditions.ts'
import { createFold, type Fold, foldVersion } from '../../../past/replay/index.ts'
import type { LogSource, OpenRecording } from './recording.ts'

/** Number of events that are read at a time in the search for the last published state. */
const searchedEvents = 1_000

interface ObjectHistory {
  readonly history: ConditionHistory<Recorded>
  /** Number of events in which changes were looked for. */
  readonly events: number
  /** The objects that exist at the end. */
  readonly known: () => Promise<readonly ObjectRef[]>
}

/** The status of an object after an event. */
interface StatusAfter {
  readonly cause: Recorded
  readonly status: unknown
}

/** Reads the history of an object from an open recording. */
export async function readHistory(
  recording: OpenRecording,
  ref: ObjectRef,
): Promise<ObjectHistory> {
  const { source, extent, events, derivation } = recording
  const { base } = extent
  if (source === undefined) {
    const fold = createFold(derivation, base)
    const initial = fold.statusOf(ref)
    const changes = await Array.fromAsync(changesOf(fold, events, ref))
    const count = fold.position - (base?.position ?? 0)
    const known = async () => objectsOf(fold)
    return { history: historyOf(initial, changes), events: count, known }
  }
  const reader = new HistoryReader(source, recording, ref)
  const changes = await Array.fromAsync(reader.changes())
  const initial = base && createFold(derivation, base).statusOf(ref)
  return {
    history: historyOf(initial, changes),
    events: source.to - extent.first + 1,
    known: () => reader.known(),
  }
}

const objectsOf = (fold: Fold) => [...fold.graph.objects()].map((state) => state.ref)

/** Folds events, and yields the status of an object whenever it has changed. */
async function* changesOf(
  fold: Fold,
  events: OpenRecording['events'],
  ref: ObjectRef,
): AsyncGenerator<StatusAfter> {
  let last: unknown = fold.statusOf(ref)
  for await (const cause of events) {
    fold.apply(cause)
    if (cause.event.type === desiredPublished.type) fold.dropChange()
    const status = fold.statusOf(ref)
    if (status === last) continue
    last = status
    yield { cause, status }
  }
}

class HistoryReader {
  readonly #log: EventLog
  readonly #to: Position
  readonly #recording: OpenRecording
  readonly #ref: ObjectRef
  /** Continues where the last range that was folded ended. */
  #fold: Fold | undefined

  constructor({ log, to }: LogSource, recording: OpenRecording, ref: ObjectRef) {
    this.#log = log
    this.#to = to
    this.#recording = recording
    this.#ref = ref
  }

  /** The statuses of the object, each with the event that changed it. */
  async *changes(): AsyncGenerator<StatusAfter> {
    const { extent } = this.#recording
    const begin = extent.base?.position ?? extent.first - 1
    const recorded = await this.#recordedRange()
    const since = Math.max(begin, Math.min(recorded.since, this.#to))
    yield* this.#foldRange(begin, since)
    let at = since
    for await (const { causes, isWhole, status, position } of this.#decisions(since)) {
      const [first = position, second] = causes
      if (first > this.#to) break
      if (isWhole && second === undefined && causes.length === 1) {
        if (first > at) yield { cause: await this.#eventAt(first), status }
        at = first
        continue
      }
      const last = Math.min(isWhole ? (causes.at(-1) ?? position) : position, this.#to)
      yield* this.#foldRange(Math.max(at, first - 1), last)
      at = Math.max(at, last)
    }
    yield* this.#foldRange(Math.max(at, recorded.upTo), this.#to)
  }

  async known(): Promise<readonly ObjectRef[]> {
    return objectsOf(await this.#foldTo(this.#to))
  }

  /**
   * The range of positions in which every change is in a decision of this fold version. The last published
   * state in the log says where it begins.
   */
  async #recordedRange(): Promise<{ readonly since: number; readonly upTo: number }> {
    const own = (await this.#log.snapshots()).findLast((one) => one.foldVersion === foldVersion)
    const published = await this.#lastPublished()
    const since = published?.foldVersion === foldVersion ? published.recordedSince : undefined
    if (published === undefined || since === undefined) return { since: this.#to, upTo: this.#to }
    // A snapshot is stored after the decisions up to its position.
    return { since, upTo: Math.max(published.version, own?.position ?? 0) }
  }

  async #lastPublished() {
    const first = await this.#log.firstPosition()
    for (let to: number = await this.#log.lastPosition(); to >= first; to -= searchedEvents) {
      const from = Math.max(first, to - searchedEvents + 1) as Position
      const events = await Array.fromAsync(this.#log.read({ from, to: to as Position }))
      for (const { event } of events.reverse()) {
        if (event.type === desiredPublished.type) return event.data
      }
    }
    return undefined
  }

  async *#decisions(since: number) {
    const subject = subjectOf(this.#ref)
    const from = Math.max(since + 1, this.#recording.extent.first) as Position
    for await (const { position, event } of this.#log.read({ subject, from })) {
      if (event.type !== conditionsDecided.type) continue
      const { causes = [], moreCauses = false, status } = event.data
      yield {
        position,
        causes: causes.filter((cause) => cause > since),
        isWhole: !moreCauses,
        status,
      }
    }
  }

  async #eventAt(position: number): Promise<Recorded> {
    const at = position as Position
    const [found] = await Array.fromAsync(this.#log.read({ from: at, to: at }))
    if (found === undefined) throw new RangeError(`the log has no event at position ${position}`)
    return found
  }

  /** Folds the events of a range, and yields the changes after each of them. */
  async *#foldRange(after: number, to: number): AsyncGenerator<StatusAfter> {
    if (after >= to) return
    const fold = await this.#foldTo(after)
    const range = { from: (fold.position + 1) as Position, to: to as Position }
    yield* changesOf(fold, this.#log.read(range), this.#ref)
  }

  /** The state at a position, from the last one or from the nearest snapshot. */
  async #foldTo(position: number): Promise<Fold> {
    const { extent, derivation } = this.#recording
    const stored = (await this.#log.snapshots())
      .filter((one) => one.foldVersion === foldVersion && one.position <= position)
      .toReversed()
    const known = this.#fold
    const isAhead = known !== undefined && known.position <= position
    const isNearest = isAhead && known.position >= (stored[0]?.position ?? 0)
    const fold = isNearest
      ? known
      : createFold(derivation, (await loadState(this.#log, stored))?.fold ?? extent.base)
    this.#fold = fold
    const from = Math.max(fold.position + 1, extent.first) as Position
    if (from > position) return fold
    for await (const recorded of this.#log.read({ from, to: position as Position })) {
      fold.apply(recorded)
      if (recorded.event.type === desiredPublished.type) fold.dropChange()
    }
    return fold
  }
}
