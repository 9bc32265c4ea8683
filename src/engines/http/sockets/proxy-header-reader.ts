import type { Socket } from 'node:net'
import { GrowingBytes } from '../../../ground/base/growing-bytes.ts'
import type { ProxyProtocolSettings } from '../../../ground/exchange/connection.ts'
import type { EngineLimits } from '../limits/engine-limits.ts'
import { Timer, type TimerOwner, type TimerWheel } from '../time/timer-wheel.ts'
import { announceSource } from './connection-ends.ts'
import { readProxyHeader } from './proxy-protocol.ts'

interface ReaderParts {
  readonly timers: TimerWheel
  /** Connections whose PROXY header or TLS handshake is under way. */
  readonly handshakes: Set<{ cut(): void }>
  readonly counters: { proxyHeadersRefused: number }
}

/**
 * Time to wait for an optional header. A connection that has sent less than a signature by then has no header; its
 * client may wait for the server to send first. The specification of the protocol asks for at least 3 s, because the first packet may be lost.
 */
const optionalHeaderMs = 3_000
/** Size of the signature of version 2, which is longer than that of version 1. */
const signatureBytes = 12

/**
 * Reads the PROXY header of a connection from a load balancer. Unless the header is optional, a connection without
 * one is dropped, because its client would be unknown.
 */
export class ProxyHeaderReader implements TimerOwner {
  readonly #parts: ReaderParts
  readonly #settings: ProxyProtocolSettings
  readonly #socket: Socket
  readonly #timer = new Timer(this)
  readonly #onRead: () => void
  readonly #bytes = new GrowingBytes()
  #isOver = false

  constructor(
    parts: ReaderParts,
    limits: EngineLimits,
    { socket, settings }: { readonly socket: Socket; readonly settings: ProxyProtocolSettings },
    onRead: () => void,
  ) {
    this.#parts = parts
    this.#settings = settings
    this.#socket = socket
    this.#onRead = onRead
    socket.on('readable', this.#read)
    socket.on('end', this.#ended)
    socket.on('close', this.#failed)
    socket.on('error', ignore)
    parts.handshakes.add(this)
    parts.timers.arm(this.#timer, settings.isOptional ? optionalHeaderMs : limits.headTimeoutMs)
  }

  readonly #read = (): void => {
    const chunk = this.#socket.read() as Buffer | null
    if (chunk === null) return
    this.#bytes.add(chunk, 0, chunk.length)
    const header = readProxyHeader(this.#bytes.content)
    if (header === 'incomplete') return
    if (header === 'absent' && this.#settings.isOptional) {
      this.#pass(0)
      return
    }
    if (typeof header === 'string' || !this.#settings.versions.includes(header.version)) {
      this.#failed()
      return
    }
    const { length, source, version, tlvs } = header
    announceSource(this.#socket, source, { version, tlvs })
    this.#pass(length)
  }

  /** Whether the client has not begun a header, and needs to send none. */
  get #mayHaveNone(): boolean {
    return this.#settings.isOptional && this.#bytes.length < signatureBytes
  }

  readonly #ended = (): void => {
    if (this.#mayHaveNone) this.#pass(0)
    else this.#failed()
  }

  /** Hands the connection on with the bytes after the header. */
  #pass(headerLength: number): void {
    this.#over()
    const rest = this.#bytes.content.subarray(headerLength)
    if (rest.length > 0) this.#socket.unshift(rest)
    this.#onRead()
  }

  readonly #failed = (): void => {
    if (this.#isOver) return
    this.#parts.counters.proxyHeadersRefused++
    this.#over()
    this.cut()
  }

  #over(): void {
    this.#isOver = true
    this.#socket.off('readable', this.#read)
    this.#socket.off('end', this.#ended)
    this.#socket.off('close', this.#failed)
    this.#parts.timers.disarm(this.#timer)
    this.#parts.handshakes.delete(this)
  }

  /** Drops the connection. */
  cut(): void {
    this.#socket.resetAndDestroy()
  }

  onTimer(): void {
    this.#ended()
  }
}

function ignore(): void {}
