/** What MCP servers list in the chosen time; of one item, its versions, and who saw it. */
import { toolAgents } from '../../models/tools.ts'
import { linkTo, place } from '../../state/location.ts'
import { timesOf, useRange } from '../../state/range.ts'
import { mayAct, useServed } from '../../state/served.ts'
import { useModel } from '../../state/worker-client.ts'
import { ActionForm } from '../../ui/action-form.tsx'
import { CountTable } from '../../ui/count-table.tsx'
import { DiffLines } from '../../ui/diff-lines.tsx'
import { EventLink } from '../../ui/links.tsx'
import { Offered } from '../../ui/offered.tsx'
import { Content, Empty } from '../../ui/states.tsx'
import { Time, timeText } from '../../ui/times.tsx'
import type { Answer } from '../../worker/protocol.ts'

const shortVersion = (digest: string) => digest.slice(0, 12)

export function Versions() {
  const range = useRange()
  const { item } = place.value.params
  // A range that ends now, or at the shown moment, ends with the events that are there.
  const toMs = range.duration === undefined ? range.toMs : undefined
  const fromMs = toMs === undefined ? undefined : toMs - range.lengthMs
  const shown = useModel('toolVersions', { fromMs, toMs, item })
  return (
    <Content shown={shown} what="what servers list">
      {({ rows, count, chosen }) => (
        <>
          {chosen !== undefined && <Chosen key={item} {...chosen} />}
          <CountTable
            title="Listed by servers"
            columns={[
              'Name',
              'Backend',
              'Target',
              'List',
              'Version',
              'Since',
              'State',
              'Who may see it',
            ]}
            names={8}
            rows={rows.map((row) => [
              { text: row.name, href: linkTo('tools', [], { item: row.id }) },
              row.backend,
              row.target,
              row.list,
              shortVersion(row.version),
              timeText(row.since),
              row.state,
              row.seenBy,
            ])}
            none="No proxy had reported what an MCP server lists: a client must list it first."
          />
          {rows.length < count && (
            <p class="quiet">
              {rows.length} of {count} are shown.
            </p>
          )}
        </>
      )}
    </Content>
  )
}

type ChosenItem = NonNullable<Answer<'toolVersions'>['chosen']>

function Chosen(row: ChosenItem) {
  const {
    name,
    backend = '',
    target = '',
    list = '',
    seenBy,
    state,
    version = '',
    events = [],
  } = row
  const isOpen = state === 'changed' || state === 'new'
  const { duration } = useRange()
  const isNewest = place.value.position === undefined && duration !== undefined
  return (
    <section class="card" aria-label={`About ${name}`}>
      <h2>
        {name} <span class="quiet">{`${backend} ${target} ${list}`}</span>
      </h2>
      <p>
        Version <code>{shortVersion(version)}</code>, {state}.
        {seenBy !== '' && ` Who may see it: ${seenBy}.`}
      </p>
      <Offered offer="decisions" otherwise="Start with `--record all` to see which agents saw it.">
        <Agents backend={backend} target={target} list={list} name={name} />
      </Offered>
      {mayAct() && isNewest && state !== 'gone' && (
        <ActionForm
          action="approve-tools"
          title={isOpen ? 'Approve this version' : 'Take the approval back'}
          toOptions={(given) => ({
            ...given,
            ...{ backend, target, list, item: [name] },
            ...(!isOpen && { revoke: true }),
          })}
        />
      )}
      <h3>Versions</h3>
      {events.length === 0 && <Empty>The log no longer has the events about it.</Empty>}
      {events.map(({ position, time, text, lines }) => (
        <div key={`${position}`}>
          <p>
            <Time time={time} /> <EventLink position={position} /> {text}
          </p>
          <DiffLines lines={lines} />
        </div>
      ))}
    </section>
  )
}

/** Maximum number of records that are read, the newest ones. */
const maxRecords = 10_000

interface AgentsProps {
  readonly backend: string
  readonly target: string
  readonly list: string
  readonly name: string
}

function Agents({ backend, ...item }: AgentsProps) {
  const range = useRange()
  const { duration, toMs, lengthMs } = range
  const shown = useServed(
    JSON.stringify([backend, item, duration, toMs, lengthMs]),
    async (server, signal) => {
      const times = timesOf(range)
      const query = new URLSearchParams({
        backend,
        limit: `${maxRecords}`,
        since: new Date(times.fromMs).toISOString(),
        until: new Date(times.toMs).toISOString(),
      })
      const records = await Array.fromAsync(server.lines<object>(`decisions?${query}`, signal))
      return toolAgents(records, item)
    },
  )
  return (
    <Content shown={shown} what="agents">
      {(agents) => (
        <CountTable
          title="Agents that saw it in this time"
          columns={['Agent', 'Last request', 'Listed', 'Called']}
          names={2}
          rows={agents.map(({ agent, last, id, listed, called }) => [
            agent,
            { text: timeText(last), href: linkTo('request', [id]) },
            listed,
            called,
          ])}
          none="No recorded request of this time listed or called it."
        />
      )}
    </Content>
  )
}
