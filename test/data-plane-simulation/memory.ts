/** How much memory the gateway may hold for messages and connections, and what it must have given back when the world is quiet. */

import { readBufferSize } from '../../src/engines/http/bytes/read-buffers.ts'
import { copyLimit } from '../../src/engines/http/bytes/write-limits.ts'
import type { EngineCounters } from '../../src/engines/http/contracts/engine.ts'
import { defaultHttp2Limits } from '../../src/engines/http/limits/engine-limits.ts'
import type { SimulatedRoute } from './configuration.ts'
import type { Exchange } from './exchange.ts'
import { discardLimit } from './http1-client.ts'

/** Heads, chunks and frames around bodies. */
const framing = 16 * 1024
/** One read of a message, and what is collected before its receiver counts as slow. */
const streamed = readBufferSize + copyLimit + framing

/** Whether the gateway reads whole bodies, which it then holds until they are written. */
const readsWhole = (route: SimulatedRoute): boolean =>
  route.isModel ||
  route.isProcessed ||
  route.rewritesRequests ||
  route.rewritesResponses ||
  route.mirror !== undefined ||
  (route.authorizer !== undefined && route.sentBody !== undefined) ||
  route.retries > 0

/** Returns the most bytes that the gateway may hold of one message. `isHttp2`: whether its sender speaks HTTP/2. */
const mostOfMessage = (isHttp2: boolean, { maxBuffer }: SimulatedRoute, isWhole: boolean): number =>
  streamed + (isHttp2 ? defaultHttp2Limits.streamWindowBytes : 0) + (isWhole ? maxBuffer : 0)

/** Returns what is wrong with the bytes that the gateway has held for an exchange, wherever it held them. */
export function heldProblems(exchange: Exchange, route: SimulatedRoute): string[] {
  const isWhole = readsWhole(route)
  const ofRequest = mostOfMessage(exchange.isHttp2Client, route, isWhole) + discardLimit
  const last = exchange.arrivals.at(-1)
  const ofResponse = mostOfMessage(
    last?.message.startLine.endsWith('HTTP/2') === true,
    route,
    isWhole,
  )
  const response = last?.held.most ?? 0
  return [
    ...overLimit('its request', exchange.held.most, ofRequest),
    ...overLimit('its response', response, ofResponse),
  ]
}

const overLimit = (what: string, held: number, most: number): string[] =>
  held > most ? [`the gateway held ${held} bytes of ${what}, more than ${most}`] : []

/** Returns the most bytes that the gateway may hold to write them to one connection, whose peer reads slowly. */
export function mostHeld(routes: readonly SimulatedRoute[], exchanges: Iterable<Exchange>): number {
  const all = [...exchanges]
  const hasHttp2 = routes.some((one) => one.isHttp2) || all.some((one) => one.isHttp2Client)
  const least = streamed + (hasHttp2 ? defaultHttp2Limits.streamWindowBytes : 0)
  if (!routes.some(readsWhole)) return least
  const bodies = all.flatMap(({ request, plans }) => [
    request.body.length,
    ...plans.map(({ body }) => body.length),
  ])
  return least + 2 * Math.max(0, ...bodies)
}

/** Returns what is left of exchanges and connections after all have ended. */
export function memoryProblems(counters: EngineCounters): string[] {
  const { readBuffersInUse, http2Streams, http2Connections, upstreamConnectionsOpen } = counters
  const left = { readBuffersInUse, http2Streams, http2Connections, upstreamConnectionsOpen }
  return Object.entries(left).flatMap(([name, count]) =>
    count === 0 ? [] : [`${name} is ${count} after all connections have ended`],
  )
}
