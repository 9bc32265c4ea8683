/** What differs between two moments: statuses line by line, resources for proxies, and the events between. */
import { compareStates, type StateContent, statusLines } from '../../../src/explain/differences.ts'
import { parseObjectKey } from '../../../src/model/names.ts'
import type { Moment } from '../../worker/loaded-log.ts'

/** Maximum number of events between the two moments that are listed. */
const maxEvents = 200

export function diffModel(end: Moment, { from }: { readonly from: number }) {
  const { log } = end
  const start = log.at(from)
  const { statuses, resources } = compareStates(contentOf(start), contentOf(end), false)
  const between = { first: start.index + 1, last: end.index }
  const count = Math.max(0, between.last - between.first + 1)
  const listed = Math.min(count, maxEvents)
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
    events: Array.from({ length: listed }, (_, at) => log.events.row(between.last - at)),
  }
}

const contentOf = ({ statuses, resources }: Moment): StateContent => ({
  statuses: [...statuses.entries()].map(([key, status]) => [parseObjectKey(key), status]),
  resources: [...resources.entries()].map(([, resource]) => resource),
})
