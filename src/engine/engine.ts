import { createServer, type Server, type Socket } from 'node:net'
import { CoreTrap, type HeadRecord, type IoCore } from '../core/index.ts'
import { GatewayError } from '../errors/index.ts'
import { ReadBuffers } from './bytes/read-buffers.ts'
import { WriteBuffers } from './bytes/write-buffers.ts'
import { socketHighWaterMark } from './bytes/write-limits.ts'
import type { CallListener, CallRequest, OpenCall } from './contracts/calls.ts'
import type { Engine, EngineCounters, PoolState, PortChange } from './contracts/engine.ts'
import type { EngineParts } from './contracts/engine-parts.ts'
import type { RequestHandler } from './contracts/requests.ts'
import type { StreamCounters, StreamHandler } from './contracts/streams.ts'
import { startCounters, startStreamCounters } from './engine-counters.ts'
import { ExchangePool } from './exchange/exchange-pool.ts'
import { HttpExchange } from './exchange/http-exchange.ts'
import { DownstreamConnection } from './http1/downstream-connection.ts'
import { overTls } from './http2/open-session.ts'
import {
  defaultLimits,
  defaultStreamLimits,
  type EngineLimits,
  type StreamLimits,
} from './limits/engine-limits.ts'
import { HeadReader } from './message/head-reader.ts'
import { findNodeHandles } from './node-handles/node-handles.ts'
import { PortSettings } from './port-settings.ts'
import type { ConnectionCap } from './sockets/connection-cap.ts'
import { FlushQueue } from './sockets/flush-queue.ts'
import { ProxyHeaderReader } from './sockets/proxy-header-reader.ts'
import { setKeepalive } from './sockets/tcp-keepalive.ts'
import { DatagramPort } from './streams/datagram-port.ts'
import { StreamConnection } from './streams/stream-connection.ts'
import { LoopTicks } from './time/loop-ticks.ts'
import { type EngineClock, platformClock, Timer, TimerWheel } from './time/timer-wheel.ts'
import type { ChooseTls, TlsChoice } from './tls/tls-choice.ts'
import { TlsHandshake } from './tls/tls-handshake.ts'
import { Pools } from './upstream/pool.ts'
import { UpstreamCall } from './upstream/upstream-call.ts'
export interface EngineOptions {
  /** The I/O instance of the core, of this thread. */
  readonly core: IoCore
  /** The record that request heads are read into; the data plane matches routes against it. */
  readonly head: HeadRecord
  readonly handler: RequestHandler
  /** What happens to connections that are forwarded as they are; refused if omitted. */
  readonly streamHandler?: StreamHandler
  readonly limits?: Partial<EngineLimits>
  readonly streamLimits?: Partial<StreamLimits>
  /** Must connections from this address begin with a header of the PROXY protocol? */
  readonly expectsProxyHeader?: (address: string) => boolean
  /** Bounds the client connections of all TCP ports together; unbounded if omitted. */
  readonly connectionCap?: ConnectionCap
  /** Read buffers outside the core's memory; requests that would need one more are answered 503. */
  readonly maxReadBuffers?: number
  /** Where listeners bind: an IPv4 or IPv6 address; `::` for both. */
  readonly bindAddress: string
  /** Several workers bind the same port, and the kernel spreads connections (Linux). */
  readonly reusePort: boolean
  readonly clock?: EngineClock
  /**
   * Reads plaintext clients into shared memory and writes past Node's streams, if this Node supports it;
   * true if omitted.
   */
  readonly usesNodeHandles?: boolean
  /** A connection to an upstream was made, in so many seconds. */
  readonly onUpstreamConnected?: (seconds: number) => void
  /** A TLS handshake with a client was finished, in so many seconds. */
  readonly onTlsHandshake?: (port: number, choice: TlsChoice, seconds: number) => void
}

const flushPollMs = 20

/** An I/O engine on this thread. */
export function createEngine(options: EngineOptions): Engine {
  return new SocketEngine(options)
}

class SocketEngine implements Engine {
  readonly #options: EngineOptions
  readonly #cap: ConnectionCap | undefined
  readonly #parts: EngineParts
  readonly #servers = new Map<number, Server>()
  readonly #pools = new Pools(() => this.#parts)
  readonly #settings = new Map<number, PortSettings>()
  readonly #datagramPorts = new Map<number, DatagramPort>()
  readonly #drainTimer = new Timer({ onTimer: () => this.#onDrainTimer() })
  readonly #flushTimer = new Timer({ onTimer: () => this.#onActivityEnded() })
  #drain: { stopsAccepting: boolean; maxMs: number; resolve(): void } | undefined

  constructor(options: EngineOptions) {
    this.#options = options
    this.#cap = options.connectionCap
    const clock = options.clock ?? platformClock()
    const clientMeter = { received: 0, sent: 0 }
    const tlsMeter = { received: 0, sent: 0 }
    const readBuffers = new ReadBuffers(options.core, options.maxReadBuffers)
    const exchanges: ExchangePool = new ExchangePool(() => new HttpExchange(this.#parts, exchanges))
    this.#parts = {
      reader: new HeadReader(options.core, options.head),
      handler: options.handler,
      clock,
      timers: new TimerWheel(clock),
      upstreams: this.#pools,
      loopTicks: new LoopTicks(),
      readBuffers,
      ...findNodeHandles(options.core, options.usesNodeHandles ?? true),
      writeBuffers: new WriteBuffers(options.core),
      limits: { ...defaultLimits, ...options.limits },
      counters: startCounters(clientMeter, tlsMeter, readBuffers, () => this.#tlsConnections()),
      clientMeter,
      tlsMeter,
      upstreamMeter: { received: 0, sent: 0 },
      flushes: new FlushQueue(),
      connections: new Set(),
      handshakes: new Set(),
      streamHandler: options.streamHandler ?? refuseStreams,
      streamLimits: { ...defaultStreamLimits, ...options.streamLimits },
      streamCounters: startStreamCounters(),
      streams: new Set(),
      datagramSessions: new Set(),
      exchanges,
      activeExchanges: 0,
      isDraining: false,
      toError: (thrown) => this.#toError(thrown),
      onUpstreamConnected: options.onUpstreamConnected ?? (() => {}),
      onTlsHandshake: options.onTlsHandshake ?? (() => {}),
      onActivityEnded: () => this.#onActivityEnded(),
    }
  }

  get counters(): EngineCounters {
    return this.#parts.counters
  }

  poolStates(): readonly PoolState[] {
    return this.#pools.states()
  }

  get streamCounters(): StreamCounters {
    return this.#parts.streamCounters
  }

  listen(port: number, limits?: Partial<EngineLimits>, tls?: ChooseTls): Promise<number> {
    const settings = this.#settingsOf(port)
    Object.assign(settings.limits, limits)
    const all = settings.limits
    return this.#bind(port, settings, (socket, bound, server, wasRead = false) => {
      const accepted = { limits: all, port: bound, socket, wasRead }
      if (tls === undefined) new DownstreamConnection(this.#parts, accepted)
      else this.#acceptTls(server, tls, all, bound, socket)
    })
  }

  listenStream(port: number): Promise<number> {
    return this.#bind(port, this.#settingsOf(port), (socket, bound, _server, wasRead = false) => {
      const stream = { port: bound, protocol: 'tcp', socket, raw: socket, wasRead } as const
      new StreamConnection(this.#parts, stream)
    })
  }

  configure(port: number, change: PortChange): void {
    let settings = this.#settings.get(port)
    if (settings === undefined) {
      settings = this.#settingsOf(port)
      this.#settings.set(port, settings)
    }
    settings.change(change)
  }

  /** Those of a port that is bound already, or is about to be with settings of its own. */
  #settingsOf(port: number): PortSettings {
    return this.#settings.get(port) ?? new PortSettings(this.#parts.limits)
  }

  async listenDatagrams(port: number): Promise<number> {
    const { bindAddress, reusePort } = this.#options
    const bound = await DatagramPort.bind(this.#parts, { port, bindAddress, reusePort })
    this.#datagramPorts.set(bound.port, bound)
    return bound.port
  }

  async unlistenDatagrams(port: number): Promise<void> {
    const bound = this.#datagramPorts.get(port)
    this.#datagramPorts.delete(port)
    await bound?.close()
  }

  /** Client connections that are open. */
  get #open(): number {
    const { connections, handshakes, streams } = this.#parts
    return connections.size + handshakes.size + streams.size
  }

  #bind(
    port: number,
    settings: PortSettings,
    accept: (socket: Socket, bound: number, server: Server, wasRead?: boolean) => void,
  ): Promise<number> {
    const { bindAddress, reusePort, expectsProxyHeader } = this.#options
    let bound = port
    const options = { allowHalfOpen: true, noDelay: true, highWaterMark: socketHighWaterMark }
    const server = createServer(options, (socket: Socket) => {
      if (this.#cap?.admit(this.#open) === false) {
        this.#parts.counters.connectionsRefused++
        socket.on('error', () => {})
        socket.resetAndDestroy()
        return
      }
      setKeepalive(socket, settings.keepalive)
      if (expectsProxyHeader?.(socket.remoteAddress ?? '') !== true) {
        accept(socket, bound, server)
        return
      }
      new ProxyHeaderReader(this.#parts, settings.limits, socket, () => {
        accept(socket, bound, server, true)
      })
    })
    return new Promise((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) => {
        const detail = `${bindAddress}:${port}: ${error.code}`
        reject(new GatewayError('port_in_use', detail, error))
      })
      const ipv6Only = bindAddress.includes(':') && bindAddress !== '::'
      server.listen({ port, host: bindAddress, backlog: 4096, reusePort, ipv6Only }, () => {
        const address = server.address()
        if (address !== null && typeof address === 'object') bound = address.port
        this.#servers.set(bound, server)
        this.#settings.set(bound, settings)
        // Failures to accept (no descriptors left) must not end the process.
        server.on('error', () => {})
        resolve(bound)
      })
    })
  }

  #tlsConnections(): number {
    let count = 0
    for (const { tls } of this.#parts.connections) if (tls !== undefined) count++
    return count
  }

  #acceptTls(
    server: Server,
    tls: ChooseTls,
    limits: EngineLimits,
    port: number,
    raw: Socket,
  ): void {
    const accepted = { port, protocol: 'tls' } as const
    new TlsHandshake(this.#parts, limits, tls, raw, {
      onSecure: (secure, serverName, seconds) => {
        const { socket, choice } = secure
        this.#parts.onTlsHandshake(port, choice, seconds)
        if (choice.carries === 'bytes') {
          new StreamConnection(this.#parts, { ...accepted, socket, raw, tls: choice, serverName })
          return
        }
        this.#parts.counters.tlsConnectionsTotal++
        const connection =
          socket.alpnProtocol === 'h2'
            ? overTls(this.#parts, { limits, port, secure })
            : new DownstreamConnection(this.#parts, { limits, port, socket, secure })
        // The port was closed during the handshake.
        if (this.#servers.get(port) !== server) connection.closeSoon()
      },
      onPassthrough: (socket, choice, serverName, first) => {
        const stream = { ...accepted, socket, raw, tls: choice, serverName, first, wasRead: true }
        new StreamConnection(this.#parts, stream)
      },
    })
  }

  unlisten(port: number): Promise<void> {
    const server = this.#servers.get(port)
    this.#servers.delete(port)
    this.#settings.delete(port)
    server?.close()
    for (const connection of [...this.#parts.connections]) {
      if (connection.port === port) connection.closeSoon()
    }
    return Promise.resolve()
  }

  call(request: CallRequest, listener: CallListener): OpenCall {
    return new UpstreamCall(this.#parts, request, listener).start()
  }

  drain(minMs: number, maxMs: number): Promise<void> {
    this.#parts.isDraining = true
    for (const connection of this.#parts.connections) connection.announceEnd()
    return new Promise((resolve) => {
      this.#drain = { stopsAccepting: false, maxMs: Math.max(maxMs, minMs) - minMs, resolve }
      if (minMs > 0) this.#parts.timers.arm(this.#drainTimer, minMs)
      else this.#onDrainTimer()
    })
  }

  #onDrainTimer(): void {
    const drain = this.#drain
    if (drain === undefined) return
    if (drain.stopsAccepting) {
      this.close()
      return
    }
    drain.stopsAccepting = true
    for (const port of [...this.#servers.keys()]) void this.unlisten(port)
    // Sessions of datagrams have no end that could be awaited.
    for (const port of [...this.#datagramPorts.keys()]) void this.unlistenDatagrams(port)
    for (const connection of [...this.#parts.connections]) connection.closeSoon()
    this.#parts.timers.arm(this.#drainTimer, drain.maxMs)
    this.#onActivityEnded()
  }

  /** An exchange or a connection has ended: is the drain over? */
  #onActivityEnded(): void {
    this.#cap?.settle(this.#open)
    const drain = this.#drain
    if (drain === undefined || !drain.stopsAccepting) return
    if (this.#parts.activeExchanges > 0 || this.#parts.streams.size > 0) return
    for (const connection of this.#parts.connections) {
      // The end of a response may still be on its way to the kernel.
      if (connection.transport.backlog > 0) {
        this.#parts.timers.arm(this.#flushTimer, flushPollMs)
        return
      }
    }
    this.#drain = undefined
    this.#parts.timers.disarm(this.#drainTimer)
    drain.resolve()
  }

  #toError(thrown: unknown): GatewayError {
    if (thrown instanceof CoreTrap) {
      this.#parts.counters.coreTraps++
      return new GatewayError('core_trapped', undefined, thrown)
    }
    return new GatewayError('bug', undefined, thrown)
  }

  close(): void {
    for (const server of this.#servers.values()) server.close()
    this.#servers.clear()
    for (const handshake of [...this.#parts.handshakes]) handshake.cut()
    for (const connection of [...this.#parts.connections]) connection.abort()
    for (const stream of [...this.#parts.streams]) stream.cut()
    for (const port of [...this.#datagramPorts.keys()]) void this.unlistenDatagrams(port)
    this.#pools.close()
    this.#parts.timers.clear()
    const drain = this.#drain
    this.#drain = undefined
    drain?.resolve()
  }
}

const refuseStreams: StreamHandler = {
  onStream: (stream) => stream.refuse(new GatewayError('route_not_found')),
  onStreamError: (stream, error) => stream.refuse(error),
  onAlternateAddress: () => {},
  isCurrent: () => true,
  onStreamDone: () => {},
}
