import { GatewayError } from '../../errors.ts'
import { Attempt } from './attempt.ts'
import type { ClientConnection } from './client-connection.ts'
import { Deadlines } from './deadlines.ts'
import type { EngineParts } from './engine-parts.ts'
import { ExchangeView } from './exchange-view.ts'
import { Mirror } from './mirror.ts'
import { writeOwnAnswer } from './own-answer.ts'
import { frameResponse, type ResponseFraming } from './response-head.ts'
import { Tunnel } from './tunnel.ts'
import type { Ending, ForwardOptions, ServerExchange, UpstreamAddress } from './types.ts'
import type { UpstreamConnection, UpstreamUser } from './upstream-connection.ts'

/**
 *             deciding -> forwarding -> answering -> relaying -> flushing -> over
 *                 \           ^  \          |  \-> tunnel --------------------^
 *                  \          '---\---------'                                 |
 *                   '--------------'-- respond -----------> flushing ---------'
 *
 * `deciding`: onRequest was told. `forwarding`: an upstream works. `answering`: onResponse or
 * onError was told. `flushing`: everything is written, the client still reads.
 */
type Phase = 'deciding' | 'forwarding' | 'answering' | 'relaying' | 'flushing' | 'tunnel' | 'over'

/** Most exchanges that are kept for later. */
const spareLimit = 1024

/** One request and its response: the data plane's view, and the way from socket to socket. */
export class HttpExchange extends ExchangeView implements ServerExchange, UpstreamUser {
  readonly #parts: EngineParts
  #phase: Phase = 'over'
  readonly #attempt: Attempt
  readonly #deadlines: Deadlines
  /** The response is complete on the upstream's side; the connection rests until the client drained. */
  #isUpstreamDone = false
  #mirrors: UpstreamAddress[] | undefined
  /** onRequest, onResponse and onError told, less the answers to them. */
  #undecided = 0
  /**
   * Counts requests. Any call outwards may end the exchange, and the object may serve the next
   * request before the call returns.
   */
  #turn = 0
  #isReadingHead = false
  #isCloseDelimited = false

  constructor(parts: EngineParts) {
    const requestSource = { resumeBody: () => this.client?.wantBody() }
    const responseSource = { resumeBody: () => this.#attempt.connection?.resumeBody() }
    super(parts.reader, requestSource, responseSource)
    this.#parts = parts
    this.#attempt = new Attempt(parts, this)
    this.#deadlines = new Deadlines(parts.timers, (error) => this.#onDeadline(error))
  }

  // --- life ---

  /** A head has been read: tells the data plane. */
  begin(client: ClientConnection): void {
    this.client = client
    this.#turn++
    this.#phase = 'deciding'
    this.#parts.activeExchanges++
    this.startedAt = this.#parts.clock.now()
    this.requestBody.start(this.request.bodyKind, Math.max(0, this.request.contentLength), true)
    this.headIsFresh = true
    this.#tell(undefined)
    this.headIsFresh = false
  }

  respond(
    status: number,
    headers: readonly (readonly [string, string])[],
    body: string | Uint8Array | undefined,
  ): void {
    this.#undecided--
    const client = this.client
    if (client === undefined || !this.#isUndecided()) return
    this.#attempt.drop()
    this.ownBytes = writeOwnAnswer(client, this, status, headers, body)
    this.hasResponse = true
    this.answeredBy = 'gateway'
    this.sentStatus = status
    this.#phase = 'relaying'
    this.#responseSent()
  }

  forward(address: UpstreamAddress, options: ForwardOptions): void {
    this.#undecided--
    if (this.client === undefined || !this.#isUndecided()) return
    if (!this.requestBody.isReplayable) {
      this.#answerError(this.error ?? new GatewayError('upstream_reset', 'the body is gone'))
      return
    }
    this.hasResponse = false
    this.#isUpstreamDone = false
    this.#phase = 'forwarding'
    this.#deadlines.begin(options)
    if (this.#mirrors !== undefined) this.#startMirrors(this.#mirrors)
    this.#attempt.start(address, options.connectTimeoutMs)
  }

  mirror(address: UpstreamAddress): void {
    this.#mirrors ??= []
    this.#mirrors.push(address)
  }

  relay(): void {
    this.#undecided--
    const client = this.client
    if (client === undefined || this.#phase !== 'answering' || !this.hasResponse) return
    const head = this.responseHead
    this.answeredBy = 'upstream'
    this.sentStatus = head.status
    if (head.status === 101) {
      this.#startTunnel(client)
      return
    }
    const framing = frameResponse(this.request, head, this.responseBody)
    this.#isCloseDelimited = framing === 'close'
    if (this.#isCloseDelimited) client.mustClose = true
    client.transport.appendText(`${head.text(framing)}${client.connectionField(this)}\r\n`)
    this.#phase = 'relaying'
    this.#sendResponseBody(client, framing)
  }

  #sendResponseBody(client: ClientConnection, framing: ResponseFraming): void {
    const body = this.responseBody
    const isEmpty = framing === 'none' || this.request.wasHead
    if (isEmpty || typeof framing === 'object') this.#dropUnfinishedUpstream()
    if (isEmpty) {
      client.transport.flush()
      this.#responseSent()
      return
    }
    const isChunked = framing === 'chunked' || (framing === 'as-is' && body.kind === 'chunked')
    body.passesTrailers = this.request.acceptsTrailers
    const turn = this.#turn
    try {
      body.flow(client.transport, isChunked, this.#isReadingHead)
    } catch (thrown) {
      this.#answerBug(thrown, turn)
      return
    }
    if (turn === this.#turn && body.sent) this.#responseSent()
  }

  // --- the upstream's side ---

  onUpstreamReady(connection: UpstreamConnection): void {
    const body = this.requestBody
    const framing = this.requestFraming
    const isChunked = this.isRequestChunked
    connection.transport.appendText(this.request.text(framing, this.upgrade))
    const turn = this.#turn
    try {
      body.flow(connection.transport, isChunked, false)
    } catch (thrown) {
      if (turn === this.#turn) this.#answerError(this.#parts.blame(thrown))
    }
  }

  onInterim(): void {
    const client = this.client
    if (client === undefined || this.request.isHttp10 || this.#phase !== 'forwarding') return
    if (this.responseHead.status === 100 && client.hasContinued) return
    client.transport.appendText(`${this.responseHead.text('none')}\r\n`)
    client.transport.flush()
  }

  onResponseHead(): void {
    this.hasResponse = true
    this.#isUpstreamDone = false
    this.requestBody.stopRecording()
    this.#phase = 'answering'
    this.#isReadingHead = true
    this.#tell(undefined)
    this.#isReadingHead = false
  }

  onReadEnd(): void {
    if (this.#phase === 'relaying') this.client?.transport.flush()
  }

  onResponseBody(): void {
    if (!this.responseBody.ended) return
    this.#isUpstreamDone = true
    if (this.responseBody.sent) this.#responseSent()
    else if (this.#phase === 'answering') this.#attempt.release()
  }

  onUpstreamFailure(connection: UpstreamConnection, error: GatewayError): void {
    if (connection !== this.#attempt.connection || this.#isUpstreamDone) return
    this.#attempt.connection = undefined
    if (this.#phase === 'tunnel') {
      this.#complete()
      return
    }
    this.responseBody.fail(error)
    if (this.#phase === 'relaying') {
      this.error = error
      this.#cut('upstream-cut')
      return
    }
    const isWaiting = this.#phase === 'forwarding'
    if (isWaiting && this.#attempt.retry(connection, error, this.isReplayable)) return
    this.#answerError(error)
  }

  onUpstreamDrain(): void {
    if (this.tunnel !== undefined) this.tunnel.upstreamDrained()
    else this.requestBody.drained()
  }

  onTunnelBytes(bytes: Buffer, start: number, end: number): void {
    this.tunnel?.fromUpstream(bytes, start, end)
  }

  onTunnelEnd(): void {
    this.tunnel?.upstreamEnded()
    this.client?.limitTunnel()
  }

  // --- the client's side ---

  /** Everything written has left. */
  onClientDrain(): void {
    if (this.#phase === 'relaying') this.responseBody.drained()
    else if (this.#phase === 'tunnel') this.tunnel?.clientDrained()
    else if (this.#phase === 'flushing') this.#complete()
  }

  /** The body of the request breaks the chunked coding. */
  onBadRequestBody(error: GatewayError): void {
    const client = this.client
    if (client === undefined) return
    client.mustClose = true
    this.requestBody.fail(error)
    this.error = error
    if (this.#phase === 'relaying') this.#cut('client-closed')
    else if (this.#phase === 'flushing') this.#complete()
    else if (this.#phase !== 'over') this.#answerError(error)
  }

  /** The client has gone, or sends nothing more while it waits. */
  onClientGone(): void {
    if (this.#phase === 'over') return
    if (this.#phase === 'tunnel') this.ending = 'complete'
    else {
      this.ending = 'client-closed'
      this.error = new GatewayError('client_closed')
    }
    this.#over()
  }

  onClientTunnelBytes(bytes: Buffer, start: number, end: number): void {
    this.tunnel?.fromClient(bytes, start, end)
  }

  onClientTunnelEnd(): void {
    this.tunnel?.clientEnded()
  }

  // --- inside ---

  #onDeadline(error: GatewayError): void {
    if (this.#phase === 'forwarding' || this.#phase === 'answering') this.#answerError(error)
    else if (this.#phase === 'relaying' || this.#phase === 'flushing') {
      this.error = error
      this.#cut('timeout')
    }
  }

  #isUndecided(): boolean {
    return this.#phase === 'deciding' || this.#phase === 'answering'
  }

  #startMirrors(to: UpstreamAddress[]): void {
    this.#mirrors = undefined
    const head = this.request.text(this.requestFraming, undefined)
    const mirror = new Mirror(this.#parts, to, head, this.isRequestChunked, this.isHead)
    if (this.requestBody.kind === 'none') mirror.onSentEnd()
    this.requestBody.tap = mirror
  }

  #startTunnel(client: ClientConnection): void {
    const upstream = this.#attempt.connection
    if (upstream === undefined) return
    const head = this.responseHead
    const protocol = head.upgrade ?? ''
    client.transport.appendText(
      `${head.text('none')}connection: upgrade\r\nupgrade: ${protocol}\r\n\r\n`,
    )
    client.transport.flush()
    this.#phase = 'tunnel'
    this.tunnel = new Tunnel(client.transport, upstream.transport)
    this.#deadlines.end()
    client.mustClose = true
    upstream.startTunnel()
    client.startTunnel()
  }

  #answerError(error: GatewayError): void {
    this.error = error
    this.#attempt.drop()
    this.responseBody.fail(error)
    this.hasResponse = false
    this.#phase = 'answering'
    this.#tell(error)
  }

  /** The data plane's turn: an error, a request or a response, by the phase. */
  #tell(error: GatewayError | undefined): void {
    const { handler } = this.#parts
    const turn = this.#turn
    this.#undecided++
    try {
      if (error !== undefined) handler.onError(this, error)
      else if (this.#phase === 'deciding') handler.onRequest(this)
      else handler.onResponse(this)
    } catch (thrown) {
      this.#answerBug(thrown, turn)
    }
  }

  /** The data plane threw: nobody else will answer. */
  #answerBug(thrown: unknown, turn: number): void {
    if (turn !== this.#turn) return
    this.error = new GatewayError('bug', undefined, thrown)
    if (this.#isUndecided())
      this.respond(500, [['content-type', 'text/plain']], this.error.row.text)
    else if (this.#phase === 'relaying') this.#cut('upstream-cut')
  }

  /** The response is written to its end. */
  #responseSent(): void {
    if (this.#phase !== 'relaying') return
    this.#phase = 'flushing'
    if (this.client?.transport.needsDrain === true) this.#attempt.lend()
    else this.#complete()
  }

  #complete(): void {
    this.ending ??= 'complete'
    this.#attempt.release()
    this.#over()
  }

  /** Part of the response has been sent: only a broken connection can say that it is not whole. */
  #cut(ending: Ending): void {
    this.ending = ending
    const client = this.client
    client?.transport.flush()
    if (this.#isCloseDelimited) client?.transport.reset()
    else client?.transport.destroy()
    this.#over()
  }

  /** Nobody will read the rest of the upstream's body. */
  #dropUnfinishedUpstream(): void {
    if (this.responseBody.ended) return
    this.#attempt.drop()
    this.responseBody.fail(new GatewayError('upstream_reset', 'the body was replaced'))
  }

  #over(): void {
    const client = this.client
    if (client === undefined) return
    this.#phase = 'over'
    this.#deadlines.end()
    this.#attempt.drop()
    this.requestBody.tap?.onAbandon()
    if (this.ending !== 'complete') this.failBodies()
    this.#parts.activeExchanges--
    this.#parts.handler.onDone(this)
    client.exchangeOver(this)
  }

  /** Ready for another request, where nobody can still hold this one. */
  recycle(): void {
    this.client = undefined
    // Whoever has not answered yet may do so late, to an exchange that then must be nobody's.
    if (this.#undecided !== 0 || this.ending !== 'complete') return
    if (this.#parts.spareExchanges.length >= spareLimit) return
    this.clear()
    this.#isUpstreamDone = false
    this.#isCloseDelimited = false
    this.#mirrors = undefined
    this.#parts.spareExchanges.push(this)
  }
}
