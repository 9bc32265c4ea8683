import type { Socket } from 'node:net'
import type { ClientConnection } from '../contracts/connections.ts'
import type { DownstreamHandler, DownstreamStream } from '../contracts/downstream.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import type { FramingFields } from '../message/head-output.ts'
import type { ResponseHeadView } from '../message/response-head.ts'
import type { Transport } from '../sockets/transport.ts'

/** Maximum number of bytes of a request body that are read and dropped to keep a connection. */
export const discardLimit = 64 * 1024

/** The connection of an HTTP/1.1 stream, which reads the requests. */
interface Http1Connection extends ClientConnection {
  readonly awaitsContinue: boolean
  wantBody(): void
  openTunnel(): void
  limitTunnel(): void
  exchangeOver(exchange: DownstreamHandler): void
}

/**
 * Writes the responses of an HTTP/1.1 connection, for the exchange that it serves. There is one for each
 * connection, because its requests come one after the other.
 */
export class Http1DownstreamStream implements DownstreamStream {
  readonly #parts: EngineParts
  readonly connection: Http1Connection
  readonly #transport: Transport
  readonly framesBodies = false
  hasContinued = false
  /** Whether the connection closes after the current response. */
  mustClose = false
  /** Whether the response has begun. */
  isAnswered = false
  /** Number of writes on the connection before the response; -1 if it cannot be taken back. */
  #writesBefore = -1
  /** Whether earlier responses waited for the client when the response began. */
  #followsUnsent = false

  constructor(parts: EngineParts, connection: Http1Connection) {
    this.#parts = parts
    this.connection = connection
    this.#transport = connection.transport
  }

  /** Called when another request is served. */
  begin(mustClose: boolean): void {
    this.hasContinued = false
    this.isAnswered = false
    this.mustClose = mustClose
  }

  get sink(): Transport {
    return this.#transport
  }

  get bufferHolder(): Socket | undefined {
    return this.#transport.bufferHolder
  }

  get needsDrain(): boolean {
    return this.#transport.needsDrain
  }

  get awaitsContinue(): boolean {
    return this.connection.awaitsContinue
  }

  wantBody(): void {
    this.connection.wantBody()
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

  sendResponse(head: ResponseHeadView, framing: FramingFields, exchange: DownstreamHandler): void {
    const transport = this.#transport
    this.isAnswered = true
    this.#writesBefore = transport.hasUnflushed ? -1 : transport.writes
    this.#followsUnsent = transport.backlog > 0
    transport.startWriteBuffer()
    head.writeTo(transport, framing)
    transport.appendText(this.#connectionField(exchange))
    transport.appendText('\r\n')
  }

  takeBack(): boolean {
    if (!this.isAnswered || this.#transport.writes !== this.#writesBefore) return false
    this.#transport.dropUnflushed()
    this.isAnswered = false
    return true
  }

  /**
   * Returns the Connection field of a response that is about to be written. The connection is closed
   * after it if much of the request is still to come, or if the rest may never come (no 100 was sent).
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

  startTunnel(head: string, protocol: string | undefined): Transport {
    const upgrade = protocol === undefined ? '' : `connection: upgrade\r\nupgrade: ${protocol}\r\n`
    this.#transport.appendText(`${head}${upgrade}\r\n`)
    this.#transport.flush()
    return this.#transport
  }

  openTunnel(): void {
    this.connection.openTunnel()
  }

  limitTunnel(): void {
    this.connection.limitTunnel()
  }

  cut(isRaw: boolean): void {
    this.#transport.flush()
    if (isRaw) this.#transport.reset()
    // The client still gets the earlier responses, and the end of the connection shows that this one is cut off.
    else if (this.#followsUnsent) this.mustClose = true
    else this.#transport.destroy()
  }

  exchangeOver(exchange: DownstreamHandler): void {
    this.connection.exchangeOver(exchange)
  }
}
