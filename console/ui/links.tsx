/** Links to objects and events. */

import { objectText, parseObjectKey } from '../../src/ground/model/names.ts'
import { linkTo, objectLink } from '../state/location.ts'

export const ObjectLink = ({ object, at }: { object: string; at?: number }) => (
  <a href={objectLink(object, {}, at)}>{objectText(parseObjectKey(object))}</a>
)

/** A link to an event, at the moment of which it opens. */
export const EventLink = ({ position }: { position: number }) => (
  <a class="event" href={linkTo('event', [`${position}`], {}, position)}>
    event {position}
  </a>
)

/** Links to the events of which one was a cause, and to what they changed; nothing if there are none. */
export function CauseLinks({ positions }: { positions: readonly number[] }) {
  const [first, last] = [positions[0], positions.at(-1)]
  if (first === undefined || last === undefined) return null
  return (
    <>
      {positions.length > 1 && 'one of '}
      {positions.map((position) => (
        <span key={position}>
          <EventLink position={position} />{' '}
        </span>
      ))}
      <ChangeLink position={last} previous={first - 1} />
    </>
  )
}

/** A link to what an event changed. */
export const ChangeLink = ({ position, previous }: { position: number; previous?: number }) => (
  <a href={linkTo('diff', [], { from: `${previous ?? position - 1}` }, position)}>what changed</a>
)
