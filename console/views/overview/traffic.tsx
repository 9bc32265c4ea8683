import { usdFormat } from '../../models/cost.ts'
import { linkTo } from '../../state/location.ts'
import { served, useServed } from '../../state/served.ts'
import { Content } from '../../ui/states.tsx'
import { type Counters, countersOf, type Rates, ratesBetween } from './rates.ts'

const everyMs = 2_000
/** Number of points in the charts: the last four minutes. */
const maxPoints = 120

/** The counters that were read last, and the rates since the page was opened. */
const history: { last: Counters | undefined; rates: Rates[] } = { last: undefined, rates: [] }

/** What flows through a running gateway now. It is not shown for logs alone, which have no traffic. */
export function Traffic() {
  if (served.value?.about.offers.metrics !== true || !served.value.about.isLive) return null
  return (
    <section class="card" aria-labelledby="traffic">
      <h2 id="traffic">Traffic now</h2>
      <Charts />
    </section>
  )
}

function Charts() {
  const shown = useServed(
    'traffic',
    async (server, signal) => {
      const next = countersOf(await server.metrics(signal), performance.now())
      const rates = history.last && ratesBetween(history.last, next)
      history.last = next
      if (rates !== undefined) history.rates = [...history.rates, rates].slice(-maxPoints)
      return { rates: history.rates, isPartial: next.isPartial }
    },
    everyMs,
  )
  return (
    <Content shown={shown} what="traffic">
      {({ rates, isPartial }) => (
        <>
          {isPartial && <UnknownCosts />}
          <dl class="traffic">
            <Chart title="requests/s" values={rates.map(({ requests }) => requests)} />
            <Chart title="5xx/s" values={rates.map(({ errors }) => errors)} />
            <Chart title="p50 ms" values={rates.map(({ p50Ms }) => p50Ms)} />
            <Chart title="p99 ms" values={rates.map(({ p99Ms }) => p99Ms)} />
            <Chart title="tokens/s" values={rates.map(({ tokens }) => tokens)} />
            <Chart title="cost/h" values={rates.map(({ cost }) => cost)} format={usdFormat} />
          </dl>
        </>
      )}
    </Content>
  )
}

/** What the cost does not include. */
const UnknownCosts = () => (
  <p class="quiet">
    Some models have no known price; <a href={linkTo('models')}>Models</a> shows which. The cost is
    that of the others.
  </p>
)

const { format: formatNumber } = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 })
const size = { width: 120, height: 28 }

interface ChartProps {
  readonly title: string
  readonly values: readonly (number | undefined)[]
  readonly format?: (value: number) => string
}

/** The present value, and how it changed. Gaps are times without requests. */
function Chart({ title, values, format = formatNumber }: ChartProps) {
  const known = values.map((value) => value ?? 0)
  const most = Math.max(...known, 1e-9)
  const points = known.map((value, at) => {
    const x = size.width - (known.length - 1 - at) * (size.width / maxPoints)
    return `${x.toFixed(1)},${(size.height - 2 - (value / most) * (size.height - 4)).toFixed(1)}`
  })
  const last = values.at(-1)
  return (
    <div>
      <dt>{title}</dt>
      <dd>
        <strong>{last === undefined ? '–' : format(last)}</strong>
        <svg width={size.width} height={size.height} aria-hidden="true">
          <polyline points={points.join(' ')} />
        </svg>
      </dd>
    </div>
  )
}
