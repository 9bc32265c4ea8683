/** Charts, whose library is loaded when the first one is shown. */
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { ChartProps } from './chart.tsx'

let loaded: ComponentType<ChartProps> | undefined

export function LazyChart(props: ChartProps) {
  const [, setLoaded] = useState(loaded !== undefined)
  useEffect(() => {
    if (loaded !== undefined) return
    import('./chart.tsx').then(
      ({ default: Chart }) => {
        loaded = Chart
        setLoaded(true)
      },
      () => undefined,
    )
  }, [])
  const Chart = loaded
  return Chart === undefined ? <div class="chart" /> : <Chart {...props} />
}
