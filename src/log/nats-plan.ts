import { fail, type Outcome, succeed } from '../base/outcome.ts'
import { type EncodedEvent, findConflict } from './encode.ts'
import type { AppendProblem, ExpectedVersion, Position } from './log.ts'
import { digestOf } from './nats-frames.ts'
import type { StreamIndex } from './nats-index.ts'

export type Appended = Outcome<readonly Position[], AppendProblem>

/** An append that waits for its turn. */
export interface AppendRequest {
  readonly events: readonly EncodedEvent[]
  readonly expectedVersion: ExpectedVersion | undefined
}

/** What a group of appends comes to, in the order of the calls, at one state of the log. */
interface Plan {
  /** One for each request; true once `events` are stored behind the state. */
  readonly results: readonly Appended[]
  /** What the log does not hold yet. */
  readonly events: readonly (EncodedEvent & { readonly digest: string })[]
}

export function planAppends(requests: readonly AppendRequest[], index: StreamIndex): Plan {
  const events: (EncodedEvent & { readonly digest: string })[] = []
  const staged = new Map<string, Position>()
  const lastOfSubject = new Map<string, Position>()
  const last = () => (index.lastPosition() + events.length) as Position
  const versions = {
    purgedUpTo: index.purgedUpTo,
    lastPosition: last,
    lastOfSubject: (subject: string) => lastOfSubject.get(subject) ?? index.lastOfSubject(subject),
  }
  const decide = (request: AppendRequest): Appended => {
    const wanted = request.events.map((event) => ({ ...event, digest: digestOf(event.id) }))
    const known = (digest: string) => staged.get(digest) ?? index.positionOf(digest)
    const isRepeated = wanted.every(({ digest }) => known(digest) !== undefined)
    if (request.expectedVersion !== undefined && !isRepeated) {
      const conflict = findConflict(request.expectedVersion, versions)
      if (conflict !== undefined) return fail(conflict)
    }
    return succeed(
      wanted.map((event) => {
        const before = known(event.digest)
        if (before !== undefined) return before
        events.push(event)
        staged.set(event.digest, last())
        lastOfSubject.set(event.subject, last())
        return last()
      }),
    )
  }
  return { results: requests.map(decide), events }
}
