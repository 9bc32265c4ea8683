/** What requests to models have cost in the chosen time, and on each of the last days. */
import type { AnsweredSeries, SeriesAnswer } from '../../../src/past/series/answer.ts'
import { usdFormat } from '../../models/cost.ts'
import { daysUntilNow, useRange } from '../../state/range.ts'
import { useSeries } from '../../state/series.ts'
import { CountTable } from '../../ui/count-table.tsx'
import { Content } from '../../ui/states.tsx'

const days = 30
const none = 'No request to a model was billed in this time.'

export function Spend() {
  const shown = useSeries(useRange(), ['key', 'model', 'route'])
  const daily = useSeries(daysUntilNow(days), ['all'], { step: '24h' })
  return (
    <>
      <Content shown={shown} what="spend">
        {({ key, model, route }) => (
          <div class="charts">
            <SpendTable title="Spend by team, user or key" column="Who" series={key.series} />
            <SpendTable title="Spend by model" column="Model" series={model.series} />
            <SpendTable title="Spend by route" column="Route" series={route.series} />
          </div>
        )}
      </Content>
      <Content shown={daily} what="spend of each day">
        {({ all }) => (
          <CountTable
            title="Spend by day"
            columns={['Day, in UTC', 'Tokens', 'Cost']}
            names={1}
            rows={dayRows(all)}
            none={`No request to a model was billed in the last ${days} days.`}
          />
        )}
      </Content>
    </>
  )
}

interface SpendTableProps {
  readonly title: string
  readonly column: string
  readonly series: readonly AnsweredSeries[]
}

function SpendTable({ title, column, series }: SpendTableProps) {
  const hasHits = series.some(({ sums }) => sums.hits > 0)
  return (
    <CountTable
      title={title}
      columns={[column, 'Requests', 'Tokens', 'Cost', ...(hasHits ? ['Cache hits', 'Saved'] : [])]}
      names={1}
      rows={series
        .filter(
          ({ sums }) => sums.tokens > 0 || sums.cost > 0 || sums.unpriced > 0 || sums.hits > 0,
        )
        .sort((a, b) => b.sums.cost - a.sums.cost)
        .map(({ name, isOther, sums }) => [
          isOther ? 'all others' : name,
          sums.requests,
          sums.tokens,
          costText(sums.cost, sums.unpriced),
          ...(hasHits ? [sums.hits, usdFormat(sums.saved)] : []),
        ])}
      none={none}
    />
  )
}

const costText = (cost: number, unpriced: number): string =>
  unpriced === 0 ? usdFormat(cost) : `${usdFormat(cost)} and ${unpriced} of unknown price`

/** The newest day first, without days that cost nothing. */
function dayRows({ from, stepSeconds, series: [series] }: SeriesAnswer) {
  const { tokens = [], cost = [] } = series?.points ?? {}
  const start = Date.parse(from)
  return tokens
    .map((used, at) => {
      const day = new Date(start + at * stepSeconds * 1_000).toISOString().slice(0, 10)
      return [day, used ?? 0, usdFormat(cost[at] ?? 0)] as const
    })
    .filter(([, used]) => used > 0)
    .reverse()
}
