/** A chart of values over time, with marks for changes of the configuration. Drag over it to choose a range. */
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import type { SeriesAnswer } from '../../src/past/series/answer.ts'
import { themeTexts } from '../state/theme.ts'
import { isUtc, timeText } from './times.tsx'

export interface ChartLine {
  readonly label: string
  /** Name of a colour of the style sheet, such as `bad`. */
  readonly color: string
  readonly values: readonly (number | null)[]
}

export interface ChartMark {
  readonly timeMs: number
  readonly href: string
  readonly text: string
}

export interface ChartProps {
  readonly title: string
  /** Start of each step, in seconds since 1970. */
  readonly times: readonly number[]
  readonly stepSeconds: number
  readonly lines: readonly ChartLine[]
  readonly format: (value: number) => string
  readonly marks: readonly ChartMark[]
  /** Times without the counts of a proxy. */
  readonly missing: SeriesAnswer['missing']
  readonly onSelect: (fromMs: number, toMs: number) => void
}

const height = 150
/** Space for the labels of the values. */
const axisWidth = 58

const colorOf = (name: string) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`)

/** Resolves `light-dark()`, which a canvas does not understand. */
function resolvedColor(name: string): string {
  const probe = document.createElement('span')
  probe.style.color = `var(--${name})`
  document.body.append(probe)
  const { color } = getComputedStyle(probe)
  probe.remove()
  return color || colorOf(name)
}

const daySeconds = 86_400

/** Labels of times: hours and minutes, or days in a long range. */
function timeLabels(times: readonly number[]): string[] {
  const isLong = (times.at(-1) ?? 0) - (times[0] ?? 0) > 2 * daySeconds
  const texts = times.map((seconds) => timeText(seconds * 1_000))
  return texts.map((text) => (isLong ? text.slice(5, 10) : text.slice(11, 16)))
}

/** The points between gaps, which lines do not show. */
function lonePoints(plot: uPlot, series: number, isShown: boolean): number[] | null {
  if (isShown) return null
  const values = plot.data[series] ?? []
  const isGap = (at: number) => (values[at] ?? null) === null
  return [...values.keys()].filter((at) => !isGap(at) && isGap(at - 1) && isGap(at + 1))
}

function optionsOf(shown: () => ChartProps, width: number): uPlot.Options {
  const { lines, format } = shown()
  const [grid, text] = [resolvedColor('line'), resolvedColor('quiet')]
  const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { show: false } }
  return {
    width,
    height,
    legend: { show: false },
    cursor: { points: { show: false }, drag: { x: true, y: false, setScale: false } },
    padding: [10, 0, 0, 0],
    tzDate: (seconds) =>
      isUtc.value ? uPlot.tzDate(new Date(seconds * 1_000), 'Etc/UTC') : new Date(seconds * 1_000),
    scales: {
      x: { range: () => rangeOf(shown()) },
      y: { range: (_, _low, high) => [0, high > 0 ? high * 1.1 : 1] },
    },
    axes: [
      { ...axis, size: 26, values: (_, values) => timeLabels(values) },
      {
        ...axis,
        size: axisWidth,
        values: (_, values) => values.map((value) => format(value)),
      },
    ],
    series: [
      {},
      ...lines.map(({ label, color }) => ({
        label,
        stroke: resolvedColor(color),
        width: 1.5,
        points: { show: false, size: 5, filter: lonePoints },
        spanGaps: false,
      })),
    ],
    hooks: {
      setSelect: [
        (plot) => {
          const { left, width: selected } = plot.select
          if (selected < 8) return
          shown().onSelect(
            plot.posToVal(left, 'x') * 1_000,
            plot.posToVal(left + selected, 'x') * 1_000,
          )
        },
      ],
    },
  }
}

/** From the first step to the end of the last one. */
const rangeOf = ({ times, stepSeconds }: ChartProps): [number, number] => {
  const first = times[0] ?? 0
  return [first, Math.max(times.at(-1) ?? 0, first) + stepSeconds]
}

/** Maximum number of bands of a chart. */
const maxBands = 50

/** The times in which counts of a proxy are missing. */
interface BandsProps extends Pick<ChartProps, 'missing'> {
  readonly first: number
  readonly last: number
}

function Bands({ missing = [], first, last }: BandsProps) {
  const spans = missing.slice(0, maxBands)
  const shareOf = (time: string) =>
    Math.min(1, Math.max(0, (Date.parse(time) / 1_000 - first) / (last - first)))
  return (
    <div class="bands">
      {spans.map(({ proxy, from, to }) => {
        const [start, end] = [shareOf(from), shareOf(to)]
        if (end <= start) return null
        const place = (band: HTMLElement | null) => {
          band?.style.setProperty('left', `${(start * 100).toFixed(2)}%`)
          band?.style.setProperty('width', `${((end - start) * 100).toFixed(2)}%`)
        }
        return <div key={`${proxy} ${from}`} ref={place} title={`No data of proxy ${proxy}`} />
      })}
    </div>
  )
}

export default function Chart(props: ChartProps) {
  const { title, times, lines, format, marks, missing } = props
  const place = useRef<HTMLDivElement>(null)
  const plot = useRef<uPlot>(undefined)
  const shown = useRef(props)
  shown.current = props
  const names = lines.map(({ label }) => label).join()
  const theme = themeTexts.value.inForce
  const zone = isUtc.value
  useEffect(() => {
    const element = place.current
    if (element === null) return
    const data = () => {
      const { times: at, lines: all } = shown.current
      return [at, ...all.map(({ values }) => values)] as unknown as uPlot.AlignedData
    }
    const drawn = new uPlot(
      optionsOf(() => shown.current, element.clientWidth),
      data(),
      element,
    )
    plot.current = drawn
    const observer = new ResizeObserver(() => {
      drawn.setSize({ width: element.clientWidth, height })
    })
    observer.observe(element)
    return () => {
      observer.disconnect()
      drawn.destroy()
    }
  }, [names, theme, zone])
  useEffect(() => {
    plot.current?.setData([
      times,
      ...lines.map(({ values }) => values),
    ] as unknown as uPlot.AlignedData)
  }, [times, lines])
  const [first, last] = rangeOf(props)
  const summary = lines
    .map(({ label, values }) => `${label} at most ${format(Math.max(0, ...values.map(Number)))}`)
    .join(', ')
  return (
    <figure class="chart">
      <figcaption>
        <strong>{title}</strong>
        {lines.map(({ label, color }) => (
          <span key={label} class={`legend ${color}`}>
            {label}
          </span>
        ))}
      </figcaption>
      <div class="plot">
        <Bands missing={missing} first={first} last={last} />
        <div ref={place} role="img" aria-label={`${title}: ${summary}`} />
        <ul class="marks" aria-label={`Changes of the configuration in ${title}`}>
          {marks.map(({ timeMs, href, text }) => {
            const share = (timeMs / 1_000 - first) / (last - first)
            if (share < 0 || share > 1) return null
            const left = `calc(${axisWidth}px + (100% - ${axisWidth}px) * ${share.toFixed(4)})`
            return (
              <li key={href} ref={(item) => item?.style.setProperty('left', left)}>
                <a href={href} title={text}>
                  <span aria-hidden="true">▼</span>
                  <span class="unseen">{text}</span>
                </a>
              </li>
            )
          })}
        </ul>
      </div>
    </figure>
  )
}
