/** How the conditions of objects changed, and which events changed them. */
import { type ConditionHistory, historyOf } from '../../src/explain/conditions.ts'
import type { ObjectKey } from '../../src/model/names.ts'
import type { EventTable } from './event-table.ts'
import type { Segment } from './segment.ts'

interface Cause {
  /** Index of the event; undefined if it is not known. */
  readonly index: number | undefined
  /** Rises from status to status. */
  readonly order: number
}

export interface ObjectHistory extends ConditionHistory<Cause> {
  /** Index of the event that last changed a condition; undefined if it is not known. */
  causeOf(place: string, type: string): number | undefined
}

/** The status of an object after an event. */
interface StatusAfter {
  /** Index of the event; undefined if it is not known. */
  readonly cause: number | undefined
  readonly status: unknown
  /** Whether several events changed the status, so that a condition may have changed and changed back. */
  readonly isJoined?: boolean
}

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
  const causes = statuses.map(({ cause, status }, order) => ({
    cause: { index: cause, order },
    status,
  }))
  const history = historyOf(first, causes)
  const lastJoined = statuses.findLastIndex(({ isJoined }) => isJoined === true)
  return {
    ...history,
    causeOf: (place, type) => {
      const { cause } =
        history.steps.findLast(({ changes }) =>
          changes.some((change) => change.place === place && change.type === type),
        ) ?? {}
      return cause === undefined || cause.order <= lastJoined ? undefined : cause.index
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
  const [position = 0] = causes
  const isJoined = causes.length !== 1 || moreCauses
  const cause = events.indexAt(position)
  const isKnown = !isJoined && events.positions[cause] === position
  return [{ cause: isKnown ? cause : undefined, status, isJoined }]
}
