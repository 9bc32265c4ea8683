/** How much memory the gateway may hold for connections, and what it must have given back when the world is quiet. */

import { readBufferSize } from '../../src/engines/http/bytes/read-buffers.ts'
import { copyLimit } from '../../src/engines/http/bytes/write-limits.ts'
import type { EngineCounters } from '../../src/engines/http/contracts/engine.ts'
import type { SimulatedRoute } from './configuration.ts'
import type { Exchange } from './exchange.ts'

/** Heads, chunks and frames around bodies. */
const framing = 16 * 1024

/** Whether the gateway reads whole bodies, which it then holds until they are written. */
const readsWhole = (route: SimulatedRoute): boolean =>
  route.isModel ||
  route.isProcessed ||
  route.rewritesRequests ||
  route.rewritesResponses ||
  route.mirror !== undefined ||
  (route.authorizer !== undefined && route.sentBody !== undefined) ||
  route.retries > 0

/** Returns the most bytes that the gateway may hold to write them to one connection, whose peer reads slowly. */
export function mostHeld(routes: readonly SimulatedRoute[], exchanges: Iterable<Exchange>): number {
  const streamed = readBufferSize + copyLimit + framing
  if (!routes.some(readsWhole)) return streamed
  const bodies = [...exchanges].flatMap(({ request, plans }) => [
    request.body.length,
    ...plans.map(({ body }) => body.length),
  ])
  return streamed + 2 * Math.max(0, ...bodies)
}

/** Returns what is left of exchanges and connections after all have ended. */
export function memoryProblems(counters: EngineCounters): string[] {
  const { readBuffersInUse, http2Streams, http2Connections, upstreamConnectionsOpen } = counters
  const left = { readBuffersInUse, http2Streams, http2Connections, upstreamConnectionsOpen }
  return Object.entries(left).flatMap(([name, count]) =>
    count === 0 ? [] : [`${name} is ${count} after all connections have ended`],
  )
}
