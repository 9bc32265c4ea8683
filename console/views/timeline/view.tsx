import { useCallback, useRef, useState } from 'preact/hooks'
import { objectText, parseObjectKey } from '../../../src/ground/model/names.ts'
import type { EventRow } from '../../log/event-table.ts'
import { go, linkTo, place, setParams } from '../../state/location.ts'
import { ask, log, useLogModel } from '../../state/worker-client.ts'
import { Filters } from '../../ui/filters.tsx'
import { Content, Empty } from '../../ui/states.tsx'
import { timeText } from '../../ui/times.tsx'
import { VirtualList } from '../../ui/virtual-list.tsx'
import type { Answer } from '../../worker/protocol.ts'
import { Density } from './density.tsx'

/** Maximum number of rows that are kept, so that a long scroll does not fill the memory. */
const maxRows = 2_000

export function Timeline() {
  const { type = '', subject = '', text = '', changes = '' } = place.value.params
  const shown = useLogModel('timeline', { type, subject, text, changes: changes === 'yes' })
  return (
    <Content shown={shown} what="events">
      {(answer) => (
        <section class="card fill">
          <Filters
            filters={[
              { type: 'text', name: 'text', label: 'Text', hint: 'part of object or type' },
              {
                type: 'choice',
                name: 'type',
                label: 'Type',
                options: answer.types.map((name) => [name, name]),
              },
              { type: 'check', name: 'changes', label: 'only events that changed something' },
            ]}
            count={[answer.positions.length, answer.total]}
          >
            {subject !== '' && (
              <button type="button" onClick={() => setParams({ subject: '' })}>
                {objectText(parseObjectKey(subject))} ✕
              </button>
            )}
          </Filters>
          {answer.unlisted > 0 && (
            <p class="quiet" role="status">
              {answer.unlisted} earlier events are being listed.
            </p>
          )}
          <Density density={answer.density} />
          {answer.positions.length === 0 ? (
            <Empty>
              {answer.total === 0 ? 'The log has no events.' : 'No event matches the filter.'}
            </Empty>
          ) : (
            <EventList positions={answer.positions} />
          )}
        </section>
      )}
    </Content>
  )
}

function EventList({ positions }: Pick<Answer<'timeline'>, 'positions'>) {
  const rows = useRef(new Map<number, EventRow>())
  const [, setLoaded] = useState(0)
  const onRange = useCallback(
    (first: number, last: number) => {
      const wanted = [...positions.subarray(first, last + 1)].filter((at) => !rows.current.has(at))
      if (wanted.length === 0) return
      ask('rows', { positions: wanted }).then((found) => {
        if (rows.current.size > maxRows) rows.current.clear()
        for (const row of found) rows.current.set(row.position, row)
        setLoaded((n) => n + 1)
      }, ignoreClosed)
    },
    [positions],
  )
  const at = place.value.position ?? log.value.last
  const chosen = lastAtOrBefore(positions, at)
  return (
    <VirtualList
      label="Events"
      count={positions.length}
      rowHeight={30}
      chosen={chosen}
      onRange={onRange}
      onOpen={(index) => go({ position: positions[index] }, true)}
      row={(index) => (
        <Row position={positions[index] ?? 0} row={rows.current.get(positions[index] ?? 0)} />
      )}
    />
  )
}

/** Rows of a log that was replaced meanwhile are not needed any more. */
const ignoreClosed = () => undefined

function Row({ position, row }: { position: number; row: EventRow | undefined }) {
  const { from = '' } = place.value.params
  const object = row && row.object !== '' ? objectText(parseObjectKey(row.object)) : ''
  return (
    <>
      <span role="cell" class="cell-position">
        <a href={linkTo('event', [`${position}`], {}, position)}>{position}</a>
      </span>
      <span role="cell" class="cell-time">
        {row && timeText(row.time)}
      </span>
      <span role="cell" class="cell-type" title={row?.type}>
        {row?.type}
      </span>
      <span role="cell" class="cell-object" title={object}>
        {object}
      </span>
      <span role="cell" class="cell-detail quiet" title={row?.detail}>
        {row?.detail}
      </span>
      <span role="cell" class="cell-changed">
        {row !== undefined && row.statuses + row.resources !== 0 && (
          <a href={linkTo('diff', [], { from: from || `${position - 1}` }, position)}>
            {row.statuses < 0 ? 'compare' : 'changed'}
          </a>
        )}
      </span>
    </>
  )
}

function lastAtOrBefore(positions: Uint32Array, position: number): number {
  let [low, high] = [0, positions.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((positions[middle] ?? 0) <= position) low = middle + 1
    else high = middle
  }
  return low - 1
}
