import type { Socket } from 'node:net'
import type { GatewayError } from '../../../ground/errors/index.ts'
import type { ReadBuffers } from '../bytes/read-buffers.ts'
import type { EngineLimits, ReceiveBudget, StreamLimits } from '../limits/engine-limits.ts'
import type { CallResponses } from '../message/call-response.ts'
import type { HeadReader } from '../message/head-reader.ts'
import type { FlushQueue } from '../sockets/flush-queue.ts'
import type { ByteMeter, TransportParts } from '../sockets/transport.ts'
import type { EngineClock, TimerWheel } from '../time/timer-wheel.ts'
import type { TlsChoice } from '../tls/tls-choice.ts'
import type { OpenConnection } from './connections.ts'
import type { DownstreamHandler } from './downstream.ts'
import type { EngineCounters } from './engine.ts'
import type { RequestHandler } from './requests.ts'
import type { ServerStream, StreamCounters, StreamHandler } from './streams.ts'
import type { UpstreamSource } from './upstream.ts'

/** The objects that all parts of one engine share. */
export interface EngineParts extends TransportParts {
  readonly reader: HeadReader
  handler: RequestHandler
  readonly clock: EngineClock
  readonly timers: TimerWheel
  /** Connections to upstreams. */
  readonly upstreams: UpstreamSource
  readonly readBuffers: ReadBuffers
  readonly callResponses: CallResponses
  readonly limits: EngineLimits
  readonly counters: EngineCounters
  /** Unread data of HTTP/2 connections: request bodies of clients, and response bodies of upstreams. */
  readonly uploadBudget: ReceiveBudget
  readonly responseBudget: ReceiveBudget
  /** `clientMeter` counts bytes of plaintext client connections, `tlsMeter` those of TLS connections. */
  readonly clientMeter: ByteMeter
  readonly tlsMeter: ByteMeter
  readonly upstreamMeter: ByteMeter
  /** Connections that write at the end of the current tick. */
  readonly flushes: FlushQueue
  /** Open client connections. */
  readonly connections: Set<OpenConnection>
  /** Connections whose PROXY header or TLS handshake is under way. */
  readonly handshakes: Set<{ cut(): void }>
  streamHandler: StreamHandler
  readonly streamLimits: StreamLimits
  readonly streamCounters: StreamCounters
  /** Connections that are forwarded without being read. */
  readonly streams: Set<{ cut(): void }>
  readonly datagramSessions: Set<ServerStream>
  /** Number of requests that are being served. */
  activeExchanges: number
  /** Returns an exchange to serve one request. */
  takeExchange(): DownstreamHandler
  /** Whether the engine drains, so that responses ask clients to close. */
  isDraining: boolean
  /** Called with the connect time when a connection to an upstream has been made. */
  readonly onUpstreamConnected: (seconds: number) => void
  /** Called with the duration when a TLS handshake with a client has finished. */
  readonly onTlsHandshake: (port: number, choice: TlsChoice, seconds: number) => void
  /** Converts an exception from the core or a body transform to an error; counts traps. */
  toError(thrown: unknown): GatewayError
  /** Called when an exchange or a connection has ended, so that a drain may be complete. */
  onActivityEnded(): void
  /** Accepts a connection from a tunnel on a port. Returns why it is refused; undefined if it is served. */
  acceptInner(port: number, socket: Socket): GatewayError | undefined
}
