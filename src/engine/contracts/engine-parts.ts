import type { GatewayError } from '../../errors/index.ts'
import type { ReadBuffers } from '../bytes/read-buffers.ts'
import type { EngineLimits, StreamLimits } from '../limits/engine-limits.ts'
import type { HeadReader } from '../message/head-reader.ts'
import type { FlushQueue } from '../sockets/flush-queue.ts'
import type { ByteMeter, TransportParts } from '../sockets/transport.ts'
import type { LoopTicks } from '../time/loop-ticks.ts'
import type { EngineClock, TimerWheel } from '../time/timer-wheel.ts'
import type { TlsChoice } from '../tls/tls-choice.ts'
import type { OpenConnection } from './connections.ts'
import type { ExchangeSource } from './downstream.ts'
import type { EngineCounters } from './engine.ts'
import type { RequestHandler } from './requests.ts'
import type { ServerStream, StreamCounters, StreamHandler } from './streams.ts'
import type { UpstreamSource } from './upstream.ts'

/** What the parts of one engine share. */
export interface EngineParts extends TransportParts {
  readonly reader: HeadReader
  readonly handler: RequestHandler
  readonly clock: EngineClock
  readonly timers: TimerWheel
  /** Connections to upstreams. */
  readonly upstreams: UpstreamSource
  readonly loopTicks: LoopTicks
  readonly readBuffers: ReadBuffers
  readonly limits: EngineLimits
  readonly counters: EngineCounters
  /** Bytes of plaintext connections, and of those with TLS. */
  readonly clientMeter: ByteMeter
  readonly tlsMeter: ByteMeter
  readonly upstreamMeter: ByteMeter
  /** Connections that write at the end of a turn. */
  readonly flushes: FlushQueue
  /** Client connections that are open. */
  readonly connections: Set<OpenConnection>
  /** Connections whose PROXY header or TLS handshake is under way. */
  readonly handshakes: Set<{ cut(): void }>
  readonly streamHandler: StreamHandler
  readonly streamLimits: StreamLimits
  readonly streamCounters: StreamCounters
  /** Connections that are forwarded as they are. */
  readonly streams: Set<{ cut(): void }>
  readonly datagramSessions: Set<ServerStream>
  /** Requests that are being served. */
  activeExchanges: number
  readonly exchanges: ExchangeSource
  /** Responses tell clients to close. */
  isDraining: boolean
  /** A connection to an upstream was made, in so many seconds. */
  readonly onUpstreamConnected: (seconds: number) => void
  /** A TLS handshake was finished, in so many seconds. */
  readonly onTlsHandshake: (port: number, choice: TlsChoice, seconds: number) => void
  /** The error for an exception out of the core or a body transform; counts traps. */
  toError(thrown: unknown): GatewayError
  /** An exchange or a connection is over: a drain that waits for the last one checks again. */
  onActivityEnded(): void
}
