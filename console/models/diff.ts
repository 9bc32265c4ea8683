/** What differs between two moments: statuses line by line, resources for proxies, and the events between. */

import { parseObjectKey } from '../../src/ground/model/names.ts'
import {
  compareStates,
  type StateContent,
  statusLines,
} from '../../src/past/explain/differences.ts'
import type { Moment } from '../log/loaded-log.ts'
import type { Values } from '../log/versions.ts'

/** Maximum number of events between the two moments that are listed. */
const maxEvents = 200

export async function diffModel(end: Moment, { from }: { readonly from: number }) {
  const { log } = end
  await log.reach(log.events.indexAt(from))
  const start = log.at(from)
  const { statuses, resources } = compareStates(...changedContent(start, end), false)
  const between = { first: start.index + 1, last: end.index }
  const count = Math.max(0, between.last - between.first + 1)
  const listed = Array.from({ length: Math.min(count, maxEvents) }, (_, at) => between.last - at)
  await log.events.load(listed)
  return {
    from: start.position,
    to: end.position,
    statuses: statuses.map(({ key, before: old, after }) => {
      const [removed, added] = [statusLines(old), statusLines(after)]
      return {
        object: key,
        removed: removed.filter((line) => !added.includes(line)),
        added: added.filter((line) => !removed.includes(line)),
      }
    }),
    resources,
    eventCount: count,
    events: listed.map((index) => log.events.row(index)),
  }
}

/** The statuses and resources of two moments without those that no event between them has changed. */
function changedContent(start: Moment, end: Moment): [StateContent, StateContent] {
  const statuses = changedKeys(start.statuses, end.statuses)
  const resources = changedKeys(start.resources, end.resources)
  const contentOf = (moment: Moment): StateContent => ({
    statuses: statuses.flatMap((key) => {
      const status = moment.statuses.get(key)
      return status === undefined ? [] : [[parseObjectKey(key), status] as const]
    }),
    resources: resources.flatMap((key) => moment.resources.get(key) ?? []),
  })
  return [contentOf(start), contentOf(end)]
}

function changedKeys<Value>(before: Values<Value>, after: Values<Value>): string[] {
  const keys = new Set<string>()
  for (const [key, value] of before.entries()) if (after.get(key) !== value) keys.add(key)
  for (const [key, value] of after.entries()) if (before.get(key) !== value) keys.add(key)
  return [...keys]
}
