import type { Socket } from 'node:net'
import { type SecureContext, TLSSocket, type TLSSocketOptions } from 'node:tls'
import { GrowingBytes } from '../../../ground/base/growing-bytes.ts'
import { withoutRootDot } from '../../../ground/base/root-dot.ts'
import { socketHighWaterMark } from '../bytes/write-limits.ts'
import type { EngineLimits } from '../limits/engine-limits.ts'
import { isPeerVerified, onProtocolError } from '../node-handles/tls-socket.ts'
import { inheritSource } from '../sockets/connection-ends.ts'
import { type EngineClock, Timer, type TimerOwner, type TimerWheel } from '../time/timer-wheel.ts'
import { ClientHelloReader } from './client-hello.ts'
import type { ChooseTls, TlsChoice, TlsContexts } from './tls-choice.ts'

/** Application protocols of HTTPS listeners. */
const httpProtocols = ['h2', 'http/1.1']

/** A connection whose handshake is complete. */
export interface SecureSocket {
  readonly socket: TLSSocket
  /** The TCP socket under `socket`. */
  readonly raw: Socket
  readonly choice: TlsChoice
}

/** The parts of the engine that a handshake needs. */
interface HandshakeParts {
  readonly clock: EngineClock
  readonly timers: TimerWheel
  /** Connections whose PROXY header or TLS handshake is under way. */
  readonly handshakes: Set<{ cut(): void }>
  readonly counters: { tlsSessionsResumed: number; tlsHandshakesFailed: number }
  onActivityEnded(): void
}

/** Receives the result of a handshake. */
interface HandshakeOwner {
  /** Called when the gateway has terminated TLS. */
  onSecure(secure: SecureSocket, serverName: string | undefined, seconds: number): void
  /** Called if TLS is forwarded to the backend unread. `hello` are the bytes that have been read. */
  onPassthrough(raw: Socket, choice: TlsChoice, serverName: string | undefined, hello: Buffer): void
}

/** The fatal alert unrecognized_name (RFC 6066 3), before a version is negotiated. */
const unrecognizedName = Buffer.from([21, 3, 1, 0, 2, 2, 112])

/**
 * Handles a connection from the accepted socket to the end of its TLS handshake. Closes it if it does
 * not speak TLS, asks for an unknown name, or takes too long.
 */
export class TlsHandshake implements TimerOwner {
  readonly #parts: HandshakeParts
  readonly #choose: ChooseTls
  readonly #raw: Socket
  readonly #timer = new Timer(this)
  readonly #startedAt: number
  readonly #owner: HandshakeOwner
  #socket: TLSSocket | undefined
  /** All bytes that have been read, and the reader that parses them. */
  #hello = new GrowingBytes()
  readonly #reader = new ClientHelloReader()
  #isOver = false

  constructor(
    parts: HandshakeParts,
    limits: EngineLimits,
    choose: ChooseTls,
    raw: Socket,
    owner: HandshakeOwner,
  ) {
    this.#parts = parts
    this.#choose = choose
    this.#raw = raw
    this.#owner = owner
    this.#startedAt = parts.clock.now()
    raw.on('readable', this.#read)
    raw.on('end', this.#failed)
    raw.on('close', this.#failed)
    raw.on('error', ignore)
    parts.handshakes.add(this)
    parts.timers.arm(this.#timer, limits.handshakeTimeoutMs)
  }

  readonly #read = (): void => {
    const chunk = this.#raw.read() as Buffer | null
    if (chunk === null) return
    this.#hello.add(chunk, 0, chunk.length)
    const hello = this.#reader.push(chunk)
    if (hello === 'incomplete') return
    this.#raw.off('readable', this.#read)
    if (hello === 'malformed') {
      this.#raw.destroy()
      return
    }
    const choice = this.#choose(hello.serverName)
    if (choice === 'close') this.#raw.end(() => this.#raw.destroy())
    else if (choice === undefined) this.#raw.end(unrecognizedName, () => this.#raw.destroy())
    else if (choice.contexts === undefined) this.#pass(choice, hello.serverName)
    else this.#begin(choice, choice.contexts.choose(hello.tickets), hello.serverName)
  }

  #pass(choice: TlsChoice, serverName: string | undefined): void {
    this.#release()
    this.#owner.onPassthrough(this.#raw, choice, serverName, this.#hello.content)
  }

  #begin(choice: TlsChoice, secureContext: SecureContext, serverName: string | undefined): void {
    const raw = this.#raw
    raw.off('end', this.#failed)
    // TLS reads the buffered bytes first, and then from the handle itself.
    raw.unshift(this.#hello.content)
    this.#hello = new GrowingBytes()
    // The protocol of a stream that is forwarded unread is unknown unless it is configured.
    const alpn = choice.alpn ?? (choice.carries === 'http' ? httpProtocols : undefined)
    const options: TLSSocketOptions & { highWaterMark: number } = {
      isServer: true,
      secureContext,
      requestCert: choice.clientCertificate !== undefined,
      rejectUnauthorized: choice.clientCertificate === 'required',
      ...(alpn !== undefined && { ALPNProtocols: [...alpn] }),
      highWaterMark: socketHighWaterMark,
    }
    const socket = new TLSSocket(raw, options)
    inheritSource(socket, raw)
    this.#socket = socket
    socket.on('error', ignore)
    onProtocolError(socket, () => socket.destroy())
    socket.once('close', this.#failed)
    socket.once('secure', () => this.#secured(socket, choice, serverName))
  }

  #secured(socket: TLSSocket, choice: TlsChoice, serverName: string | undefined): void {
    const { servername: agreed } = socket as { servername?: unknown }
    // OpenSSL and our reader of the hello must have found the same server name.
    if (typeof agreed === 'string' && withoutRootDot(agreed) !== serverName) {
      socket.destroy()
      return
    }
    if (choice.clientCertificate !== undefined) {
      socket.authorized = isVouchedFor(socket, choice.contexts)
      if (!socket.authorized && choice.clientCertificate === 'required') {
        socket.destroy()
        return
      }
    }
    if (socket.isSessionReused()) this.#parts.counters.tlsSessionsResumed++
    socket.off('close', this.#failed)
    this.#release()
    const seconds = (this.#parts.clock.now() - this.#startedAt) / 1_000
    this.#owner.onSecure({ socket, raw: this.#raw, choice }, serverName, seconds)
  }

  /** Called when another owner takes the socket. */
  #release(): void {
    this.#raw.off('end', this.#failed)
    this.#raw.off('close', this.#failed)
    this.#over()
  }

  readonly #failed = (): void => {
    if (this.#isOver) return
    this.#parts.counters.tlsHandshakesFailed++
    this.#over()
    this.cut()
    this.#parts.onActivityEnded()
  }

  #over(): void {
    this.#isOver = true
    this.#parts.timers.disarm(this.#timer)
    this.#parts.handshakes.delete(this)
  }

  /** Drops the connection. */
  cut(): void {
    this.#socket?.destroy()
    this.#raw.destroy()
  }

  onTimer(): void {
    this.cut()
  }
}

/** Whether the client certificate was verified, and is still valid if the session was resumed. */
function isVouchedFor(socket: TLSSocket, contexts: TlsContexts | undefined): boolean {
  const certificate = socket.getPeerX509Certificate()
  if (certificate === undefined || !isPeerVerified(socket)) return false
  // The certificates of a resumed session may have expired since it began.
  return !socket.isSessionReused() || contexts?.stillHolds(certificate) === true
}

function ignore(): void {}
