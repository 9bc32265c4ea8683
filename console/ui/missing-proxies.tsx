/** Says which proxies are missing in the series that a view shows, so that a gap is not taken for less traffic. */
import { missingSeries } from '../state/series.ts'
import { Time } from './times.tsx'

export function MissingProxies() {
  const spans = missingSeries.value
  if (spans.length === 0) return null
  return (
    <div class="notice missing-proxies" role="status">
      <p>
        {spans.length === 1 ? 'A proxy is missing' : 'Proxies are missing'} in the sums and charts,
        which are too small for these times:
      </p>
      <ul>
        {spans.slice(0, mostShown).map(({ proxy, from, to }) => (
          <li key={`${proxy} ${from}`}>
            proxy <code>{proxy}</code>: no data from <Time time={from} /> to <Time time={to} />
          </li>
        ))}
        {spans.length > mostShown && <li>{spans.length - mostShown} more</li>}
      </ul>
    </div>
  )
}

const mostShown = 5
