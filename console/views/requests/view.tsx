import { useEffect, useMemo, useState } from 'preact/hooks'
import type { RecordedDecision } from '../../../src/past/decisions/record.ts'
import { go, linkTo, place } from '../../state/location.ts'
import { served, useServed } from '../../state/served.ts'
import { type Filter, Filters } from '../../ui/filters.tsx'
import { Offered } from '../../ui/offered.tsx'
import { Content, Empty } from '../../ui/states.tsx'
import { timeText } from '../../ui/times.tsx'
import { VirtualList } from '../../ui/virtual-list.tsx'

/** Maximum number of records in the list. */
const maxShown = 1_000
/** Milliseconds between two updates of the list while requests arrive. */
const paintMs = 250

const otherwise =
  'No decisions are recorded. Start the gateway with `--record all`, or name records with `--record-dir`.'

/** Recorded requests: those that match a filter, the newest first, and new ones as they end. */
export function Requests() {
  return (
    <Offered offer="decisions" otherwise={otherwise}>
      <RequestList />
    </Offered>
  )
}

const filters = [
  {
    type: 'text',
    name: 'status',
    label: 'Status',
    hint: '403 or 4xx',
    pattern: '[1-5](\\d\\d|xx)',
  },
  {
    type: 'text',
    name: 'route',
    label: 'Route',
    hint: 'namespace/name',
    pattern: '[^/\\s]+/[^/\\s]+',
  },
  { type: 'text', name: 'tool', label: 'Tool', hint: 'MCP tool', pattern: '.*' },
  { type: 'text', name: 'target', label: 'Target', hint: 'MCP server', pattern: '.*' },
  { type: 'text', name: 'refusedBy', label: 'Refused by', hint: 'approval', pattern: '\\w+' },
  { type: 'text', name: 'since', label: 'Since', hint: '15m', pattern: '.*' },
  { type: 'text', name: 'id', label: 'Request id', hint: 'x-request-id', pattern: '.*' },
] as const satisfies readonly Filter[]

function RequestList() {
  const { params } = place.value
  const query = new URLSearchParams(
    filters.flatMap(({ name }) => (params[name] ? [[name, params[name]]] : [])),
  )
  const shown = useServed(`${query}`, async (server, signal) => {
    const path = `decisions?limit=${maxShown}&${query}`
    const lines = await Array.fromAsync(server.lines<RecordedDecision & Summary>(path, signal))
    const summary = lines.pop()
    return { records: lines.reverse(), problems: summary?.problems ?? [] }
  })
  return (
    <section class="card fill">
      <Filters filters={filters} />
      <Content shown={shown} what="requests">
        {({ records, problems }) => (
          <>
            {problems.map((problem) => (
              <p key={problem} class="notice">
                {problem}
              </p>
            ))}
            <LiveList key={`${query}`} records={records} isFiltered={`${query}` !== ''} />
          </>
        )}
      </Content>
    </section>
  )
}

/** The last line of the answer. */
interface Summary {
  readonly problems?: readonly string[]
}

interface LiveListProps {
  /** The newest first. */
  readonly records: readonly RecordedDecision[]
  readonly isFiltered: boolean
}

function LiveList({ records, isFiltered }: LiveListProps) {
  const [isLive, setLive] = useState(!isFiltered)
  const [chosen, setChosen] = useState<string>()
  const { arrived, problem } = useTail(isLive)
  const rows = useMemo(() => [...arrived, ...records].slice(0, maxShown), [arrived, records])
  const index = rows.findIndex(({ id }) => id === chosen)
  return (
    <>
      <div class="filters">
        <label class="check">
          <input type="checkbox" checked={isLive} onChange={() => setLive(!isLive)} />
          add new requests as they end{isFiltered && ', whatever the filter'}
        </label>
        <output>
          {rows.length} shown{rows.length === maxShown && ' (the newest)'}
        </output>
        {problem !== undefined && <span class="bad">{problem}</span>}
      </div>
      {rows.length === 0 ? (
        <Empty>
          {isFiltered
            ? 'No recorded request matches the filter.'
            : 'No request is recorded yet. Requests that fail are recorded; `--record all` records every one.'}
        </Empty>
      ) : (
        <VirtualList
          label="Requests"
          count={rows.length}
          rowHeight={30}
          chosen={index}
          onOpen={(at) => setChosen(rows[at]?.id)}
          row={(at) => <Row record={rows[at]} />}
        />
      )}
    </>
  )
}

/** Requests that end from now on, the newest first. */
function useTail(isLive: boolean) {
  const [arrived, setArrived] = useState<readonly RecordedDecision[]>([])
  const [problem, setProblem] = useState<string>()
  const server = served.value?.server
  useEffect(() => {
    if (!isLive || server === undefined) return
    const ending = new AbortController()
    let waiting: RecordedDecision[] = []
    const timer = setInterval(() => {
      if (waiting.length === 0) return
      const news = waiting.reverse()
      waiting = []
      setArrived((before) => [...news, ...before].slice(0, maxShown))
    }, paintMs)
    const read = async () => {
      setProblem(undefined)
      const lines = server.lines<RecordedDecision>('decisions/tail', ending.signal)
      for await (const record of lines) {
        waiting.push(record)
        if (waiting.length > maxShown) waiting.shift()
      }
      throw new Error('The process ended the stream of requests.')
    }
    read().catch((error: Error) => {
      if (!ending.signal.aborted) setProblem(error.message)
    })
    return () => {
      clearInterval(timer)
      ending.abort()
    }
  }, [isLive, server])
  return { arrived, problem }
}

function Row({ record }: { record: RecordedDecision | undefined }) {
  if (record === undefined) return null
  const { id, time, request, response, route, position } = record
  const address = linkTo('request', [id], {}, position)
  const target = `${request.method} ${request.host}${request.path}`
  const decided = route.route ?? response.error ?? ''
  const durationMs = Math.round(response.durationMs * 10) / 10
  const detail = `${response.detail ?? response.reason} ${durationMs} ms`
  return (
    <>
      <span role="cell" class="cell-time">
        {timeText(time)}
      </span>
      <span role="cell" class={response.status >= 400 ? 'cell-position bad' : 'cell-position'}>
        {response.status}
      </span>
      <span role="cell" class="cell-object" title={target}>
        <a href={address} onClick={() => go({}, true)}>
          {target}
        </a>
      </span>
      <span role="cell" class="cell-type" title={decided}>
        {decided}
      </span>
      <span role="cell" class="cell-detail quiet" title={detail}>
        {detail}
      </span>
    </>
  )
}
