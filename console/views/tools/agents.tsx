import { formatMs } from '../../models/signals.ts'
import { objectLink } from '../../state/location.ts'
import { useRange } from '../../state/range.ts'
import { useSeries } from '../../state/series.ts'
import { useModel } from '../../state/worker-client.ts'
import { CountTable } from '../../ui/count-table.tsx'
import { Content } from '../../ui/states.tsx'

/** Backends whose requests are asked for; the sums of others are not known one by one. */
const maxSeries = 1_000

const latency = (ms: number | undefined): string => (ms === undefined ? '–' : formatMs(ms))

/** A2A agents, and their requests in the chosen time. Nothing if the configuration has none. */
export function Agents() {
  const agents = useModel('agents', undefined)
  const shown = useSeries(useRange(), ['backend'], { top: maxSeries })
  if ((agents.value ?? []).length === 0) return null
  return (
    <Content shown={shown} what="A2A agents">
      {({ backend: { series } }) => (
        <CountTable
          title="A2A agents"
          columns={['Backend', 'Address', 'Requests', 'Refused', 'Errors', 'p50', 'p99']}
          names={2}
          rows={(agents.value ?? []).map(({ backend, object, server }) => {
            const sums = series.find(({ name }) => name === backend)?.sums
            return [
              { text: backend, href: objectLink(object) },
              server,
              sums?.requests ?? 0,
              sums?.refused ?? 0,
              sums?.errors ?? 0,
              latency(sums?.p50Ms),
              latency(sums?.p99Ms),
            ]
          })}
          none=""
        />
      )}
    </Content>
  )
}
