/** What a picker says of endpoints, and what it is told of them (Endpoint Picker Protocol 1.0). */
import type { LearnedRecord } from '../../../exchange/learned.ts'
import type { FilterMetadata } from '../../../policies/ext-proc/converse.ts'
import { now } from '../../../proxy/upstream/choose.ts'
import type { UpstreamEndpoint } from '../../../proxy/upstream/endpoint.ts'
import type { Pool, PoolEndpoints } from './pools.ts'

/** Where a picker names endpoints: a header of the request, and a member of the metadata below. */
export const destinationKey = 'x-gateway-destination-endpoint'
const namespace = 'envoy.lb'
const servedKey = 'x-gateway-destination-endpoint-served'
const subsetNamespace = 'envoy.lb.subset_hint'
const subsetKey = 'x-gateway-destination-endpoint-subset'

/** The endpoints that dynamic metadata names; undefined where it names none. */
export function namedIn(metadata: LearnedRecord): string | undefined {
  const found = metadata[namespace]
  if (typeof found !== 'object' || found === null || Array.isArray(found)) return undefined
  const value = (found as LearnedRecord)[destinationKey]
  return typeof value === 'string' ? value : undefined
}

/**
 * The endpoints of `address:port[,address:port...]`, in order, each once. Others than ready ones of
 * the pool are left out; a text says why none is left.
 */
export function pickedFrom(
  text: string | undefined,
  endpoints: PoolEndpoints,
): readonly UpstreamEndpoint[] | string {
  if (text === undefined || text.trim() === '') return 'it picked no endpoint'
  const picked = new Set<UpstreamEndpoint>()
  for (const name of text.split(',')) {
    const endpoint = endpoints.get(name.trim().toLowerCase())
    if (endpoint !== undefined) picked.add(endpoint)
  }
  if (picked.size > 0) return [...picked]
  const shown = text.length > 200 ? `${text.slice(0, 200)}…` : text
  return `none of what it picked is a ready endpoint of the pool: ${shown}`
}

/**
 * Endpoints to pick from: those that are known to be ready, less those that have failed lately or
 * have as much to do as they may. Where that leaves none, all that are ready.
 */
export function candidates(pool: Pool, most = Number.POSITIVE_INFINITY): FilterMetadata {
  const all: string[] = []
  const usable: string[] = []
  for (const [label, endpoint] of pool.endpoints()) {
    all.push(label)
    if (endpoint.load < most && !endpoint.isEjected(now)) usable.push(label)
  }
  return { [subsetNamespace]: { [subsetKey]: usable.length > 0 ? usable : all } }
}

/** Which endpoint has answered. */
export function servedBy({ address }: UpstreamEndpoint): FilterMetadata {
  return { [namespace]: { [servedKey]: address.label ?? address.pool } }
}
