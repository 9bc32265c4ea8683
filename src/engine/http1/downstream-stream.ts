import type { Socket } from 'node:net'
import type { Peer } from '../../exchange/exchange.ts'
import type { DownstreamHandler, DownstreamStream } from '../contracts/downstream.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import type { FramingFields } from '../message/head-output.ts'
import type { ResponseHeadView } from '../message/response-head.ts'
import { ConnectionAddresses } from '../sockets/connection-ends.ts'
import type { Transport } from '../sockets/transport.ts'
import type { TlsChoice } from '../tls/tls-choice.ts'

/** Request body bytes that are read away so that a connection can be kept. */
export const discardLimit = 64 * 1024

/** The connection of such a stream, which reads requests from its client. */
interface StreamConnection {
  readonly port: number
  readonly tls: TlsChoice | undefined
  readonly transport: Transport
  readonly awaitsContinue: boolean
  wantBody(): void
  openTunnel(): void
  limitTunnel(): void
  exchangeOver(exchange: DownstreamHandler): void
}

/**
 * What an HTTP/1.1 connection is to the exchange that it serves: responses are written here. There is
 * one for each connection, since its requests come one after the other.
 */
export class Http1DownstreamStream implements DownstreamStream {
  readonly #parts: EngineParts
  readonly #connection: StreamConnection
  readonly #transport: Transport
  readonly framesBodies = false
  #addresses: ConnectionAddresses | undefined
  hasContinued = false
  /** The response under way is the last one. */
  mustClose = false
  /** The response has begun. */
  isAnswered = false

  constructor(parts: EngineParts, connection: StreamConnection) {
    this.#parts = parts
    this.#connection = connection
    this.#transport = connection.transport
  }

  /** Another request is served. */
  begin(mustClose: boolean): void {
    this.hasContinued = false
    this.isAnswered = false
    this.mustClose = mustClose
  }

  get port(): number {
    return this.#connection.port
  }

  get tls(): TlsChoice | undefined {
    return this.#connection.tls
  }

  get #connectionAddresses(): ConnectionAddresses {
    this.#addresses ??= new ConnectionAddresses(this.socket)
    return this.#addresses
  }

  get source(): Peer {
    return this.#connectionAddresses.source
  }

  get local(): Peer {
    return this.#connectionAddresses.local
  }

  get sink(): Transport {
    return this.#transport
  }

  get socket(): Socket {
    return this.#transport.socket
  }

  get bufferHolder(): Socket | undefined {
    return this.#transport.bufferHolder
  }

  get needsDrain(): boolean {
    return this.#transport.needsDrain
  }

  get awaitsContinue(): boolean {
    return this.#connection.awaitsContinue
  }

  wantBody(): void {
    this.#connection.wantBody()
  }

  sendContinue(): void {
    this.hasContinued = true
    this.#transport.appendText('HTTP/1.1 100 Continue\r\n\r\n')
    this.#transport.flush()
  }

  sendInterim(head: string): void {
    this.#transport.appendText(`${head}\r\n`)
    this.#transport.flush()
  }

  sendHead(head: string, exchange: DownstreamHandler): void {
    this.isAnswered = true
    this.#transport.appendText(`${head}${this.#connectionField(exchange)}\r\n`)
  }

  sendResponse(head: ResponseHeadView, framing: FramingFields, exchange: DownstreamHandler): void {
    const transport = this.#transport
    this.isAnswered = true
    transport.startWriteBuffer()
    head.writeTo(transport, framing)
    transport.appendText(this.#connectionField(exchange))
    transport.appendText('\r\n')
  }

  /**
   * The Connection field of a response that is about to be written. The connection is not kept if
   * the rest of the request would have to be read away at length, or may or may not come (a 100 was
   * not sent).
   */
  #connectionField({ request, requestSource }: DownstreamHandler): string {
    if (this.#parts.isDraining) this.mustClose = true
    if (!requestSource.ended) {
      const { remaining } = requestSource
      if (remaining !== undefined && remaining > discardLimit) this.mustClose = true
      if (this.awaitsContinue) this.mustClose = true
    }
    if (this.mustClose) return 'connection: close\r\n'
    return request.isHttp10 ? 'connection: keep-alive\r\n' : ''
  }

  startTunnel(head: string, protocol: string): Transport {
    this.#transport.appendText(`${head}connection: upgrade\r\nupgrade: ${protocol}\r\n\r\n`)
    this.#transport.flush()
    return this.#transport
  }

  openTunnel(): void {
    this.#connection.openTunnel()
  }

  limitTunnel(): void {
    this.#connection.limitTunnel()
  }

  cut(isCloseDelimited: boolean): void {
    this.#transport.flush()
    if (isCloseDelimited) this.#transport.reset()
    else this.#transport.destroy()
  }

  exchangeOver(exchange: DownstreamHandler): void {
    this.#connection.exchangeOver(exchange)
  }
}
