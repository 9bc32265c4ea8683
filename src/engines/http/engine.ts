import { createServer, type Server, type Socket } from 'node:net'
import { hostAndPort } from '../../ground/base/listen-hosts.ts'
import { GatewayError } from '../../ground/errors/index.ts'
import { CoreTrap, type HeadRecord, type IoCore } from '../core/index.ts'
import { ReadBuffers } from './bytes/read-buffers.ts'
import { WriteBuffers } from './bytes/write-buffers.ts'
import { socketHighWaterMark } from './bytes/write-limits.ts'
import type { CallListener, CallRequest, OpenCall } from './contracts/calls.ts'
import type { EngineCounters, PoolState } from './contracts/engine.ts'
import type { EngineParts } from './contracts/engine-parts.ts'
import { refuseRequests, refuseStreams } from './contracts/refusing-handlers.ts'
import type { RequestHandler } from './contracts/requests.ts'
import type { StreamCounters, StreamHandler } from './contracts/streams.ts'
import { startCounters, startStreamCounters } from './engine-counters.ts'
import { ExchangePool } from './exchange/exchange-pool.ts'
import { HttpExchange } from './exchange/http-exchange.ts'
import { DownstreamConnection } from './http1/downstream-connection.ts'
import { overTls } from './http2/downstream-session.ts'
import {
  defaultLimits,
  defaultStreamLimits,
  type EngineLimits,
  receiveBudgets,
  type StreamLimits,
} from './limits/engine-limits.ts'
import type { PortChange } from './limits/port-change.ts'
import { CallResponses } from './message/call-response.ts'
import { HeadReader } from './message/head-reader.ts'
import { findNodeHandles } from './node-handles/node-handles.ts'
import { Admission, type AdmissionRules } from './sockets/admission.ts'
import { FlushQueue } from './sockets/flush-queue.ts'
import { PortSettings } from './sockets/port-settings.ts'
import { DatagramPort } from './streams/datagram-port.ts'
import { StreamConnection } from './streams/stream-connection.ts'
import { type EngineClock, platformClock, Timer, TimerWheel } from './time/timer-wheel.ts'
import type { ChooseTls, TlsChoice } from './tls/tls-choice.ts'
import { TlsHandshake } from './tls/tls-handshake.ts'
import { type ConnectOnce, connectOnce } from './upstream/connection-attempt.ts'
import { Pools } from './upstream/pool.ts'
import { UpstreamCall } from './upstream/upstream-call.ts'
export interface EngineOptions extends AdmissionRules {
  /** The I/O instance of the core on this thread. */
  readonly core: IoCore
  /** The record that request heads are read into; the data plane matches routes against it. */
  readonly head: HeadRecord
  /** Handles requests, and connections that are forwarded without being read; see `serve`. */
  readonly handler?: RequestHandler
  readonly streamHandler?: StreamHandler
  readonly limits?: Partial<EngineLimits>
  readonly streamLimits?: Partial<StreamLimits>
  /** Maximum number of read buffers outside the core's memory; requests that need another one get 503. */
  readonly maxReadBuffers?: number
  /** IPv4 or IPv6 address that listeners bind; `::` accepts both. Clients over IPv4 keep IPv4 addresses. */
  readonly bindAddress: string
  /** Whether several workers bind the same port, so that the kernel spreads connections (Linux). */
  readonly reusePort: boolean
  readonly clock?: EngineClock
  /**
   * Whether to read plaintext clients into shared memory and to write without Node's streams, if this
   * Node supports it. Default true.
   */
  readonly usesNodeHandles?: boolean
  /** Called with the connect time when a connection to an upstream has been made. */
  readonly onUpstreamConnected?: (seconds: number) => void
  /** Called with the duration when a TLS handshake with a client has finished. */
  readonly onTlsHandshake?: (port: number, choice: TlsChoice, seconds: number) => void
}

const flushPollMs = 20

interface BoundPort {
  readonly server: Server
  /** Accepts a connection from a tunnel. Returns why it is refused; undefined if it is served. */
  acceptInner(socket: Socket): GatewayError | undefined
}

/** An I/O engine on this thread: listening ports, connections to upstreams, and the gateway's own calls. */
export class Engine {
  readonly #options: EngineOptions
  readonly #parts: EngineParts
  readonly #admission: Admission
  readonly #bound = new Map<number, BoundPort>()
  readonly #pools = new Pools(() => this.#parts)
  readonly #settings = new Map<number, PortSettings>()
  readonly #datagramPorts = new Map<number, DatagramPort>()
  readonly #drainTimer = new Timer({ onTimer: () => this.#onDrainTimer() })
  readonly #flushTimer = new Timer({ onTimer: () => this.#onActivityEnded() })
  #drain: { stopsAccepting: boolean; maxMs: number; resolve(): void } | undefined

  constructor(options: EngineOptions) {
    this.#options = options
    const clock = options.clock ?? platformClock()
    const clientMeter = { received: 0, sent: 0 }
    const tlsMeter = { received: 0, sent: 0 }
    const readBuffers = new ReadBuffers(options.core, options.maxReadBuffers)
    const exchanges: ExchangePool = new ExchangePool(() => new HttpExchange(this.#parts, exchanges))
    const reader = new HeadReader(options.core, options.head)
    this.#parts = {
      reader,
      handler: options.handler ?? refuseRequests,
      clock,
      timers: new TimerWheel(clock),
      upstreams: this.#pools,
      readBuffers,
      callResponses: new CallResponses(reader),
      ...findNodeHandles(options.core, options.usesNodeHandles ?? true),
      writeBuffers: new WriteBuffers(options.core),
      limits: { ...defaultLimits, ...options.limits },
      ...receiveBudgets(),
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
      takeExchange: () => exchanges.take(),
      activeExchanges: 0,
      isDraining: false,
      toError: (thrown) => this.#toError(thrown),
      onUpstreamConnected: options.onUpstreamConnected ?? (() => {}),
      onTlsHandshake: options.onTlsHandshake ?? (() => {}),
      onActivityEnded: () => this.#onActivityEnded(),
      acceptInner: (port, socket) => this.#acceptInner(port, socket),
    }
    this.#admission = new Admission(this.#parts, options, () => this.#open)
  }

  /** Sets the handlers of the traffic. Until then, and if one is omitted, traffic is refused. */
  serve({ handler, streamHandler }: Pick<EngineOptions, 'handler' | 'streamHandler'>): void {
    this.#parts.handler = handler ?? refuseRequests
    this.#parts.streamHandler = streamHandler ?? refuseStreams
  }

  get counters(): EngineCounters {
    return this.#parts.counters
  }

  /** The open connections to backends, by address. */
  poolStates(): readonly PoolState[] {
    return this.#pools.states()
  }

  get streamCounters(): StreamCounters {
    return this.#parts.streamCounters
  }

  /**
   * Binds a port (0: any free port) and resolves with its number. Rejects with GatewayError
   * `port_in_use`, whose cause is the system's error. With `tls`, connections must use TLS.
   */
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

  /** Like `listen`, for connections that are forwarded without being read. */
  listenStream(port: number): Promise<number> {
    return this.#bind(port, this.#settingsOf(port), (socket, bound, _server, wasRead = false) => {
      new StreamConnection(this.#parts, { port: bound, protocol: 'tcp', socket, wasRead })
    })
  }

  /**
   * Changes the settings of a port that is bound or about to be. New limits also apply to open
   * connections; new keepalive settings only apply to connections that are accepted from now on.
   */
  configure(port: number, change: PortChange): void {
    let settings = this.#settings.get(port)
    if (settings === undefined) {
      settings = this.#settingsOf(port)
      this.#settings.set(port, settings)
    }
    settings.change(change)
  }

  /** Returns the settings of the port, or the defaults if it has none yet. */
  #settingsOf(port: number): PortSettings {
    return this.#settings.get(port) ?? new PortSettings(this.#parts.limits)
  }

  /** Binds a UDP port. */
  async listenDatagrams(port: number): Promise<number> {
    const { bindAddress, reusePort } = this.#options
    const bound = await DatagramPort.bind(this.#parts, { port, bindAddress, reusePort })
    this.#datagramPorts.set(bound.port, bound)
    return bound.port
  }

  /** Closes a UDP port and ends its sessions. */
  async unlistenDatagrams(port: number): Promise<void> {
    const bound = this.#datagramPorts.get(port)
    this.#datagramPorts.delete(port)
    await bound?.close()
  }

  /** Number of open client connections. */
  get #open(): number {
    const { connections, handshakes, streams } = this.#parts
    return connections.size + handshakes.size + streams.size
  }

  #bind(
    port: number,
    settings: PortSettings,
    accept: (socket: Socket, bound: number, server: Server, wasRead?: boolean) => void,
  ): Promise<number> {
    const { bindAddress, reusePort } = this.#options
    let bound = port
    const options = { allowHalfOpen: true, noDelay: true, highWaterMark: socketHighWaterMark }
    const server = createServer(options, (socket: Socket) => {
      const onAdmitted = (wasRead: boolean) => accept(socket, bound, server, wasRead)
      this.#admission.admit(socket, settings, onAdmitted)
    })
    const acceptInner = (socket: Socket) => {
      const refusal = this.#admission.refusalOfInner(socket, settings)
      if (refusal === undefined) accept(socket, bound, server)
      return refusal
    }
    return new Promise((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) => {
        const detail = `${hostAndPort(bindAddress, port)}: ${error.code}`
        reject(new GatewayError('port_in_use', detail, error))
      })
      const ipv6Only = bindAddress.includes(':') && bindAddress !== '::'
      server.listen({ port, host: bindAddress, backlog: 4096, reusePort, ipv6Only }, () => {
        const address = server.address()
        if (address !== null && typeof address === 'object') bound = address.port
        this.#bound.set(bound, { server, acceptInner })
        this.#settings.set(bound, settings)
        // An error while accepting, such as a lack of descriptors, must not end the process.
        server.on('error', () => {})
        resolve(bound)
      })
    })
  }

  #acceptInner(port: number, socket: Socket): GatewayError | undefined {
    const bound = this.#bound.get(port)
    if (bound === undefined) return new GatewayError('connect_failed', `port ${port} is not open`)
    return bound.acceptInner(socket)
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
            ? overTls(this.#parts, { limits, port }, secure)
            : new DownstreamConnection(this.#parts, { limits, port, socket, secure })
        // Closes the connection if its port was closed during the handshake.
        if (this.#bound.get(port)?.server !== server) connection.closeSoon()
      },
      onPassthrough: (socket, choice, serverName, first) => {
        const stream = { ...accepted, socket, tls: choice, serverName, first, wasRead: true }
        new StreamConnection(this.#parts, stream)
      },
    })
  }

  /**
   * Stops accepting on a port. Open connections finish their requests and close. Connections that are
   * forwarded unread stay open, because their peers cannot be asked to close them.
   */
  unlisten(port: number): Promise<void> {
    const bound = this.#bound.get(port)
    this.#bound.delete(port)
    this.#settings.delete(port)
    bound?.server.close()
    for (const connection of [...this.#parts.connections]) {
      if (connection.port === port) connection.closeSoon()
    }
    return Promise.resolve()
  }

  /** Makes a request of the gateway's own. Failures are reported to the listener after this returns. */
  call(request: CallRequest, listener: CallListener): OpenCall {
    return new UpstreamCall(this.#parts, request, listener).start()
  }

  /** Connects to an address and closes the connection. The returned function cancels it. */
  readonly connect: ConnectOnce = (...attempt) => connectOnce(this.#parts, ...attempt)

  /**
   * Asks kept-alive clients to close, and stops accepting on all ports after `minMs`. Resolves when
   * the last exchange is done, or when `maxMs` have passed and the remaining exchanges were cut.
   */
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
    for (const port of [...this.#bound.keys()]) void this.unlisten(port)
    // Sessions of datagrams have no end to wait for.
    for (const port of [...this.#datagramPorts.keys()]) void this.unlistenDatagrams(port)
    for (const connection of [...this.#parts.connections]) connection.closeSoon()
    this.#parts.timers.arm(this.#drainTimer, drain.maxMs)
    this.#onActivityEnded()
  }

  /** Called when an exchange or a connection has ended, so that the drain may be complete. */
  #onActivityEnded(): void {
    this.#options.connectionCap?.update(this.#open)
    const drain = this.#drain
    if (drain === undefined || !drain.stopsAccepting) return
    if (this.#parts.activeExchanges > 0 || this.#parts.streams.size > 0) return
    for (const connection of this.#parts.connections) {
      // The kernel may not have accepted the end of a response yet.
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
    if (thrown instanceof GatewayError) return thrown
    const isTrap = thrown instanceof CoreTrap
    if (isTrap) this.#parts.counters.coreTraps++
    return new GatewayError(isTrap ? 'core_trapped' : 'bug', undefined, thrown)
  }

  /** Closes all ports and connections at once. */
  close(): void {
    for (const { server } of this.#bound.values()) server.close()
    this.#bound.clear()
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
