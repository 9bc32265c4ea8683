import type { Socket } from 'node:net'
import type { GatewayError } from '../../errors.ts'
import type { DatagramSession } from './datagram-session.ts'
import type { HeadReader } from './head-reader.ts'
import type { HttpExchange } from './http-exchange.ts'
import type { FlushQueue } from './http2/flush-queue.ts'
import type { Pools } from './pool.ts'
import type { ReadBuffers } from './read-buffers.ts'
import type { StreamConnection } from './stream-connection.ts'
import type { StreamCounters, StreamHandler } from './stream-types.ts'
import type { EngineClock, TimerWheel } from './timer-wheel.ts'
import type { SecureSocket } from './tls-handshake.ts'
import type { ByteMeter, Transport, TransportParts } from './transport.ts'
import type { Turns } from './turns.ts'
import type {
  EngineCounters,
  EngineLimits,
  RequestHandler,
  StreamLimits,
  TlsChoice,
} from './types.ts'

/** A client's connection that can carry requests. */
export interface AcceptedConnection {
  readonly limits: EngineLimits
  readonly port: number
  readonly socket: Socket
  /** Set where the socket is TLS. */
  readonly secure?: SecureSocket
  /** Bytes were read from the socket, and wait in it. */
  readonly wasRead?: boolean
}

/** A client connection as the engine keeps account of it. */
export interface OpenConnection {
  readonly port: number
  readonly tls: TlsChoice | undefined
  readonly transport: Transport
  /** The gateway is about to stop: clients should go elsewhere with what they begin. */
  announceEnd(): void
  /** Closes now if nothing is served, else after what is under way. */
  closeSoon(): void
  /** Drops the connection and whatever is served on it. */
  abort(): void
}

/** What the parts of one engine share. */
export interface EngineParts extends TransportParts {
  readonly reader: HeadReader
  readonly handler: RequestHandler
  readonly clock: EngineClock
  readonly timers: TimerWheel
  readonly pools: Pools
  readonly turns: Turns
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
  readonly streams: Set<StreamConnection>
  readonly datagramSessions: Set<DatagramSession>
  /** Requests that are being served. */
  activeExchanges: number
  /** Exchanges that are over and may be used again. */
  readonly spareExchanges: HttpExchange[]
  /** Responses tell clients to close. */
  isDraining: boolean
  /** A connection to an upstream was made, in so many seconds. */
  readonly onUpstreamConnected: (seconds: number) => void
  /** A TLS handshake was finished, in so many seconds. */
  readonly onTlsHandshake: (port: number, choice: TlsChoice, seconds: number) => void
  /** The error for an exception out of the core or a body transform; counts traps. */
  blame(thrown: unknown): GatewayError
  /** An exchange or a connection is over: whoever waits for silence looks again. */
  onQuieter(): void
}
