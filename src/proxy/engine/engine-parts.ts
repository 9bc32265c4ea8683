import type { GatewayError } from '../../errors.ts'
import type { ClientConnection } from './client-connection.ts'
import type { HeadReader } from './head-reader.ts'
import type { HttpExchange } from './http-exchange.ts'
import type { Pools } from './pool.ts'
import type { ReadBuffers } from './read-buffers.ts'
import type { EngineClock, TimerWheel } from './timer-wheel.ts'
import type { ByteMeter } from './transport.ts'
import type { EngineCounters, EngineLimits, RequestHandler } from './types.ts'

/** What the parts of one engine share. */
export interface EngineParts {
  readonly reader: HeadReader
  readonly handler: RequestHandler
  readonly clock: EngineClock
  readonly timers: TimerWheel
  readonly pools: Pools
  readonly readBuffers: ReadBuffers
  readonly limits: EngineLimits
  readonly counters: EngineCounters
  readonly clientMeter: ByteMeter
  readonly upstreamMeter: ByteMeter
  /** Client connections that are open. */
  readonly connections: Set<ClientConnection>
  /** Requests that are being served. */
  activeExchanges: number
  /** Exchanges that are over and may be used again. */
  readonly spareExchanges: HttpExchange[]
  /** Responses tell clients to close. */
  isDraining: boolean
  /** A connection to an upstream was made, in so many seconds. */
  readonly onUpstreamConnected: (seconds: number) => void
  /** The error for an exception out of the core or a body transform; counts traps. */
  blame(thrown: unknown): GatewayError
  /** An exchange or a connection is over: whoever waits for silence looks again. */
  onQuieter(): void
}
