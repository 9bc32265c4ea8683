import type { RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { objectText, parseObjectKey } from '../../../src/ground/model/names.ts'
import { type ObjectHealth, worstOf } from '../../../src/past/explain/health.ts'
import type { PlacedNode } from '../../models/layout.ts'
import {
  brokenNames,
  healthOfTraffic,
  type NodeTraffic,
  rateText,
  type SeriesOfNodes,
  trafficOf,
  trafficOfEdges,
} from '../../models/live-topology.ts'
import { formatNumber } from '../../models/signals.ts'
import { nodeHeight, nodeWidth } from '../../models/size.ts'
import { linkTo, objectLink, place, setParams } from '../../state/location.ts'
import { useRange } from '../../state/range.ts'
import { hasSeries, useSeries } from '../../state/series.ts'
import { useModel } from '../../state/worker-client.ts'
import { HealthMark } from '../../ui/health.tsx'
import { ObjectLink } from '../../ui/links.tsx'
import { Content, Empty } from '../../ui/states.tsx'
import type { Answer } from '../../worker/protocol.ts'

type TopologyAnswer = Answer<'topology'>

/** Without a process that has time series, as for an export, nothing is known of the traffic. */
export const Topology = () => (hasSeries() ? <LiveTopology /> : <ShownTopology series={noSeries} />)

const noSeries: SeriesOfNodes = { route: [], backend: [], target: [] }

function LiveTopology() {
  const range = useRange()
  const { value } = useSeries(range, ['route', 'backend', 'target'], { top: 1_000 })
  if (value === undefined) return <ShownTopology series={noSeries} />
  const { route, backend, target } = value
  const seconds = (Date.parse(route.to) - Date.parse(route.from)) / 1_000
  const series = { route: route.series, backend: backend.series, target: target.series }
  return <ShownTopology series={series} seconds={Math.max(1, seconds)} />
}

interface ShownTopologyProps {
  readonly series: SeriesOfNodes
  readonly seconds?: number
}

function ShownTopology({ series, seconds = 1 }: ShownTopologyProps) {
  const { focus = '', as = '' } = place.value.params
  const shown = useModel('topology', { focus, broken: brokenNames(series) })
  const traffic = trafficOf(shown.value?.nodes ?? [], series, seconds)
  return (
    <Content shown={shown} what="the topology">
      {(answer) => (
        <section class="card fill">
          <div class="filters">
            {focus === '' ? (
              <span class="quiet">Choose a node to see only what is connected to it.</span>
            ) : (
              <button type="button" onClick={() => setParams({ focus: '' })}>
                {objectText(parseObjectKey(focus))} ✕
              </button>
            )}
            {focus !== '' && <a href={objectLink(focus)}>open the object</a>}
            <label class="check">
              <input
                type="checkbox"
                checked={as === 'list'}
                onChange={() => setParams({ as: as === 'list' ? '' : 'list' })}
              />
              as a list
            </label>
            <output>
              {answer.nodes.length} of {answer.total} nodes
              {answer.nodes.length < answer.total && '; choose an object to see its part'}
            </output>
          </div>
          {answer.nodes.length === 0 ? (
            <Empty>
              {focus === ''
                ? 'No Gateway of this controller exists at this moment.'
                : 'No request passes the object at this moment.'}
            </Empty>
          ) : as === 'list' ? (
            <NodeList {...answer} traffic={traffic} />
          ) : (
            <Graph {...answer} traffic={traffic} />
          )}
        </section>
      )}
    </Content>
  )
}

interface GraphProps extends TopologyAnswer {
  readonly traffic: ReadonlyMap<string, NodeTraffic>
}

function Graph({ nodes, edges, width, height, traffic }: GraphProps) {
  const box = useRef<HTMLElement>(null)
  const isWider = useIsWider(box, width)
  const ofEdges = trafficOfEdges(edges, traffic)
  // The order of the focus is that of the columns.
  const ordered = nodes.toSorted((a, b) => a.x - b.x || a.y - b.y)
  return (
    <>
      {isWider && (
        <p class="wider quiet" role="status">
          The topology is wider than this view. Scroll it, also with the arrow keys while it has the
          focus.
        </p>
      )}
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard. */}
      <section class="graph" ref={box} aria-label="Topology" tabIndex={0}>
        <svg
          width={width}
          height={height}
          viewBox={`0 0 ${width} ${height}`}
          role="group"
          aria-label="Nodes"
        >
          {edges.map((edge) => (
            <GraphEdge
              key={idOf(edge)}
              edge={edge}
              traffic={ofEdges.get(idOf(edge))}
              isMeasured={traffic.has(edge.to)}
            />
          ))}
          {ordered.map((node) => (
            <GraphNode key={node.id} node={node} traffic={traffic.get(node.id)} />
          ))}
        </svg>
      </section>
    </>
  )
}

const idOf = ({ from, to }: { from: string; to: string }) => `${from}>${to}`

interface GraphEdgeProps {
  readonly edge: TopologyAnswer['edges'][number]
  readonly traffic: NodeTraffic | undefined
  /** Whether the traffic is that of the node at the end, so that the rate is not written on each edge of a way. */
  readonly isMeasured: boolean
}

/** An edge is coloured by its failures; its label is the rate, or else the weight. */
function GraphEdge({ edge: { points, label }, traffic, isMeasured }: GraphEdgeProps) {
  const text = traffic === undefined || !isMeasured ? label : rateText(traffic)
  return (
    <g class={`edge ${healthOfTraffic(traffic) ?? 'none'}`}>
      <title>{[trafficText(traffic), label].filter((part) => part !== '').join(', ')}</title>
      <polyline points={points.map(({ x, y }) => `${x},${y}`).join(' ')} />
      {text !== '' && <text {...middleOf(points)}>{text}</text>}
    </g>
  )
}

function trafficText(traffic: NodeTraffic | undefined): string {
  if (traffic === undefined) return ''
  const { failedShare } = traffic
  const failed = failedShare === 0 ? '' : `, ${formatNumber(100 * failedShare)} % failed`
  return `${rateText(traffic)} requests${failed}`
}

/** The worse of what conditions and requests say. */
function worseOf(node: PlacedNode, traffic: NodeTraffic | undefined): ObjectHealth | undefined {
  const all = [node.health, healthOfTraffic(traffic)].filter((health) => health !== undefined)
  return all.length === 0 ? undefined : worstOf(all)
}

/** Whether content of a width does not fit into a box, also after the box has changed its size. */
function useIsWider(box: RefObject<HTMLElement | null>, width: number): boolean {
  const [isWider, setWider] = useState(false)
  useEffect(() => {
    const { current } = box
    if (current === null) return
    const look = () => setWider(width > current.clientWidth)
    const observer = new ResizeObserver(look)
    observer.observe(current)
    look()
    return () => observer.disconnect()
  }, [box, width])
  return isWider
}

const middleOf = (points: readonly { x: number; y: number }[]) => {
  const { x = 0, y = 0 } = points[points.length >> 1] ?? {}
  return { x, y: y - 4, 'text-anchor': 'middle' as const }
}

/** Texts that are too long for a node are cut in the middle; the title has them whole. */
function shortened(text: string, length: number): string {
  if (text.length <= length) return text
  const half = (length - 1) >> 1
  return `${text.slice(0, half)}…${text.slice(-half)}`
}

interface GraphNodeProps {
  readonly node: PlacedNode
  readonly traffic: NodeTraffic | undefined
}

function GraphNode({ node, traffic }: GraphNodeProps) {
  const { x, y, type, object, label, detail, policies } = node
  const health = worseOf(node, traffic)
  const title = [`${type} ${label}`, detail, health ?? '', trafficText(traffic)]
    .filter((part) => part !== '')
    .join(', ')
  const more =
    policies.length === 0 ? '' : ` · ${policies.length} polic${policies.length === 1 ? 'y' : 'ies'}`
  return (
    <a href={linkTo('topology', [], { focus: object })} class={`node ${type} ${health ?? 'none'}`}>
      <title>{[title, ...policies].join('\n')}</title>
      <rect x={x} y={y} width={nodeWidth} height={nodeHeight} rx="4" />
      <text x={x + 22} y={y + 18} class="label">
        {shortened(label, 20)}
      </text>
      <text x={x + 22} y={y + 34} class="detail">
        {shortened(detail, 22 - more.length)}
        {more}
      </text>
      <text x={x + 7} y={y + 18} class="mark">
        {health === 'problem' ? '✖' : health === 'warning' ? '▲' : '●'}
      </text>
    </a>
  )
}

/** The same as the graph, for readers who cannot see it. */
function NodeList({ nodes, edges, traffic }: GraphProps) {
  const next = Map.groupBy(edges, ({ from }) => from)
  const targets = new Set(edges.map(({ to }) => to))
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const item = (node: PlacedNode) => (
    <li key={node.id}>
      <HealthMark health={worseOf(node, traffic.get(node.id))} isShort /> {node.type}{' '}
      <strong>{node.label}</strong> <span class="quiet">{node.detail}</span>{' '}
      <ObjectLink object={node.object} /> {trafficText(traffic.get(node.id))}
      {node.policies.length > 0 && (
        <span>
          {' '}
          policies:{' '}
          {node.policies.map((policy) => (
            <ObjectLink key={policy} object={policy} />
          ))}
        </span>
      )}
      {next.has(node.id) && (
        <ul>
          {(next.get(node.id) ?? []).map(({ to }) => {
            const child = byId.get(to)
            return child && item(child)
          })}
        </ul>
      )}
    </li>
  )
  return <ul class="tree">{nodes.filter(({ id }) => !targets.has(id)).map(item)}</ul>
}
