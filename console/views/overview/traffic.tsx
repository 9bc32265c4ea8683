/** What flowed through the gateway in the chosen time: figures, charts, and problems by cause. */

import type { AnsweredSeries, SeriesAnswer } from '../../../src/past/series/answer.ts'
import { usdFormat } from '../../models/cost.ts'
import type { Mark } from '../../models/marks.ts'
import {
  failureText,
  formatMs,
  formatNumber,
  ratesOf,
  type TrafficProblem,
  timesOfAnswer,
  trafficProblems,
} from '../../models/signals.ts'
import { linkTo } from '../../state/location.ts'
import { chooseRange, daysUntilNow, type TimeRange, useRange } from '../../state/range.ts'
import { hasSeries, useSeries } from '../../state/series.ts'
import { chartMark, markLink, markText, useMarks } from '../../ui/change-marks.ts'
import type { ChartLine } from '../../ui/chart.tsx'
import { LazyChart } from '../../ui/charts.tsx'
import { HealthMark } from '../../ui/health.tsx'
import { Content, Empty } from '../../ui/states.tsx'
import { Time } from '../../ui/times.tsx'

/** Places that are listed below a cause. */
const listed = 6

export function TrafficProblems() {
  return hasSeries() ? <ProblemsByCause /> : null
}

function ProblemsByCause() {
  const range = useRange()
  const shown = useSeries(range, ['route', 'backend'])
  return (
    <Content shown={shown} what="problems of traffic">
      {({ route, backend }) => {
        const problems = trafficProblems(route.series, backend.series)
        return (
          <section class="card" aria-labelledby="traffic-problems">
            <h2 id="traffic-problems">
              Problems of traffic <span class="count">{problems.length}</span>
            </h2>
            {problems.length === 0 && <Empty>No request failed in this time.</Empty>}
            <ul class="problems">
              {problems.map((problem) => (
                <ProblemItem key={problem.cause} {...problem} />
              ))}
            </ul>
          </section>
        )
      }}
    </Content>
  )
}

/** Where an object of this group is shown. */
const linkOf = (group: 'backend' | 'route', name: string) =>
  group === 'route'
    ? linkTo('requests', [], { route: name, status: '5xx' })
    : linkTo('objects', [], { text: name })

function ProblemItem({ cause, health, count, affected }: TrafficProblem) {
  const [reason = '', status = ''] = cause.split(' ')
  return (
    <li class={`finding ${health}`}>
      <div class="problem-title">
        <HealthMark health={health} isShort />
        <strong>
          {reason === 'Upstream' ? `Backends answer ${status}` : `${reason} (${status})`}
        </strong>
        <span class="quiet">
          {formatNumber(count)} {count === 1 ? 'request' : 'requests'}
        </span>
      </div>
      <ul class="affected">
        {affected.slice(0, listed).map(({ group, name, ...counts }) => (
          <li key={`${group} ${name}`}>
            {group} <a href={linkOf(group, name)}>{name}</a>:{' '}
            {failureText({ group, name, ...counts })}
          </li>
        ))}
        {affected.length > listed && <li class="quiet">{affected.length - listed} more</li>}
      </ul>
    </li>
  )
}

export function Traffic() {
  return hasSeries() ? <Signals /> : null
}

function Signals() {
  const range = useRange()
  const shown = useSeries(range, ['all'], { pointsOf: ['all'] })
  return (
    <section class="card" aria-labelledby="traffic">
      <h2 id="traffic">Traffic</h2>
      <Content shown={shown} what="traffic">
        {({ all }) => (
          <>
            <Figures all={all} />
            <Charts all={all} range={range} />
          </>
        )}
      </Content>
    </section>
  )
}

function Figures({ all }: { all: SeriesAnswer }) {
  const sums = all.series[0]?.sums
  const seconds = Math.max(1, (Date.parse(all.to) - Date.parse(all.from)) / 1_000)
  const share = (part = 0) =>
    sums === undefined || sums.requests === 0
      ? '–'
      : `${formatNumber((100 * part) / sums.requests)} %`
  const figures: readonly (readonly [title: string, value: string, isBad?: boolean])[] = [
    ['requests', formatNumber(sums?.requests ?? 0)],
    ['requests/s', formatNumber((sums?.requests ?? 0) / seconds)],
    ['failed', share(sums?.errors), (sums?.errors ?? 0) > 0],
    ['refused', share(sums?.refused)],
    ['p50', sums?.p50Ms === undefined ? '–' : formatMs(sums.p50Ms)],
    ['p99', sums?.p99Ms === undefined ? '–' : formatMs(sums.p99Ms)],
    ['tokens', formatNumber(sums?.tokens ?? 0)],
    ['cost', usdFormat(sums?.cost ?? 0)],
    ...(sums === undefined || sums.hits === 0
      ? []
      : ([
          ['cache hits', formatNumber(sums.hits)],
          ['saved by hits', usdFormat(sums.saved)],
        ] as const)),
  ]
  return (
    <>
      <dl class="signals">
        {figures.map(([title, value, isBad = false]) => (
          <div key={title}>
            <dt>{title}</dt>
            <dd class={isBad ? 'bad' : ''}>{value}</dd>
          </div>
        ))}
        <SpendToday />
      </dl>
      {(sums?.unpriced ?? 0) > 0 && (
        <p class="quiet">
          Some models have no known price; <a href={linkTo('models')}>Models</a> shows which. The
          cost is that of the others.
        </p>
      )}
    </>
  )
}

function SpendToday() {
  const { value } = useSeries(daysUntilNow(1), ['all'])
  const cost = value?.all.series[0]?.sums.cost
  return (
    <div>
      <dt>spend today</dt>
      <dd>
        <a href={linkTo('models')}>{cost === undefined ? '–' : usdFormat(cost)}</a>
      </dd>
    </div>
  )
}

interface ChartsProps {
  readonly all: SeriesAnswer
  readonly range: TimeRange
}

function Charts({ all, range }: ChartsProps) {
  const [series] = all.series
  const marks = useMarks(all, range)
  if (series === undefined) return <Empty>No request ended in this time.</Empty>
  const { stepSeconds } = all
  const times = timesOfAnswer(all)
  const common = {
    times,
    stepSeconds,
    marks: marks.map(chartMark),
    missing: all.missing,
    onSelect: chooseRange,
  }
  return (
    <>
      <div class="charts">
        {chartsOf(series, stepSeconds).map((chart) => (
          <LazyChart key={chart.title} {...common} {...chart} />
        ))}
      </div>
      <Changes marks={marks} />
    </>
  )
}

interface ChartContent {
  readonly title: string
  readonly format: (value: number) => string
  readonly lines: readonly ChartLine[]
}

function chartsOf({ points, sums }: AnsweredSeries, step: number): ChartContent[] {
  const rate = (name: Parameters<typeof ratesOf>[1]) => ratesOf(points, name, step)
  const line = (label: string, color: string, values: ChartLine['values']) => ({
    label,
    color,
    values,
  })
  return [
    {
      title: 'Requests per second',
      format: formatNumber,
      lines: [line('all', 'accent', rate('requests'))],
    },
    {
      title: 'Errors per second',
      format: formatNumber,
      lines: [line('failed', 'bad', rate('errors')), line('refused', 'warn', rate('refused'))],
    },
    {
      title: 'Latency',
      format: formatMs,
      lines: [line('p50', 'good', points?.p50Ms ?? []), line('p99', 'accent', points?.p99Ms ?? [])],
    },
    ...(sums.tokens === 0
      ? []
      : [
          {
            title: 'Tokens per second',
            format: formatNumber,
            lines: [line('tokens', 'accent', rate('tokens'))],
          },
          {
            title: 'Cost',
            format: usdFormat,
            lines: [line('cost', 'warn', points?.cost ?? [])],
          },
        ]),
    ...(sums.toolCalls === 0
      ? []
      : [
          {
            title: 'Tool calls per second',
            format: formatNumber,
            lines: [line('calls', 'accent', rate('toolCalls'))],
          },
        ]),
  ]
}

function Changes({ marks }: { marks: readonly Mark[] }) {
  return (
    <section aria-labelledby="changes">
      <h3 id="changes">
        What changed in this time <span class="count">{marks.length}</span>
      </h3>
      {marks.length === 0 && <Empty>The configuration did not change.</Empty>}
      <ul class="list">
        {marks
          .toReversed()
          .slice(0, listed)
          .map((mark) => (
            <li key={mark.first}>
              <span aria-hidden="true" class="warn">
                ▼
              </span>{' '}
              <Time time={mark.timeMs} /> <a href={markLink(mark)}>{markText(mark)}</a>
            </li>
          ))}
      </ul>
      {marks.length > listed && <a href={linkTo('timeline')}>All events</a>}
    </section>
  )
}
