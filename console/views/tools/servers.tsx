/** MCP servers and their tools in the chosen time: calls, errors, latency, and who may see them. */
import type { AnsweredSeries, SeriesAnswer } from '../../../src/past/series/answer.ts'
import { formatMs, formatNumber, ratesOf, timesOfAnswer } from '../../models/signals.ts'
import { linkTo, objectLink, place } from '../../state/location.ts'
import { chooseRange, useRange } from '../../state/range.ts'
import { useSeries } from '../../state/series.ts'
import { useModel } from '../../state/worker-client.ts'
import { chartMark, useMarks } from '../../ui/change-marks.ts'
import { LazyChart } from '../../ui/charts.tsx'
import { CountTable } from '../../ui/count-table.tsx'
import { Content } from '../../ui/states.tsx'
import type { Answer } from '../../worker/protocol.ts'

export function Servers() {
  const range = useRange()
  const shown = useSeries(range, ['target', 'tool'], { pointsOf: ['tool'] })
  const tools = shown.value?.tool.series.filter(({ isOther }) => !isOther) ?? []
  const mcp = useModel('mcp', { tools: tools.map(({ name }) => name) })
  return (
    <Content shown={mcp} what="MCP servers">
      {({ targets, seenBy }) => (
        <Content shown={shown} what="tools">
          {({ target, tool }) => (
            <>
              <TargetTable targets={targets} series={target.series} />
              <ToolTable tools={tools} seenBy={seenBy} />
              <ToolCharts answer={tool} />
            </>
          )}
        </Content>
      )}
    </Content>
  )
}

interface TargetTableProps {
  readonly targets: Answer<'mcp'>['targets']
  readonly series: readonly AnsweredSeries[]
}

function TargetTable({ targets, series }: TargetTableProps) {
  return (
    <CountTable
      title="MCP servers"
      columns={['Backend', 'Target', 'Address', 'Protocol', 'Messages', 'Errors']}
      names={4}
      rows={targets.map(({ backend, object, target, server, protocol }) => {
        const sums = series.find(({ name }) => name === `${backend} ${target}`)?.sums
        const link = { text: backend, href: objectLink(object) }
        return [link, target, server, protocol, sums?.requests ?? 0, sums?.errors ?? 0]
      })}
      none="No GatewayBackend has MCP targets at this moment."
    />
  )
}

interface ToolTableProps {
  readonly tools: readonly AnsweredSeries[]
  readonly seenBy: Readonly<Record<string, string>>
}

const partsOf = (name: string): readonly [backend: string, tool: string] => {
  const at = name.indexOf(' ')
  return [name.slice(0, at), name.slice(at + 1)]
}

const latency = (ms: number | undefined): string => (ms === undefined ? '–' : formatMs(ms))

function ToolTable({ tools, seenBy }: ToolTableProps) {
  return (
    <CountTable
      title="Tools"
      columns={['Tool', 'Backend', 'Who may see it', 'Calls', 'Errors', 'p50', 'p99']}
      names={3}
      rows={tools.map(({ name, sums }) => {
        const [backend, tool] = partsOf(name)
        const link = { text: tool, href: linkTo('tools', [], { tool: name }) }
        const counts = [sums.toolCalls, sums.toolErrors, latency(sums.p50Ms), latency(sums.p99Ms)]
        return [link, backend, seenBy[name] ?? '…', ...counts]
      })}
      none="No tool was called in this time."
    />
  )
}

/** Charts of one tool: that of the URL, or else the one with the most calls. */
function ToolCharts({ answer }: { answer: SeriesAnswer }) {
  const range = useRange()
  const marks = useMarks(answer, range)
  const { tool: chosen } = place.value.params
  const series = answer.series.find(({ name }) => name === chosen) ?? answer.series[0]
  if (series?.points === undefined) return null
  const { points, name, isOther } = series
  const { stepSeconds } = answer
  const [backend, tool] = partsOf(name)
  const common = {
    times: timesOfAnswer(answer),
    stepSeconds,
    marks: marks.map(chartMark),
    missing: answer.missing,
    onSelect: chooseRange,
  }
  return (
    <section class="card" aria-labelledby="tool-over-time">
      <h2 id="tool-over-time">
        {isOther ? 'All other tools' : tool} <span class="quiet">{backend}</span>
      </h2>
      <div class="charts">
        <LazyChart
          {...common}
          title="Calls per second"
          format={formatNumber}
          lines={[
            { label: 'calls', color: 'accent', values: ratesOf(points, 'requests', stepSeconds) },
            { label: 'errors', color: 'bad', values: ratesOf(points, 'errors', stepSeconds) },
          ]}
        />
        <LazyChart
          {...common}
          title="Latency of calls"
          format={formatMs}
          lines={[
            { label: 'p50', color: 'good', values: points.p50Ms },
            { label: 'p99', color: 'accent', values: points.p99Ms },
          ]}
        />
      </div>
    </section>
  )
}
