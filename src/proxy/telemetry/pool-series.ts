/** Gauges of the connections that are kept to backends. */
import type { PoolState } from '../../engine/contracts/engine.ts'
import type { MetricsSnapshot, Series } from './metric-definitions.ts'

/** Addresses with series of their own; clients choose those of dynamic destinations. */
const mostEndpoints = 1_000
/** Stands for all addresses beyond. */
const overflow = 'overflow'

export function poolSeries(states: readonly PoolState[]): MetricsSnapshot {
  // One address may have several pools: in plaintext, with TLS, for each name that TLS sends.
  const byEndpoint = new Map<string, PoolState>()
  for (const { endpoint, idle, busy, streams } of states) {
    const isKnown = byEndpoint.has(endpoint)
    const name = isKnown || byEndpoint.size < mostEndpoints ? endpoint : overflow
    const sum = byEndpoint.get(name) ?? { endpoint: name, idle: 0, busy: 0, streams: 0 }
    sum.idle += idle
    sum.busy += busy
    sum.streams += streams
    byEndpoint.set(name, sum)
  }
  const connections: Series[] = []
  const streams: Series[] = []
  for (const { endpoint, ...sum } of byEndpoint.values()) {
    connections.push({ labels: [endpoint, 'idle'], values: [sum.idle] })
    connections.push({ labels: [endpoint, 'busy'], values: [sum.busy] })
    if (sum.streams > 0) streams.push({ labels: [endpoint], values: [sum.streams] })
  }
  return { upstream_pool_connections: connections, upstream_pool_streams: streams }
}
