import type { EventRow } from '../log/event-table.ts'
import { ChangeLink, EventLink, ObjectLink } from './links.tsx'
import { Scroll } from './scroll.tsx'
import { Time } from './times.tsx'

/** A short list of events. */
export const EventTableRows = ({ events }: { events: readonly EventRow[] }) => (
  <Scroll label="Events">
    <table>
      <thead>
        <tr>
          <th>Event</th>
          <th>Time</th>
          <th>Type</th>
          <th>Object</th>
          <th>Detail</th>
          <th>Changed</th>
        </tr>
      </thead>
      <tbody>
        {events.map(({ position, time, type, object, detail, statuses, resources }) => (
          <tr key={position}>
            <td class="nowrap">
              <EventLink position={position} />
            </td>
            <td class="nowrap">
              <Time time={time} />
            </td>
            <td>{type}</td>
            <td>{object !== '' && <ObjectLink object={object} at={position} />}</td>
            <td>{detail}</td>
            <td class="nowrap">
              {statuses + resources !== 0 ? (
                <ChangeLink position={position} />
              ) : (
                <span class="quiet">nothing</span>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </Scroll>
)
