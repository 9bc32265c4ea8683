/** Large topologies are laid out in columns, without the layout library. */
import { expect, it } from 'vitest'
import { layOut, type TopologyEdge, type TopologyNode } from '../../console/models/layout.ts'
import { nodeHeight, nodeWidth } from '../../console/models/size.ts'

const node = (type: TopologyNode['type'], id: string): TopologyNode => ({
  id,
  type,
  object: id,
  label: id,
  detail: '',
  health: 'ok',
  policies: [],
})

it('places each type in a column, a node beside those it is linked to, and none over another', async () => {
  const nodes = [node('gateway', 'g'), node('listener', 'l')]
  const edges: TopologyEdge[] = [{ from: 'g', to: 'l', label: '' }]
  for (let n = 0; n < 40; n++) {
    const [route, rules] = [`r${n}`, [`r${n}/0`, `r${n}/1`]]
    nodes.push(node('route', route), ...rules.map((id) => node('rule', id)))
    edges.push({ from: 'l', to: route, label: '' })
    for (const rule of rules) {
      edges.push({ from: route, to: rule, label: '' }, { from: rule, to: `b${n % 7}`, label: '' })
    }
  }
  for (let n = 0; n < 7; n++) nodes.push(node('backend', `b${n}`))
  nodes.push(node('backend', 'alone'))
  const graph = await layOut(nodes, edges)
  const columns = Map.groupBy(graph.nodes, ({ x }) => x)
  expect([...columns].sort(([a], [b]) => a - b).map(([, [first]]) => first?.type)).toEqual([
    'gateway',
    'listener',
    'route',
    'rule',
    'backend',
  ])
  for (const column of columns.values()) {
    const tops = column.map(({ y }) => y).sort((a, b) => a - b)
    tops.forEach((top, at) => {
      expect(top - (tops[at - 1] ?? -nodeHeight)).toBeGreaterThanOrEqual(nodeHeight)
    })
  }
  const places = new Map(graph.nodes.map((one) => [one.id, one]))
  for (const { x, y } of graph.nodes) {
    expect(x + nodeWidth).toBeLessThanOrEqual(graph.width)
    expect(y + nodeHeight).toBeLessThanOrEqual(graph.height)
  }
  for (const { from, to, points } of graph.edges) {
    expect(points[0]?.x).toBe((places.get(from)?.x ?? 0) + nodeWidth)
    expect(points.at(-1)?.x).toBe(places.get(to)?.x)
  }
  for (let n = 0; n < 40; n++) {
    const middle = ((places.get(`r${n}/0`)?.y ?? 0) + (places.get(`r${n}/1`)?.y ?? 0)) / 2
    expect(places.get(`r${n}`)?.y).toBeCloseTo(middle)
  }
})
