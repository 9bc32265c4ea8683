/** Places the nodes of a graph in columns, from left to right. */
import type { Health } from '../../src/explain/health.ts'
import type { ObjectKey } from '../../src/model/names.ts'
import { nodeHeight, nodeWidth } from './size.ts'

type NodeType = 'gateway' | 'listener' | 'route' | 'rule' | 'backend' | 'endpoints'

export interface TopologyNode {
  readonly id: string
  readonly type: NodeType
  /** The object that the node is, or is a part of. */
  readonly object: ObjectKey
  readonly label: string
  readonly detail: string
  readonly health: Health | undefined
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

/** The layout library is loaded with the first graph. */
export async function layOut(nodes: readonly TopologyNode[], edges: readonly TopologyEdge[]) {
  const { graphlib, layout } = await import('@dagrejs/dagre')
  const graph = new graphlib.Graph()
  graph.setGraph({ rankdir: 'LR', nodesep: 14, ranksep: 36, marginx: 8, marginy: 8 })
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
