import type { Socket } from 'node:net'
import { type SecureContext, TLSSocket, type TLSSocketOptions } from 'node:tls'
import type { EngineParts } from './engine-parts.ts'
import { Timer, type TimerOwner } from './timer-wheel.ts'
import { createListenerContext } from './tls-context.ts'
import { socketHighWaterMark } from './transport.ts'
import type { ChooseTls, EngineLimits, TlsChoice } from './types.ts'

export interface SecureSocket {
  readonly socket: TLSSocket
  /** The TCP socket below. */
  readonly raw: Socket
  readonly choice: TlsChoice
}

type OnSecure = (secure: SecureSocket, seconds: number) => void

/** Where no certificate is to be shown; every handshake with it fails. */
let nobody: SecureContext | undefined

/**
 * A connection before its first request: from the accepted socket to the end of the TLS handshake.
 * What is not TLS, asks for a name that nobody has, or takes too long is closed.
 */
export class TlsHandshake implements TimerOwner {
  readonly #parts: EngineParts
  readonly #choose: ChooseTls
  readonly #raw: Socket
  readonly #socket: TLSSocket
  readonly #timer = new Timer(this)
  readonly #startedAt: number
  readonly #onSecure: OnSecure

  constructor(
    parts: EngineParts,
    limits: EngineLimits,
    choose: ChooseTls,
    raw: Socket,
    onSecure: OnSecure,
  ) {
    this.#parts = parts
    this.#choose = choose
    this.#raw = raw
    this.#onSecure = onSecure
    this.#startedAt = parts.clock.now()
    nobody ??= createListenerContext([])
    const options: TLSSocketOptions & { highWaterMark: number } = {
      isServer: true,
      // Used where the client names no server, and for protocol versions in any case.
      secureContext: choose(undefined)?.context ?? nobody,
      SNICallback: (name, answer) => this.#select(name, answer),
      ALPNProtocols: ['http/1.1'],
      highWaterMark: socketHighWaterMark,
    }
    this.#socket = new TLSSocket(raw, options)
    this.#socket.once('secure', this.#secured)
    this.#socket.once('close', this.#failed)
    this.#socket.on('error', ignore)
    // Errors of the protocol come here only, unless a tls.Server has made the socket.
    this.#socket.on('_tlsError', () => this.#socket.destroy())
    raw.on('error', ignore)
    parts.handshakes.add(this)
    parts.timers.arm(this.#timer, limits.handshakeTimeoutMs)
  }

  #select(name: string, answer: (error: Error | null, context?: SecureContext) => void): void {
    const choice = this.#choose(name)
    if (choice === undefined) answer(new Error('no listener has this name'))
    else answer(null, choice.context)
  }

  readonly #secured = (): void => {
    const socket = this.#socket
    // Looked up again: a resumed session did not ask for a certificate.
    const name = (socket as { servername?: string | false | null }).servername
    const choice = this.#choose(typeof name === 'string' ? name : undefined)
    if (choice === undefined) {
      socket.destroy()
      return
    }
    socket.off('close', this.#failed)
    this.#over()
    const seconds = (this.#parts.clock.now() - this.#startedAt) / 1_000
    this.#onSecure({ socket, raw: this.#raw, choice }, seconds)
  }

  readonly #failed = (): void => {
    this.#parts.counters.tlsHandshakesFailed++
    this.#over()
  }

  #over(): void {
    this.#parts.timers.disarm(this.#timer)
    this.#parts.handshakes.delete(this)
  }

  /** Drops the connection. */
  cut(): void {
    this.#socket.destroy()
    this.#raw.destroy()
  }

  onTimer(): void {
    this.cut()
  }
}

function ignore(): void {}
