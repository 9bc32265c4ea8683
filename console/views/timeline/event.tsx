import { linkTo, place } from '../../state/location.ts'
import { useModel } from '../../state/worker-client.ts'
import { ObjectLink } from '../../ui/links.tsx'
import { Scroll } from '../../ui/scroll.tsx'
import { Content, Empty } from '../../ui/states.tsx'
import { Time } from '../../ui/times.tsx'
import { Differences } from '../diff/view.tsx'

/** One event: what it says, and what it changed. */
export function Event() {
  const position = Number(place.value.rest[0])
  const shown = useModel('event', { position })
  return (
    <Content shown={shown} what={`event ${position}`}>
      {(event) =>
        event === undefined ? (
          <Empty>The log has no event {place.value.rest[0]}.</Empty>
        ) : (
          <article>
            <header class="title">
              <h1>Event {event.row.position}</h1>
              <Time time={event.row.time} />
              <span>{event.row.type}</span>
              {event.row.object !== '' && <ObjectLink object={event.row.object} />}
              <span class="quiet">{event.row.detail}</span>
              <nav aria-label="Neighbouring events">
                {event.previous > 0 && <Neighbour position={event.previous} text="previous" />}{' '}
                {event.next !== undefined && <Neighbour position={event.next} text="next" />}
              </nav>
            </header>
            <h2>What it changed</h2>
            <Differences from={event.previous} isShort />
            <h2>Content</h2>
            <Scroll label="Content">
              <pre>{event.json}</pre>
            </Scroll>
          </article>
        )
      }
    </Content>
  )
}

const Neighbour = ({ position, text }: { position: number; text: string }) => (
  <a href={linkTo('event', [`${position}`], {}, position)}>{text}</a>
)
