import type { Socket } from 'node:net'
// The global is looked up by an accessor each time.
import { performance } from 'node:perf_hooks'
import { GatewayError } from '../../errors/index.ts'
import type { Peer } from '../../exchange/exchange.ts'
import { Tunnel } from '../bytes/tunnel.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import type { ServerStream, StreamProtocol } from '../contracts/streams.ts'
import { takeWaiting } from '../node-handles/waiting-bytes.ts'
import { sourceOf } from '../sockets/connection-ends.ts'
import { dialError, lostError } from '../sockets/dial.ts'
import { type OpeningOwner, openTransport } from '../sockets/open-transport.ts'
import { Transport, type TransportOwner } from '../sockets/transport.ts'
import type { AddressRace, ConnectOptions, UpstreamAddress } from '../sockets/upstream-address.ts'
import { Timer, type TimerOwner } from '../time/timer-wheel.ts'
import type { TlsChoice } from '../tls/tls-choice.ts'

/** A client's connection whose bytes are forwarded as they are. */
interface AcceptedStream {
  readonly port: number
  readonly protocol: StreamProtocol
  /** The socket to read from: where TLS ends here, the one above the TCP socket `raw`. */
  readonly socket: Socket
  readonly raw: Socket
  readonly tls?: TlsChoice
  readonly serverName?: string | undefined
  /** Bytes that were read already and belong to the backend. */
  readonly first?: Buffer
  /** Bytes were read from the socket, and more may wait in it. */
  readonly wasRead?: boolean
}

const nothing = Buffer.alloc(0)
const defaultConnectTimeoutMs = 10_000

/**
 * One TCP connection that is copied to a backend and back, with back-pressure both ways. Each
 * direction ends by itself (RFC 9293 3.6); an abort of one side aborts the other. Nothing is read
 * from the client until the backend is there.
 */
export class StreamConnection implements ServerStream, TransportOwner, TimerOwner {
  readonly #parts: EngineParts
  readonly port: number
  readonly protocol: StreamProtocol
  readonly tls: TlsChoice | undefined
  readonly serverName: string | undefined
  readonly startedAt = performance.now()
  readonly source: Peer
  readonly #client: Transport
  readonly #clientMeter = { received: 0, sent: 0 }
  readonly #timer = new Timer(this)
  #upstream: UpstreamSide | undefined
  /** Present once the backend is there. */
  #tunnel: Tunnel | undefined
  #first: Buffer | undefined
  #progress = 0
  #hasEnded = false
  #isOver = false
  error: GatewayError | undefined
  state: unknown

  constructor(parts: EngineParts, accepted: AcceptedStream) {
    this.#parts = parts
    const { port, protocol, socket, raw, tls, serverName, first, wasRead } = accepted
    this.port = port
    this.protocol = protocol
    this.tls = tls
    this.serverName = serverName
    this.source = sourceOf(raw)
    const waiting = wasRead === true ? takeWaiting(socket) : nothing
    // A socket in whose stream the end may wait is read from there.
    this.#client =
      waiting === undefined
        ? Transport.overEvents(parts, socket, this, this.#clientMeter, raw)
        : Transport.overShared(parts, socket, this, this.#clientMeter, raw)
    this.#client.pause()
    const early = Buffer.concat([first ?? nothing, waiting ?? nothing])
    if (early.length > 0) this.#first = early
    this.#clientMeter.received += early.length
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
    const { connectTimeoutMs } = options
    this.#upstream = new UpstreamSide(this.#parts, address, options, this)
    const ms = connectTimeoutMs > 0 ? connectTimeoutMs : defaultConnectTimeoutMs
    this.#parts.timers.arm(this.#timer, ms)
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

  /** The backend is there. */
  onConnected({ transport }: UpstreamSide): void {
    if (this.#isOver) return
    this.#tunnel = new Tunnel(this.#client, transport)
    const first = this.#first
    this.#first = undefined
    if (first !== undefined) this.#tunnel.fromClient(first, 0, first.length)
    if (this.#hasEnded) this.#tunnel.clientEnded()
    this.#watch()
    if (!transport.needsDrain) this.#client.resume()
  }

  #watch(): void {
    this.#progress = this.receivedBytes + this.sentBytes
    this.#parts.timers.arm(this.#timer, this.#parts.streamLimits.idleTimeoutMs)
  }

  onBytes(bytes: Buffer, start: number, end: number): void {
    if (this.#tunnel === undefined) this.#keep(bytes.subarray(start, end))
    else this.#tunnel.fromClient(bytes, start, end)
  }

  /** A socket that had another owner before may bring one more read in spite of the pause. */
  #keep(bytes: Buffer): void {
    this.#first = Buffer.concat([this.#first ?? Buffer.alloc(0), bytes])
    this.#client.socket.pause()
  }

  onUpstreamBytes(bytes: Buffer, start: number, end: number): void {
    this.#tunnel?.fromUpstream(bytes, start, end)
  }

  onEnd(): void {
    // A stream that ends without a byte says so even while nothing is read.
    this.#hasEnded = true
    this.#tunnel?.clientEnded()
  }

  onUpstreamEnd(): void {
    this.#tunnel?.upstreamEnded()
  }

  onDrain(): void {
    this.#tunnel?.clientDrained()
  }

  onUpstreamDrain(): void {
    this.#tunnel?.upstreamDrained()
  }

  /** The client is gone: cleanly where both directions had ended before. */
  onClose(error: Error | undefined): void {
    if (this.#isOver) return
    const upstream = this.#upstream
    if (error !== undefined || this.#tunnel === undefined) upstream?.abort()
    else if (upstream !== undefined && !upstream.transport.closed) {
      upstream.transport.end()
      return
    }
    this.#over()
  }

  onUpstreamClose(side: UpstreamSide, error: Error | undefined): void {
    if (this.#isOver || this.#upstream !== side) return
    if (this.#tunnel === undefined) {
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
    if (this.#tunnel === undefined) {
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

/** Only what the user stated is offered: what is in a stream is unknown (RFC 7301 3.2). */
function forBytes(address: UpstreamAddress): UpstreamAddress {
  const { tls } = address
  return tls === undefined ? address : { ...address, tls: { ...tls, alpn: tls.statedAlpn } }
}

/** The same addresses, as they are connected to for bytes. */
function raceForBytes(race: AddressRace): AddressRace {
  return {
    isPatient: race.isPatient,
    rivalsOf: (lead) => race.rivalsOf(lead).map(forBytes),
    won: (winner, beaten) => race.won(winner, beaten),
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
      into: parts.sharedReads.readsOf((length) => this.transport.receivedShared(length)),
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

  /** Drops the connection so that the backend sees an error; with TLS, an end without its alert. */
  abort(): void {
    this.gone()
    if (this.transport.closed) return
    if (this.address.tls === undefined) this.transport.reset()
    else this.transport.destroy()
  }

  drop(): void {
    this.gone()
    this.transport.destroy()
  }

  /** The connection is no more. */
  gone(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#parts.counters.upstreamConnectionsOpen--
  }

  onBytes(bytes: Buffer, start: number, end: number): void {
    this.#stream.onUpstreamBytes(bytes, start, end)
  }

  onEnd(): void {
    this.#stream.onUpstreamEnd()
  }

  onDrain(): void {
    this.#stream.onUpstreamDrain()
  }

  onClose(error: Error | undefined): void {
    this.gone()
    this.#stream.onUpstreamClose(this, error)
  }
}
