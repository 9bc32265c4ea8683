import type { OpenConnection } from '../contracts/connections.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import type { Transport, TransportOwner } from '../sockets/transport.ts'
import { Timer, type TimerOwner } from '../time/timer-wheel.ts'
import type { TlsChoice } from '../tls/tls-choice.ts'

/** How long a client that has read everything may be silent before its connection is dropped. */
const silenceMs = 2_000
/** How long a client may continue to send a request that got its response early. */
const longestMs = 30_000

/**
 * Closes a client connection after everything was written. What still arrives is read and dropped (RFC
 * 9112 9.6): a connection that is closed while bytes arrive is reset, and the client could lose a
 * response that it has not read yet.
 */
export class LingeringClose implements OpenConnection, TransportOwner, TimerOwner {
  readonly port: number
  readonly tls: TlsChoice | undefined
  readonly transport: Transport
  readonly #parts: EngineParts
  readonly #timer = new Timer(this)
  #hasRead = false
  #leftMs = longestMs
  /** Milliseconds in which written bytes have waited for the client. */
  #unsentMs = 0

  /** Takes over a connection, which still counts as open. */
  constructor(
    parts: EngineParts,
    { port, tls, transport }: Pick<OpenConnection, 'port' | 'tls' | 'transport'>,
  ) {
    this.#parts = parts
    this.port = port
    this.tls = tls
    this.transport = transport
    transport.owner = this
    parts.connections.add(this)
    transport.end()
    transport.resume()
    parts.timers.arm(this.#timer, silenceMs)
  }

  onBytes(): void {
    this.#hasRead = true
  }

  onTimer(): void {
    if (this.#mayBeRead()) {
      this.#parts.timers.arm(this.#timer, silenceMs)
      return
    }
    this.#leftMs -= silenceMs
    if (!this.#hasRead || this.#leftMs <= 0) {
      this.abort()
      return
    }
    this.#hasRead = false
    this.#parts.timers.arm(this.#timer, silenceMs)
  }

  /** Whether the client still has to read responses, and has time for it. Its silence counts only afterwards. */
  #mayBeRead(): boolean {
    if (this.transport.backlog === 0) return false
    this.#unsentMs += silenceMs
    if (this.#unsentMs >= this.#parts.limits.stallTimeoutMs) return false
    this.#hasRead = true
    return true
  }

  onEnd(): void {
    this.abort()
  }

  onClose(): void {
    this.abort()
  }

  onDrain(): void {}

  announceEnd(): void {}

  closeSoon(): void {}

  abort(): void {
    if (!this.#parts.connections.delete(this)) return
    if (!this.transport.closed) this.transport.destroy()
    this.#parts.timers.disarm(this.#timer)
    this.#parts.counters.connectionsOpen--
    this.#parts.onActivityEnded()
  }
}
