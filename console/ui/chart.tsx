/** A chart of values over time, with marks for changes of the configuration. Drag over it to choose a range. */
import { useEffect, useRef } from 'preact/hooks'
import uPlot from 'uplot'
import { themeTexts } from '../app/theme.ts'
import { isUtc } from './times.tsx'

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
  readonly lines: readonly ChartLine[]
  readonly format: (value: number) => string
  readonly marks: readonly ChartMark[]
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

function optionsOf({ lines, format, onSelect }: ChartProps, width: number): uPlot.Options {
  const [grid, text] = [resolvedColor('line'), resolvedColor('quiet')]
  const axis = { stroke: text, grid: { stroke: grid, width: 1 }, ticks: { show: false } }
  return {
    width,
    height,
    legend: { show: false },
    cursor: { points: { show: false }, drag: { x: true, y: false, setScale: false } },
    tzDate: (seconds) =>
      isUtc.value ? uPlot.tzDate(new Date(seconds * 1_000), 'Etc/UTC') : new Date(seconds * 1_000),
    scales: { y: { range: (_, _low, high) => [0, high > 0 ? high * 1.1 : 1] } },
    axes: [
      { ...axis, size: 26 },
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
        points: { show: false },
        spanGaps: false,
      })),
    ],
    hooks: {
      setSelect: [
        (plot) => {
          const { left, width: selected } = plot.select
          if (selected < 8) return
          onSelect(plot.posToVal(left, 'x') * 1_000, plot.posToVal(left + selected, 'x') * 1_000)
        },
      ],
    },
  }
}

export default function Chart(props: ChartProps) {
  const { title, times, lines, format, marks } = props
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
    const onSelect: ChartProps['onSelect'] = (from, to) => shown.current.onSelect(from, to)
    const drawn = new uPlot(
      optionsOf({ ...shown.current, onSelect }, element.clientWidth),
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
  const [first = 0, last = 1] = [times[0], times.at(-1)]
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
        <div ref={place} role="img" aria-label={`${title}: ${summary}`} />
        <ul class="marks" aria-label={`Changes of the configuration in ${title}`}>
          {marks.map(({ timeMs, href, text }) => {
            const share = (timeMs / 1_000 - first) / Math.max(1, last - first)
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
