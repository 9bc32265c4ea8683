/**
 * Which endpoints are near: those that the control plane of Kubernetes has meant for this node or
 * zone (EndpointSlice hints), as kube-proxy reads them.
 */
import type { EndpointSet } from './choose.ts'
import type { UpstreamEndpoint } from './endpoint.ts'

/** Where this process runs; absent where that is unknown. */
export interface Locality {
  readonly zone?: string
  readonly node?: string
}

export interface HintedEndpoint {
  readonly endpoint: UpstreamEndpoint
  readonly forZones: readonly string[] | undefined
  readonly forNodes: readonly string[] | undefined
}

/**
 * Hints count only where every endpoint has some, and where they leave anybody: half of them would
 * send all traffic to the few that are hinted.
 */
export function nearEndpoints(
  found: readonly HintedEndpoint[],
  { zone, node }: Locality,
): EndpointSet {
  const all = found.map(({ endpoint }) => endpoint)
  const near =
    meant(found, node, ({ forNodes }) => forNodes) ?? meant(found, zone, ({ forZones }) => forZones)
  return { preferred: near ?? all, all }
}

function meant(
  found: readonly HintedEndpoint[],
  here: string | undefined,
  hints: (endpoint: HintedEndpoint) => readonly string[] | undefined,
): readonly UpstreamEndpoint[] | undefined {
  if (here === undefined || !found.every((one) => hints(one) !== undefined)) return undefined
  const near = found.filter((one) => hints(one)?.includes(here) === true)
  return near.length === 0 ? undefined : near.map(({ endpoint }) => endpoint)
}
