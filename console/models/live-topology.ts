/** Rates and failures of requests at the nodes and on the edges of a topology. */

import { parseObjectKey } from '../../src/ground/model/names.ts'
import type { ObjectHealth } from '../../src/past/explain/health.ts'
import type { AnsweredSeries } from '../../src/past/series/answer.ts'
import type { TopologyEdge, TopologyNode } from './layout.ts'

export interface NodeTraffic {
  readonly perSecond: number
  /** Failed requests of all, from 0 to 1. */
  readonly failedShare: number
}

/** Series by the type of their nodes. */
export type SeriesOfNodes = Readonly<
  Record<'route' | 'backend' | 'target', readonly AnsweredSeries[]>
>

/** Share of failed requests from which on a node is broken, and from which on it is disturbed. */
const shares = { problem: 0.5, warning: 0.01 } as const

const failedShareOf = ({ sums: { requests, errors } }: AnsweredSeries): number =>
  requests === 0 ? 0 : errors / requests

/** Names of the routes and backends with failed requests, as `topologyModel` takes them. */
export const brokenNames = ({ route, backend }: SeriesOfNodes): string[] =>
  [
    ...route.map((one) => ['route', one] as const),
    ...backend.map((one) => ['backend', one] as const),
  ]
    .filter(([, one]) => !one.isOther && failedShareOf(one) >= shares.warning)
    .map(([type, { name }]) => `${type} ${name.replace(/:\d+$/, '')}`)

/** Returns what is known of the traffic of each node, by its id. Other nodes have no series. */
export function trafficOf(
  nodes: readonly TopologyNode[],
  series: SeriesOfNodes,
  seconds: number,
): ReadonlyMap<string, NodeTraffic> {
  const traffic = new Map<string, NodeTraffic>()
  for (const node of nodes) {
    const found = seriesOf(node, series)
    if (found === undefined) continue
    const { sums } = found
    traffic.set(node.id, { perSecond: sums.requests / seconds, failedShare: failedShareOf(found) })
  }
  return traffic
}

function seriesOf({ type, object, part }: TopologyNode, series: SeriesOfNodes) {
  if (type !== 'route' && type !== 'backend' && type !== 'target') return undefined
  const { namespace, name } = parseObjectKey(object)
  const own = `${namespace}/${name}`
  return series[type].find((one) =>
    type === 'target'
      ? one.name === `${own} ${part}`
      : one.name === own || one.name.startsWith(`${own}:`),
  )
}

/** Such as `12/s`, or `3/min` for fewer than one in a second. */
export function rateText({ perSecond }: NodeTraffic): string {
  const [rate, unit] = perSecond >= 1 ? [perSecond, 's'] : [60 * perSecond, 'min']
  return `${rounded.format(rate)}/${unit}`
}

const rounded = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 2 })

export function healthOfTraffic(traffic: NodeTraffic | undefined): ObjectHealth | undefined {
  if (traffic === undefined || traffic.perSecond === 0) return undefined
  if (traffic.failedShare >= shares.problem) return 'problem'
  return traffic.failedShare >= shares.warning ? 'warning' : 'ok'
}

/**
 * The traffic of each edge, by `from>to`: that of its end if this is the only way there, or else that of its begin if
 * all of it goes on here. Of other edges it is not known which part they carry.
 */
export function trafficOfEdges(
  edges: readonly TopologyEdge[],
  traffic: ReadonlyMap<string, NodeTraffic>,
): ReadonlyMap<string, NodeTraffic> {
  const into = Map.groupBy(edges, ({ to }) => to)
  const outOf = Map.groupBy(edges, ({ from }) => from)
  const found = edges.flatMap(({ from, to }) => {
    const isOnly = into.get(to)?.length === 1
    const own = (isOnly ? traffic.get(to) : undefined) ?? whole(from)
    return own === undefined ? [] : [[`${from}>${to}`, own] as const]
  })
  return new Map(found)

  function whole(from: string): NodeTraffic | undefined {
    return outOf.get(from)?.length === 1 ? traffic.get(from) : undefined
  }
}
