import { linkTo, place, setParams } from '../../state/location.ts'
import { log, useModel } from '../../state/worker-client.ts'
import { EventTableRows } from '../../ui/event-rows.tsx'
import { ObjectLink } from '../../ui/links.tsx'
import { Scroll } from '../../ui/scroll.tsx'
import { Content, Empty } from '../../ui/states.tsx'
import type { Answer } from '../../worker/protocol.ts'

/** The difference between the shown moment and an earlier one. */
export function Diff() {
  const to = place.value.position ?? log.value.last
  const from = Number(place.value.params.from ?? to - 1)
  return (
    <article>
      <header class="title">
        <h1>
          Difference between {from} and {to}
        </h1>
        <form class="filters" onSubmit={(event) => event.preventDefault()}>
          <label>
            From event
            <input
              type="number"
              min="0"
              max={log.value.last}
              value={from}
              onChange={({ currentTarget }) => setParams({ from: currentTarget.value })}
            />
          </label>
          <a href={linkTo('diff', [], { from: `${to}` }, from)}>swap</a>
        </form>
      </header>
      <Differences from={from} />
    </article>
  )
}

export function Differences({ from, isShort = false }: { from: number; isShort?: boolean }) {
  const shown = useModel('diff', { from })
  return (
    <Content shown={shown} what="the difference">
      {({ statuses, resources, events, eventCount }) => (
        <>
          <Statuses statuses={statuses} />
          <Resources {...resources} />
          {!isShort && (
            <section class="card" aria-labelledby="between">
              <h2 id="between">
                Events between <span class="count">{eventCount}</span>
              </h2>
              {events.length === 0 ? (
                <Empty>No event lies between the two moments.</Empty>
              ) : (
                <EventTableRows events={events} />
              )}
              {events.length < eventCount && (
                <p class="quiet">
                  The last {events.length} of {eventCount} are listed.
                </p>
              )}
            </section>
          )}
        </>
      )}
    </Content>
  )
}

type DiffAnswer = Answer<'diff'>

function Statuses({ statuses }: Pick<DiffAnswer, 'statuses'>) {
  return (
    <section class="card" aria-labelledby="statuses">
      <h2 id="statuses">
        Statuses <span class="count">{statuses.length}</span>
      </h2>
      {statuses.length === 0 && <Empty>No status differs.</Empty>}
      {statuses.map(({ object, removed, added }) => (
        <div key={object} class="status-diff">
          <ObjectLink object={object} />
          <Scroll label="Lines">
            <pre>
              {removed.map((line) => (
                <del key={line}>- {line}</del>
              ))}
              {added.map((line) => (
                <ins key={line}>+ {line}</ins>
              ))}
            </pre>
          </Scroll>
        </div>
      ))}
    </section>
  )
}

/** Maximum number of resources that are listed. */
const maxListed = 500

function Resources({ added, removed, changed }: DiffAnswer['resources']) {
  const lines = [
    ...removed.map((key) => ['-', key] as const),
    ...added.map((key) => ['+', key] as const),
    ...changed.map((key) => ['~', key] as const),
  ]
  return (
    <section class="card" aria-labelledby="resources">
      <h2 id="resources">
        Resources for proxies <span class="count">{lines.length}</span>
      </h2>
      {lines.length === 0 ? (
        <Empty>No resource for proxies differs.</Empty>
      ) : (
        <Scroll label="Lines">
          <pre>
            {lines
              .slice(0, maxListed)
              .map(([mark, key]) =>
                mark === '-' ? (
                  <del key={key}>- {key}</del>
                ) : mark === '+' ? (
                  <ins key={key}>+ {key}</ins>
                ) : (
                  <span key={key}>~ {key}</span>
                ),
              )}
          </pre>
        </Scroll>
      )}
      {lines.length > maxListed && (
        <p class="quiet">
          {maxListed} of {lines.length} are listed.
        </p>
      )}
    </section>
  )
}
