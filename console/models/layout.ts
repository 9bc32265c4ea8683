/** Places the nodes of a graph in columns, from left to right. */

import type { ObjectKey } from '../../src/ground/model/names.ts'
import type { ObjectHealth } from '../../src/past/explain/health.ts'
import { nodeHeight, nodeWidth } from './size.ts'

type NodeType =
  | 'gateway'
  | 'listener'
  | 'route'
  | 'rule'
  | 'backend'
  | 'endpoints'
  | 'provider'
  | 'target'

export interface TopologyNode {
  readonly id: string
  readonly type: NodeType
  /** The object that the node is, or is a part of. */
  readonly object: ObjectKey
  readonly label: string
  readonly detail: string
  /** Name in metrics of a provider or an MCP target, within its backend. */
  readonly part?: string
  readonly health: ObjectHealth | undefined
  /** Policies that attach here, as keys of their objects. */
  readonly policies: readonly ObjectKey[]
}

export interface TopologyEdge {
  readonly from: string
  readonly to: string
  readonly label: string
}

export interface PlacedNode extends TopologyNode {
  /** The left upper corner. */
  readonly x: number
  readonly y: number
}

interface PlacedEdge extends TopologyEdge {
  readonly points: readonly { readonly x: number; readonly y: number }[]
}

/** Number of nodes from which on a graph is laid out in columns, in a hundredth of the time. */
const manyNodes = 60

/** Space between columns, in which the rates of edges are written. */
const rankGap = 50

/** The layout library is loaded with the first small graph. */
export async function layOut(nodes: readonly TopologyNode[], edges: readonly TopologyEdge[]) {
  if (nodes.length > manyNodes) return layOutInColumns(nodes, edges)
  const { graphlib, layout } = await import('@dagrejs/dagre')
  const graph = new graphlib.Graph()
  graph.setGraph({ rankdir: 'LR', nodesep: 14, ranksep: rankGap, marginx: 8, marginy: 8 })
  graph.setDefaultEdgeLabel(() => ({}))
  for (const { id } of nodes) graph.setNode(id, { width: nodeWidth, height: nodeHeight })
  for (const { from, to } of edges) graph.setEdge(from, to)
  layout(graph)
  const { width = 0, height = 0 } = graph.graph()
  return {
    width: Number.isFinite(width) ? width : 0,
    height: Number.isFinite(height) ? height : 0,
    nodes: nodes.map((node): PlacedNode => {
      const { x, y } = graph.node(node.id) as { x: number; y: number }
      return { ...node, x: x - nodeWidth / 2, y: y - nodeHeight / 2 }
    }),
    edges: edges.map((edge): PlacedEdge => {
      const { points = [] } = graph.edge(edge.from, edge.to) as {
        points?: { x: number; y: number }[]
      }
      return { ...edge, points: points.map(({ x, y }) => ({ x, y })) }
    }),
  }
}

const columns: readonly NodeType[] = [
  'gateway',
  'listener',
  'route',
  'rule',
  'backend',
  'endpoints',
  'provider',
  'target',
]
const margin = 8
const step = { x: nodeWidth + rankGap, y: nodeHeight + 14 }

/** A column for each type. The longest one has its nodes in order; others are beside those they are linked to. */
function layOutInColumns(nodes: readonly TopologyNode[], edges: readonly TopologyEdge[]) {
  const filled = columns
    .map((type) => nodes.filter((node) => node.type === type))
    .filter((column) => column.length > 0)
  const longest = filled.reduce((most, { length }, at) => {
    return length > (filled[most]?.length ?? 0) ? at : most
  }, 0)
  const linked = linksOf(edges)
  const rows = new Map<string, number>()
  const placed = filled
    .map((_, at) => at)
    .sort((a, b) => Math.abs(a - longest) - Math.abs(b - longest))
  for (const at of placed) placeColumn(filled[at] ?? [], linked, rows)
  const places = new Map(
    filled.flatMap((column, at) =>
      column.map(({ id }) => [
        id,
        { x: margin + at * step.x, y: margin + (rows.get(id) ?? 0) * step.y },
      ]),
    ),
  )
  const placeOf = (id: string) => places.get(id) ?? { x: 0, y: 0 }
  return {
    width: 2 * margin + filled.length * step.x,
    height: 2 * margin + (Math.max(0, ...rows.values()) + 1) * step.y,
    nodes: nodes.map((node): PlacedNode => ({ ...node, ...placeOf(node.id) })),
    edges: edges.map((edge): PlacedEdge => {
      const [from, to] = [placeOf(edge.from), placeOf(edge.to)]
      const [begin, end] = [from.y + nodeHeight / 2, to.y + nodeHeight / 2]
      const right = from.x + nodeWidth
      const points = [
        { x: right, y: begin },
        { x: to.x - 18, y: end },
        { x: to.x, y: end },
      ]
      return { ...edge, points }
    }),
  }
}

function linksOf(edges: readonly TopologyEdge[]): ReadonlyMap<string, readonly string[]> {
  const ends = edges.flatMap(({ from, to }) => [[from, to] as const, [to, from] as const])
  const byNode = Map.groupBy(ends, ([from]) => from)
  return new Map([...byNode].map(([from, all]) => [from, all.map(([, to]) => to)]))
}

/** Gives each node of a column a row near the nodes that have one and that it is linked to. */
function placeColumn(
  column: readonly TopologyNode[],
  linked: ReturnType<typeof linksOf>,
  rows: Map<string, number>,
): void {
  const wanted = column.map(({ id }) => {
    const near = (linked.get(id) ?? []).flatMap((other) => rows.get(other) ?? [])
    return { id, row: near.reduce((sum, row) => sum + row, 0) / near.length }
  })
  let next = 0
  // Nodes without such a link come last, in order.
  for (const { id, row } of wanted.sort((a, b) => rowOf(a.row) - rowOf(b.row))) {
    const own = Number.isNaN(row) ? next : Math.max(next, row)
    rows.set(id, own)
    next = own + 1
  }
}

const rowOf = (row: number) => (Number.isNaN(row) ? Number.MAX_SAFE_INTEGER : row)
