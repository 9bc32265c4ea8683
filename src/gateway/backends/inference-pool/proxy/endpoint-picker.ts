/** Messages to and from endpoint pickers (Endpoint Picker Protocol 1.0), and their TLS. */

import type { TlsSettings } from '../../../../ground/exchange/connection.ts'
import type { CalloutTarget } from '../../../../ground/exchange/exchange.ts'
import type { LearnedRecord } from '../../../../ground/exchange/learned.ts'
import { settingsOf } from '../../../policies/backend-simple/tls/apply.ts'
import type { FilterValues } from '../../../policies/ext-proc/message-writer.ts'
import type { ConfigStore } from '../../../proxy/config/store.ts'
import type { UpstreamEndpoint } from '../../../proxy/upstream/endpoint.ts'
import { now } from '../../../proxy/upstream/endpoint.ts'
import type { Pool, PoolEndpoints } from './pools.ts'

/** Request header, or member of the `envoy.lb` metadata, in which a picker names endpoints. */
export const destinationKey = 'x-gateway-destination-endpoint'
const namespace = 'envoy.lb'
const servedKey = 'x-gateway-destination-endpoint-served'
const subsetNamespace = 'envoy.lb.subset_hint'
const subsetKey = 'x-gateway-destination-endpoint-subset'

/** Returns the endpoints that dynamic metadata names, as text; undefined if it names none. */
export function namedIn(metadata: LearnedRecord): string | undefined {
  const found = metadata[namespace]
  if (typeof found !== 'object' || found === null || Array.isArray(found)) return undefined
  const value = (found as LearnedRecord)[destinationKey]
  return typeof value === 'string' ? value : undefined
}

/**
 * Parses `address:port[,address:port...]` into the ready endpoints of the pool, in order and without
 * duplicates. If no endpoint is left, returns the reason as text.
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
 * Lists the endpoints that are neither ejected nor at their request limit, or all ready endpoints if none
 * qualifies.
 */
export function candidates(pool: Pool, maxLoad = Number.POSITIVE_INFINITY): FilterValues {
  const all: string[] = []
  const usable: string[] = []
  for (const [label, endpoint] of pool.endpoints()) {
    all.push(label)
    if (endpoint.load < maxLoad && !endpoint.isEjected(now)) usable.push(label)
  }
  return { [subsetNamespace]: { [subsetKey]: usable.length > 0 ? usable : all } }
}

/** Metadata with which the picker learns which endpoint responded. */
export function servedBy({ address }: UpstreamEndpoint): FilterValues {
  return { [namespace]: { [servedKey]: address.label ?? address.pool } }
}

/** Created on first use. All pickers get the same object, so that they can share a connection. */
let settings: TlsSettings | undefined

const noSecrets = (): never => {
  throw new Error('TLS that verifies nothing needs no secret')
}

/**
 * Returns the default TLS settings for an endpoint picker; undefined means plaintext, which the appProtocol
 * `kubernetes.io/h2c` of the picker's port selects. Pickers create self-signed certificates when they start,
 * so nothing is verified (Gateway API Inference Extension).
 */
export function pickerTls(
  { services }: Pick<ConfigStore, 'services'>,
  target: CalloutTarget,
): TlsSettings | undefined {
  if (target.type !== 'service') return undefined
  const ports = services.find(`${target.namespace}/${target.name}`)?.ports
  const port = ports?.find((one) => one.port === target.port && one.protocol !== 'UDP')
  if (port?.appProtocol?.toLowerCase() === 'kubernetes.io/h2c') return undefined
  settings ??= settingsOf({ verify: 'none' }, { value: noSecrets })
  return settings
}
