import { useId } from 'preact/hooks'
import type { SeriesAnswer } from '../../../src/past/series/answer.ts'
import { guardFindings } from '../../models/guards.ts'
import { formatNumber, timesOfAnswer } from '../../models/signals.ts'
import { chooseRange, useRange } from '../../state/range.ts'
import { recentRecords, useRecentRecords } from '../../state/recent-records.ts'
import { hasSeries, useSeries } from '../../state/series.ts'
import { useModel } from '../../state/worker-client.ts'
import { chartMark, useMarks } from '../../ui/change-marks.ts'
import { LazyChart } from '../../ui/charts.tsx'
import { CountTable } from '../../ui/count-table.tsx'
import { Offered } from '../../ui/offered.tsx'
import { Content } from '../../ui/states.tsx'
import { TryText } from './try-text.tsx'

/** Prompt guards: what they decided over time, what they found, and what they make of a text. */
export function Guards() {
  const configured = useModel('guards', undefined)
  return (
    <article>
      <header class="title">
        <h1>Guards</h1>
      </header>
      {hasSeries() && <Verdicts />}
      <Content shown={configured} what="guards">
        {(lists) => <TryText lists={lists} />}
      </Content>
      <Offered
        offer="decisions"
        otherwise="What guards found appears here if decisions are recorded."
      >
        <Findings />
      </Offered>
    </article>
  )
}

function Verdicts() {
  const shown = useSeries(useRange(), ['guard', 'rule'], { pointsOf: ['guard', 'rule'] })
  return (
    <Content shown={shown} what="decisions of guards">
      {({ guard, rule }) => (
        <>
          <CountTable
            title="Decisions in this time"
            columns={['Guards', 'Decision', 'Times']}
            names={2}
            rows={guard.series.flatMap(({ name, isOther, sums }) =>
              sums.verdicts.map((verdict) => [
                isOther ? 'all others' : name,
                verdict.name,
                verdict.count,
              ]),
            )}
            none="No prompt guard has decided in this time."
          />
          <Charts answer={guard} title="Over time" suffix=" guards" />
          <Charts answer={rule} title="By rule over time" suffix="" />
        </>
      )}
    </Content>
  )
}

const colors: Readonly<Record<string, string>> = { Allow: 'good', Mask: 'warn', Reject: 'bad' }

interface ChartsProps {
  readonly answer: SeriesAnswer
  readonly title: string
  /** Follows the name of a series. */
  readonly suffix: string
}

/** Maximum number of charts, of the busiest series. */
const mostCharts = 12

function Charts({ answer, title, suffix }: ChartsProps) {
  const id = useId()
  const marks = useMarks(answer, useRange())
  if (answer.series.length === 0) return null
  const { stepSeconds } = answer
  const times = timesOfAnswer(answer)
  const common = {
    times,
    stepSeconds,
    marks: marks.map(chartMark),
    missing: answer.missing,
    onSelect: chooseRange,
  }
  return (
    <section class="card" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      <div class="charts">
        {answer.series.slice(0, mostCharts).map(({ name, isOther, points }) => (
          <LazyChart
            key={name}
            {...common}
            title={`${isOther ? 'Other' : name}${suffix}, decisions per step`}
            format={formatNumber}
            lines={Object.entries(points?.verdicts ?? {}).map(([label, values]) => ({
              label,
              color: colors[label] ?? 'accent',
              values,
            }))}
          />
        ))}
      </div>
    </section>
  )
}

function Findings() {
  const shown = useRecentRecords('findings', guardFindings)
  return (
    <Content shown={shown} what="findings of guards">
      {(rows) => (
        <CountTable
          title="Found in recorded requests"
          columns={['Policy', 'Guard', 'Decision', 'Found', 'Recorded']}
          names={4}
          rows={rows}
          none={`Guards found nothing in the last ${recentRecords} recorded requests.`}
        />
      )}
    </Content>
  )
}
