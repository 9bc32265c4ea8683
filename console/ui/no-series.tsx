/** What a view of traffic shows if the process that serves the page has no time series. */
import { served } from '../state/served.ts'
import { Empty } from './states.tsx'

export const hasSeries = (): boolean => served.value?.about.offers.series === true

/** Says where the series are. Exports and logs of other processes have no traffic, so nothing is said there. */
export function NoSeries() {
  const about = served.value?.about
  if (about === undefined || about.offers.series || !about.isLive) return null
  return (
    <section class="card" aria-labelledby="no-series">
      <h2 id="no-series">Traffic</h2>
      <Empty>
        This process is a controller. Each proxy keeps its own time series: see them with{' '}
        <code>sluice top --admin HOST:PORT</code> at its admin address, or add up the metrics of all
        proxies with Prometheus.
      </Empty>
    </section>
  )
}
