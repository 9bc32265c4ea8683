/** How the conditions of objects changed, and which events changed them. */

import type { ObjectKey } from '../../src/ground/model/names.ts'
import { type ConditionHistory, historyOf } from '../../src/past/explain/conditions.ts'
import type { EventTable } from './event-table.ts'
import type { Segment } from './segment.ts'

interface Cause {
  /** Index of the event; undefined if it is not known. */
  readonly index: number | undefined
  /** Rises from status to status. */
  readonly order: number
  /** Indexes of the events of which one is the cause, if they are known. */
  readonly candidates: readonly number[]
}

export interface ObjectHistory extends ConditionHistory<Cause> {
  /**
   * Indexes of the events of which one last changed a condition: mostly one event; none if it is not known.
   */
  causesOf(place: string, type: string): readonly number[]
}

/** The status of an object after an event. */
interface StatusAfter {
  /** Index of the event; undefined if it is not known. */
  readonly cause: number | undefined
  /** Indexes of the events that the status contains, if there are several and all are known. */
  readonly candidates?: readonly number[]
  readonly status: unknown
  /** Whether several events changed the status, so that a condition may have changed and changed back. */
  readonly isJoined?: boolean
}

/** Maximum number of events of which one is a cause; more of them are of no use to a reader. */
const maxCandidates = 8
/** Maximum number of decisions about an object that are read. */
const maxDecisions = 500

/**
 * The changes after the beginning of a segment are those of its states. Earlier ones are read from the
 * decisions in the log, which name their causes.
 */
export async function readHistories(
  events: EventTable,
  segment: Segment,
  last: number,
  objects: readonly ObjectKey[],
  most = maxDecisions,
): Promise<Map<ObjectKey, ObjectHistory>> {
  const isWhole = segment.begin === 0
  const earlier = isWhole ? new Map() : await decisionsBefore(events, segment, objects, most)
  const hasAll = events.positions[0] === 1 && events.unlisted === 0
  return new Map(
    objects.map((object) => {
      const decided: readonly StatusAfter[] = earlier.get(object) ?? []
      const own = segment.statusesOf(object).filter(({ cause = -1 }) => cause <= last)
      // What the first decision changed is not known if there may be others before it.
      const first = hasAll && decided.length < most ? undefined : decided[0]?.status
      return [object, objectHistory(first, [...decided, ...own])]
    }),
  )
}

function objectHistory(first: unknown, statuses: readonly StatusAfter[]): ObjectHistory {
  const causes = statuses.map(({ cause, candidates, status }, order) => ({
    cause: { index: cause, order, candidates: candidates ?? (cause === undefined ? [] : [cause]) },
    status,
  }))
  const history = historyOf(first, causes)
  return {
    ...history,
    causesOf: (place, type) => {
      const { cause } =
        history.steps.findLast(({ changes }) =>
          changes.some((change) => change.place === place && change.type === type),
        ) ?? {}
      if (cause === undefined) return []
      // Later statuses of several events may contain changes that undo each other.
      const joined = statuses.slice(cause.order + 1).filter(({ isJoined }) => isJoined === true)
      const later = joined.map(({ candidates = [] }) => candidates)
      if (later.some(({ length }) => length === 0)) return []
      const all = [...new Set([...cause.candidates, ...later.flat()])]
      return cause.candidates.length === 0 || all.length > maxCandidates ? [] : all
    },
  }
}

/** The statuses before a segment. */
async function decisionsBefore(
  events: EventTable,
  { begin }: Segment,
  objects: readonly ObjectKey[],
  most: number,
): Promise<Map<ObjectKey, StatusAfter[]>> {
  const found = new Map<ObjectKey, number[]>()
  for (const [object, all] of events.aboutAll(objects, 'conditions.decided')) {
    const earlier = all.filter((index) => index < begin)
    // A decision about the last events before the segment may be in it.
    const next = all.find((index) => index >= begin)
    found.set(object, [...earlier, ...(next === undefined ? [] : [next])].slice(-most))
  }
  await events.load([...found.values()].flat())
  const base = events.positions[begin - 1] ?? 0
  return new Map(
    [...found].map(([object, indexes]) => [
      object,
      indexes.flatMap((index) => statusOf(events, index, base)),
    ]),
  )
}

/** The status in a decision; none if it contains events after a position. */
function statusOf(events: EventTable, index: number, base: number): StatusAfter[] {
  const { event } = events.read(index)
  if (event.type !== 'dev.sluice.conditions.decided.v1') return []
  const { causes = [], moreCauses = false, status } = event.data
  if (causes.some((position) => position > base)) return []
  const indexes = causes.map((position) => events.indexAt(position))
  const areKnown = !moreCauses && causes.every((at, n) => events.positions[indexes[n] ?? -1] === at)
  const [cause, ...others] = areKnown ? indexes : []
  if (others.length === 0) return [{ cause, status, isJoined: cause === undefined }]
  return [{ cause: undefined, candidates: indexes, status, isJoined: true }]
}
