import type { RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { objectText, parseObjectKey } from '../../../src/ground/model/names.ts'
import type { PlacedNode } from '../../models/layout.ts'
import { nodeHeight, nodeWidth } from '../../models/size.ts'
import { linkTo, objectLink, place, setParams } from '../../state/location.ts'
import { useModel } from '../../state/worker-client.ts'
import { HealthMark } from '../../ui/health.tsx'
import { ObjectLink } from '../../ui/links.tsx'
import { Content, Empty } from '../../ui/states.tsx'
import type { Answer } from '../../worker/protocol.ts'

type TopologyAnswer = Answer<'topology'>

export function Topology() {
  const { focus = '', as = '' } = place.value.params
  const shown = useModel('topology', { focus })
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
            <NodeList {...answer} />
          ) : (
            <Graph {...answer} />
          )}
        </section>
      )}
    </Content>
  )
}

function Graph({ nodes, edges, width, height }: TopologyAnswer) {
  const box = useRef<HTMLElement>(null)
  const isWider = useIsWider(box, width)
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
          {edges.map(({ from, to, points, label }) => (
            <g key={`${from}>${to}`} class="edge">
              <polyline points={points.map(({ x, y }) => `${x},${y}`).join(' ')} />
              {label !== '' && <text {...middleOf(points)}>{label}</text>}
            </g>
          ))}
          {ordered.map((node) => (
            <GraphNode key={node.id} {...node} />
          ))}
        </svg>
      </section>
    </>
  )
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

function GraphNode({ x, y, type, object, label, detail, health, policies }: PlacedNode) {
  const title = `${type} ${label}, ${detail}${health === undefined ? '' : `, ${health}`}`
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
function NodeList({ nodes, edges }: TopologyAnswer) {
  const next = Map.groupBy(edges, ({ from }) => from)
  const targets = new Set(edges.map(({ to }) => to))
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const item = (node: PlacedNode) => (
    <li key={node.id}>
      <HealthMark health={node.health} isShort /> {node.type} <strong>{node.label}</strong>{' '}
      <span class="quiet">{node.detail}</span> <ObjectLink object={node.object} />
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
