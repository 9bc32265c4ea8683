import { createSocket, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'
// The import is faster than the global, which is an accessor.
import { performance } from 'node:perf_hooks'
import { GatewayError } from '../../../ground/errors/index.ts'
import type { Peer } from '../../../ground/exchange/exchange.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import type { ServerStream } from '../contracts/streams.ts'
import type { UpstreamAddress } from '../sockets/upstream-address.ts'
import { Timer, type TimerOwner } from '../time/timer-wheel.ts'

/** Limits of datagrams that wait for the backend's address, and of bytes that wait in the system. */
const waitingLimit = 16
const backlogLimit = 1024 * 1024

interface SessionOptions {
  readonly port: number
  readonly source: Peer
  reply(message: Buffer): void
  onEnd(): void
}

/** The datagrams of one client address, and the replies to them. */
export class DatagramSession implements ServerStream, TimerOwner {
  readonly #parts: EngineParts
  readonly #options: SessionOptions
  readonly port: number
  readonly protocol = 'udp'
  readonly tls = undefined
  readonly serverName = undefined
  readonly source: Peer
  readonly rawSource: Peer
  readonly local: Peer
  readonly startedAt = performance.now()
  readonly #timer = new Timer(this)
  #socket: Socket | undefined
  /** Datagrams that wait until the backend is known; undefined afterwards. */
  #waiting: Buffer[] | undefined = []
  #moved = 0
  #progress = 0
  #isOver = false
  receivedBytes = 0
  sentBytes = 0
  error: GatewayError | undefined
  state: unknown

  constructor(parts: EngineParts, options: SessionOptions) {
    this.#parts = parts
    this.#options = options
    this.port = options.port
    this.source = options.source
    this.rawSource = options.source
    // The address to which a datagram was sent is not known.
    this.local = { address: '', port: options.port }
    parts.datagramSessions.add(this)
    parts.streamCounters.total.udp++
    parts.streamCounters.open.udp++
  }

  begin(): void {
    this.#parts.timers.arm(this.#timer, this.#parts.streamLimits.udpIdleTimeoutMs)
    this.#parts.streamHandler.onStream(this)
  }

  connect({ host, port }: UpstreamAddress): void {
    if (this.#isOver) return
    const socket = createSocket({ type: isIPv6(host) ? 'udp6' : 'udp4' })
    this.#socket = socket
    socket.on('error', (error) => this.#failed(socket, error))
    socket.on('message', (message) => this.#onReply(message))
    // A callback would also be called for failures, instead of the event.
    socket.once('connect', () => this.#connected())
    socket.connect(port, host)
  }

  #connected(): void {
    const waiting = this.#waiting ?? []
    this.#waiting = undefined
    for (const message of waiting) this.#forward(message)
  }

  /** Called, for example, when the system reports that the backend's port is closed (RFC 1122 4.1.3.3). */
  #failed(socket: Socket, error: Error): void {
    if (this.#isOver || this.#socket !== socket) return
    const failure = new GatewayError('connect_failed', error.message, error)
    if (this.#waiting === undefined) {
      this.refuse(failure)
      return
    }
    this.#socket = undefined
    closeQuietly(socket)
    this.#parts.streamHandler.onStreamError(this, failure)
  }

  /** Called for a datagram of the client. */
  receive(message: Buffer): void {
    if (this.#isOver) return
    this.#moved++
    this.receivedBytes += message.length
    this.#parts.streamCounters.received.udp += message.length
    if (this.#waiting === undefined) this.#forward(message)
    else if (this.#waiting.length < waitingLimit) this.#waiting.push(message)
    else this.#parts.streamCounters.droppedDatagrams.backlog++
  }

  #forward(message: Buffer): void {
    const socket = this.#socket
    if (socket === undefined) return
    if (socket.getSendQueueSize() > backlogLimit) {
      this.#parts.streamCounters.droppedDatagrams.backlog++
      return
    }
    socket.send(message, (error) => {
      if (error !== null) this.#failed(socket, error)
    })
  }

  #onReply(message: Buffer): void {
    if (this.#isOver) return
    this.#moved++
    this.sentBytes += message.length
    this.#parts.streamCounters.sent.udp += message.length
    this.#options.reply(message)
  }

  refuse(error: GatewayError): void {
    this.error ??= error
    this.end()
  }

  onTimer(): void {
    if (this.#moved === this.#progress) {
      this.end()
      return
    }
    this.#progress = this.#moved
    this.#parts.timers.arm(this.#timer, this.#parts.streamLimits.udpIdleTimeoutMs)
  }

  /** Ends the session; the client's next datagram begins another one. */
  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#parts.timers.disarm(this.#timer)
    this.#parts.datagramSessions.delete(this)
    this.#parts.streamCounters.open.udp--
    const socket = this.#socket
    this.#socket = undefined
    if (socket !== undefined) closeQuietly(socket)
    this.#options.onEnd()
    this.#parts.streamHandler.onStreamDone(this)
    this.#parts.onActivityEnded()
  }
}

/** Closes a socket that may still be connecting, and ignores its later events. */
function closeQuietly(socket: Socket): void {
  socket.removeAllListeners()
  socket.on('error', () => {})
  socket.close()
}
