/** Events: which of them match a filter, where in the log they are, and what lists show of them. */

import type { EventRow } from '../log/event-table.ts'
import type { Moment } from '../log/loaded-log.ts'

interface TimelineParams {
  readonly type?: string
  /** Key of an object. */
  readonly subject?: string
  /** Part of the object or the type. */
  readonly text?: string
  /** If true, only events that changed a status or a resource for proxies. */
  readonly changes?: boolean
}

/** Maximum number of columns of the density chart. */
const maxColumns = 240

export function timelineModel({ log }: Moment, params: TimelineParams) {
  const { events } = log
  const { type = '', subject = '', text = '', changes = false } = params
  const wanted = text.toLowerCase()
  const typeMatches = events.types.texts.map((name) => name.toLowerCase().includes(wanted))
  const objectMatches = events.objects.texts.map((name) => name.toLowerCase().includes(wanted))
  const typeNumber = events.types.texts.indexOf(type)
  const candidates = subject === '' ? undefined : events.about(subject)
  const count = candidates?.length ?? events.length
  const found = new Uint32Array(count)
  let size = 0
  for (let at = 0; at < count; at++) {
    const index = candidates?.[at] ?? at
    if (type !== '' && events.typeOf[index] !== typeNumber) continue
    if (!events.isListed(index)) continue
    if (changes && !events.hasChanged(index)) continue
    const isMatch =
      wanted === '' ||
      typeMatches[events.typeOf[index] ?? 0] ||
      objectMatches[events.objectOf[index] ?? 0]
    if (isMatch) found[size++] = index
  }
  const indexes = found.slice(0, size)
  return {
    positions: Uint32Array.from(indexes, (index) => events.positions[index] ?? 0),
    total: events.length,
    /** Number of events that are not listed yet. */
    unlisted: events.unlisted,
    types: events.types.texts.filter((name) => name !== '').sort(),
    density: densityOf(log.events, indexes),
  }
}

/** For each column of the log: the number of matching events, and of statuses that they changed. */
function densityOf(events: Moment['log']['events'], indexes: Uint32Array) {
  const first = events.positions[0] ?? 0
  const span = Math.max(1, (events.positions.at(-1) ?? 0) - first + 1)
  const columns = Math.min(maxColumns, span)
  const counts = new Uint32Array(columns)
  const changed = new Uint32Array(columns)
  for (const index of indexes) {
    const column = Math.floor((((events.positions[index] ?? 0) - first) * columns) / span)
    counts[column] = (counts[column] ?? 0) + 1
    changed[column] = (changed[column] ?? 0) + Math.max(0, events.statuses[index] ?? 0)
  }
  return { counts, changed }
}

/** The rows of a list, by position. */
export async function rowsModel(
  { log: { events } }: Moment,
  { positions }: { readonly positions: readonly number[] },
): Promise<EventRow[]> {
  const indexes = positions.map((position) => events.indexAt(position))
  await events.load(indexes)
  return indexes.map((index) => events.row(index))
}

/** The time of the event at or before a position. */
export async function timeModel(
  { log: { events } }: Moment,
  { position }: { readonly position: number },
): Promise<number | undefined> {
  const index = events.indexAt(position)
  if (!events.isListed(index)) await events.load([index])
  return events.timesMs[index]
}

/** One event, and what it changed in statuses and resources is in the difference to the one before. */
export async function eventModel(
  { log: { events } }: Moment,
  { position }: { readonly position: number },
) {
  const index = events.indexAt(position)
  if (index < 0 || events.positions[index] !== position) return undefined
  await events.load([index])
  return {
    row: events.row(index),
    previous: events.positions[index - 1] ?? 0,
    next: events.positions[index + 1],
    json: JSON.stringify(JSON.parse(events.text(index)), undefined, 2),
  }
}
