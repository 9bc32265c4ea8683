import { parseObjectKey } from '../../../src/ground/model/names.ts'
import type { AnsweredSeries } from '../../../src/past/series/answer.ts'
import { usdFormat } from '../../models/cost.ts'
import type { KeyRow } from '../../models/keys.ts'
import { objectLink, place } from '../../state/location.ts'
import { daysUntilNow, useRange } from '../../state/range.ts'
import { hasSeries, useSeries } from '../../state/series.ts'
import { mayAct } from '../../state/served.ts'
import { useModel } from '../../state/worker-client.ts'
import { type Cell, CountTable } from '../../ui/count-table.tsx'
import { Content } from '../../ui/states.tsx'
import { timeText } from '../../ui/times.tsx'
import { ChangeKeys } from './change.tsx'

/** Number of days in which the last use of a key is looked for. */
const days = 30

/** API keys by name, with their state and use. Neither keys nor their hashes are shown. */
export function Keys() {
  // A minute is exact enough for keys that expire, and does not ask again with every event.
  const nowMs = Math.floor(Date.now() / 60_000) * 60_000
  const keys = useModel('keys', { nowMs })
  const canChange = mayAct() && place.value.position === undefined
  return (
    <article>
      <header class="title">
        <h1>Keys</h1>
        <span class="quiet">
          What policies accept at this moment. Change{' '}
          {canChange ? 'dynamic keys below, and those in files' : 'keys'} with{' '}
          <code>sluice keys</code>.
        </span>
      </header>
      <Content shown={keys} what="keys">
        {(rows) =>
          hasSeries() ? (
            <UsedKeys rows={rows} />
          ) : (
            <KeyTable rows={rows} use={() => ['–', '–', '–', '–']} />
          )
        }
      </Content>
      {canChange && <ChangeKeys nowMs={nowMs} />}
    </article>
  )
}

/** Requests of a key have the name of the key as their principal, unless a policy sets another one. */
const ofKey = (series: readonly AnsweredSeries[], { name }: KeyRow) =>
  series.find((one) => one.name === `principal=${name}`)

function UsedKeys({ rows }: { rows: readonly KeyRow[] }) {
  const shown = useSeries(useRange(), ['key'])
  const long = useSeries(daysUntilNow(days), ['key'])
  return (
    <Content shown={shown} what="the use of keys">
      {({ key }) => (
        <KeyTable
          rows={rows}
          use={(row) => {
            const sums = ofKey(key.series, row)?.sums
            const last = ofKey(long.value?.key.series ?? [], row)?.lastRequest
            return [
              last === undefined ? `not in ${days} days` : timeText(last),
              sums?.requests ?? 0,
              sums?.tokens ?? 0,
              usdFormat(sums?.cost ?? 0),
            ]
          }}
        />
      )}
    </Content>
  )
}

interface KeyTableProps {
  readonly rows: readonly KeyRow[]
  /** Last use, and requests, tokens and cost in the chosen time. */
  readonly use: (row: KeyRow) => readonly Cell[]
}

function KeyTable({ rows, use }: KeyTableProps) {
  return (
    <CountTable
      title="API keys"
      columns={[...heads, 'Last use', 'Requests', 'Tokens', 'Cost']}
      names={heads.length + 1}
      rows={rows.map((row) => [...describe(row), ...use(row)])}
      none="No policy accepts API keys at this moment."
    />
  )
}

const heads = ['Key', 'State', 'Owner', 'Team', 'Expires', 'Models', 'Routes', 'Accepted by']

function describe(row: KeyRow): Cell[] {
  const { name, state, owner, team, expires, models, routes, policies } = row
  const [policy = '', ...more] = policies
  const { namespace, name: policyName } = parseObjectKey(policy)
  const others = more.length === 0 ? '' : ` and ${more.length} more`
  return [
    name,
    state,
    owner,
    team,
    expires === '' ? 'never' : timeText(expires),
    models.join(', ') || 'all',
    routes.join(', ') || 'all',
    { text: `${namespace}/${policyName}${others}`, href: objectLink(policy) },
  ]
}
