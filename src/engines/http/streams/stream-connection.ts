// The import is faster than the global, which is an accessor.
import { performance } from 'node:perf_hooks'
import { GatewayError } from '../../../ground/errors/index.ts'
import type { Peer } from '../../../ground/exchange/exchange.ts'
import { Tunnel } from '../bytes/tunnel.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import type { ServerStream, StreamProtocol } from '../contracts/streams.ts'
import { connectTimeout } from '../limits/engine-limits.ts'
import { type AcceptedSocket, acceptTransport } from '../sockets/accept-transport.ts'
import { endsOf } from '../sockets/connection-ends.ts'
import { dialError, lostError } from '../sockets/dial.ts'
import { type OpeningOwner, openTransport } from '../sockets/open-transport.ts'
import { forBytes, raceForBytes } from '../sockets/raw-address.ts'
import type { Transport, TransportOwner } from '../sockets/transport.ts'
import type { ConnectOptions, UpstreamAddress } from '../sockets/upstream-address.ts'
import { Timer, type TimerOwner } from '../time/timer-wheel.ts'
import type { TlsChoice } from '../tls/tls-choice.ts'

/** A client connection whose bytes are forwarded unread. */
interface AcceptedStream extends AcceptedSocket {
  readonly port: number
  readonly protocol: StreamProtocol
  readonly tls?: TlsChoice
  readonly serverName?: string | undefined
  /** Bytes that were read already and that belong to the backend. */
  readonly first?: Buffer | undefined
}

/**
 * One TCP connection that is copied to a backend and back, with back-pressure both ways. Each
 * direction ends separately (RFC 9293 3.6); if one side aborts, the other is aborted. Nothing is read
 * from the client until the backend is connected.
 */
export class StreamConnection implements ServerStream, TransportOwner, TimerOwner {
  readonly #parts: EngineParts
  readonly port: number
  readonly protocol: StreamProtocol
  readonly tls: TlsChoice | undefined
  readonly serverName: string | undefined
  readonly startedAt = performance.now()
  readonly source: Peer
  readonly rawSource: Peer
  readonly local: Peer
  readonly #client: Transport
  readonly #clientMeter = { received: 0, sent: 0 }
  readonly #timer = new Timer(this)
  #upstream: UpstreamSide | undefined
  /** Set once the backend is connected. */
  tunnel: Tunnel | undefined
  #first: Buffer | undefined
  #progress = 0
  #hasEnded = false
  #isOver = false
  error: GatewayError | undefined
  state: unknown

  constructor(parts: EngineParts, accepted: AcceptedStream) {
    this.#parts = parts
    const { port, protocol, socket, raw, tls, serverName, first } = accepted
    this.port = port
    this.protocol = protocol
    this.tls = tls
    this.serverName = serverName
    const { source, rawSource, local } = endsOf(raw ?? socket)
    this.source = source
    this.rawSource = rawSource
    this.local = local
    this.#client = acceptTransport(parts, accepted, this, this.#clientMeter)
    this.#client.pause()
    this.#first = first
    this.#clientMeter.received += first?.length ?? 0
    parts.streams.add(this)
    const { total, open } = parts.streamCounters
    total[protocol]++
    open[protocol]++
    parts.streamHandler.onStream(this)
  }

  get receivedBytes(): number {
    return this.#clientMeter.received
  }

  get sentBytes(): number {
    return this.#clientMeter.sent
  }

  connect(address: UpstreamAddress, options: ConnectOptions): void {
    if (this.#isOver) return
    this.#upstream = new UpstreamSide(this.#parts, address, options, this)
    this.#parts.timers.arm(this.#timer, connectTimeout(options.connectTimeoutMs))
  }

  refuse(error: GatewayError): void {
    if (this.#isOver) return
    this.error ??= error
    this.#client.reset()
    this.#over()
  }

  onAlternateAddress(address: UpstreamAddress): void {
    if (!this.#isOver) this.#parts.streamHandler.onAlternateAddress(this, address)
  }

  /** Called when the backend is connected. */
  onConnected({ transport }: UpstreamSide): void {
    if (this.#isOver) return
    this.tunnel = new Tunnel(this.#client, transport)
    const first = this.#first
    this.#first = undefined
    if (first !== undefined) this.tunnel.fromClient(first, 0, first.length)
    if (this.#hasEnded) this.tunnel.clientEnded()
    this.#watch()
    if (!transport.needsDrain) this.#client.resume()
  }

  #watch(): void {
    this.#progress = this.receivedBytes + this.sentBytes
    this.#parts.timers.arm(this.#timer, this.#parts.streamLimits.idleTimeoutMs)
  }

  onBytes(bytes: Buffer, start: number, end: number): void {
    if (this.tunnel === undefined) this.#keep(bytes.subarray(start, end))
    else this.tunnel.fromClient(bytes, start, end)
  }

  /** Keeps bytes that arrive in spite of the pause, from a socket that had another owner before. */
  #keep(bytes: Buffer): void {
    this.#first = Buffer.concat([this.#first ?? Buffer.alloc(0), bytes])
    this.#client.socket.pause()
  }

  onEnd(): void {
    // The end of a stream without bytes is reported even while reading is paused.
    this.#hasEnded = true
    this.tunnel?.clientEnded()
  }

  onDrain(): void {
    this.tunnel?.clientDrained()
  }

  /** Called when the client is gone; that is a clean end if both directions had ended before. */
  onClose(error: Error | undefined): void {
    if (this.#isOver) return
    const upstream = this.#upstream
    if (error !== undefined || this.tunnel === undefined) upstream?.abort()
    else if (upstream !== undefined && !upstream.transport.closed) {
      upstream.transport.end()
      return
    }
    this.#over()
  }

  onUpstreamClose(side: UpstreamSide, error: Error | undefined): void {
    if (this.#isOver || this.#upstream !== side) return
    if (this.tunnel === undefined) {
      this.#upstream = undefined
      this.#parts.timers.disarm(this.#timer)
      this.#parts.streamHandler.onStreamError(this, dialError(side.address, error))
      return
    }
    if (error !== undefined) {
      this.error ??= lostError(error)
      this.#client.reset()
    } else if (!this.#client.closed) {
      this.#client.end()
      return
    }
    this.#over()
  }

  onTimer(): void {
    if (this.tunnel === undefined) {
      this.#upstream?.drop()
      this.#upstream = undefined
      this.#parts.streamHandler.onStreamError(this, new GatewayError('connect_timeout'))
    } else if (this.receivedBytes + this.sentBytes !== this.#progress) this.#watch()
    else this.cut(new GatewayError('stream_idle'))
  }

  /** Drops both sides. */
  cut(error?: GatewayError): void {
    if (this.#isOver) return
    this.error ??= error
    this.#client.reset()
    this.#upstream?.abort()
    this.#over()
  }

  #over(): void {
    if (this.#isOver) return
    this.#isOver = true
    const { timers, streams, streamCounters, streamHandler } = this.#parts
    timers.disarm(this.#timer)
    streams.delete(this)
    streamCounters.open[this.protocol]--
    streamCounters.received[this.protocol] += this.receivedBytes
    streamCounters.sent[this.protocol] += this.sentBytes
    streamHandler.onStreamDone(this)
    this.#parts.onActivityEnded()
  }
}

/** The connection to the backend of one stream. */
class UpstreamSide implements OpeningOwner {
  readonly transport: Transport
  readonly address: UpstreamAddress
  readonly #stream: StreamConnection
  readonly #parts: EngineParts
  readonly #startedAt: number
  #isOpen = true

  constructor(
    parts: EngineParts,
    address: UpstreamAddress,
    { race }: ConnectOptions,
    stream: StreamConnection,
  ) {
    this.#parts = parts
    this.address = address
    this.#stream = stream
    this.#startedAt = parts.clock.now()
    parts.counters.upstreamConnectionsTotal++
    parts.counters.upstreamConnectionsOpen++
    this.transport = openTransport(parts, {
      address: forBytes(address),
      race: race && raceForBytes(race),
      reads: 'shared',
      owner: this,
    })
  }

  onAlternateAddress(address: UpstreamAddress): void {
    this.#stream.onAlternateAddress(address)
  }

  onReady(): void {
    const { clock, onUpstreamConnected } = this.#parts
    onUpstreamConnected((clock.now() - this.#startedAt) / 1_000)
    this.#stream.onConnected(this)
  }

  /** Drops the connection so that the backend sees an error: a reset, or a missing alert of TLS. */
  abort(): void {
    this.gone()
    if (!this.transport.closed) this.transport.reset()
  }

  drop(): void {
    this.gone()
    this.transport.destroy()
  }

  /** Called when the connection has been closed. */
  gone(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#parts.counters.upstreamConnectionsOpen--
  }

  onBytes(bytes: Buffer, start: number, end: number): void {
    this.#stream.tunnel?.fromUpstream(bytes, start, end)
  }

  onEnd(): void {
    this.#stream.tunnel?.upstreamEnded()
  }

  onDrain(): void {
    this.#stream.tunnel?.upstreamDrained()
  }

  onClose(error: Error | undefined): void {
    this.gone()
    this.#stream.onUpstreamClose(this, error)
  }
}
