import { GatewayError } from '../../errors.ts'
import type { Peer, RoutePlace } from '../../exchange/exchange.ts'
import type { ClientConnection } from './client-connection.ts'
import type { EngineParts } from './engine-parts.ts'
import { MessageBody } from './message-body.ts'
import { Mirror } from './mirror.ts'
import { type RequestFraming, RequestHeadView } from './request-head.ts'
import { type ResponseFraming, ResponseHeadView } from './response-head.ts'
import { httpDate } from './status-line.ts'
import { Timer, type TimerOwner } from './timer-wheel.ts'
import type { Ending, ForwardOptions, ServerExchange, UpstreamAddress } from './types.ts'
import type { UpstreamConnection, UpstreamUser } from './upstream-connection.ts'

/**
 *     idle -> deciding -> forwarding -> answering -> relaying -> flushing -> over
 *                 \           ^  \          |  \-> tunnel --------------------^
 *                  \          '---\---------'                                 |
 *                   '--------------'-- respond -----------> flushing ---------'
 *
 * `deciding`: onRequest was told. `forwarding`: an upstream works. `answering`: onResponse or
 * onError was told. `flushing`: everything is written, the client still reads.
 */
type Phase =
  | 'idle'
  | 'deciding'
  | 'forwarding'
  | 'answering'
  | 'relaying'
  | 'flushing'
  | 'tunnel'
  | 'over'

/** Request body bytes that are read away so that a connection can be kept. */
export const discardLimit = 64 * 1024

const nowhere: RoutePlace = { gateway: '', listener: '' }
const noOptions: ForwardOptions = { connectTimeoutMs: 0, attemptTimeoutMs: 0, requestTimeoutMs: 0 }

/** One request and its response: the data plane's view, and the way from socket to socket. */
export class HttpExchange implements ServerExchange, UpstreamUser, TimerOwner {
  readonly #parts: EngineParts
  readonly request = new RequestHeadView()
  readonly requestBody: MessageBody
  readonly responseHead = new ResponseHeadView()
  readonly responseBody: MessageBody
  readonly facts = new Map<string, unknown>()
  place: RoutePlace = nowhere
  state: unknown = undefined
  error: GatewayError | undefined
  ending: Ending | undefined
  answeredBy: 'gateway' | 'upstream' | 'nobody' = 'nobody'
  sentStatus = 0
  startedAt = 0
  headIsFresh = false
  #client: ClientConnection | undefined
  #phase: Phase = 'idle'
  #hasResponse = false
  #address: UpstreamAddress | undefined
  #options: ForwardOptions = noOptions
  #upstream: UpstreamConnection | undefined
  /** The one silent retry on a fresh connection has been used in this attempt. */
  #hasRetried = false
  /** The response is complete on the upstream's side; the connection rests until the client drained. */
  #isUpstreamDone = false
  #mirrors: UpstreamAddress[] | undefined
  #ownBytes = 0
  #tunnelIn = 0
  #tunnelOut = 0
  /** onRequest, onResponse and onError told, less the answers to them. */
  #undecided = 0
  #isReadingHead = false
  #isCloseDelimited = false
  readonly #requestTimer = new Timer(this)
  readonly #attemptTimer = new Timer(this)
  #hasRequestTimer = false

  constructor(parts: EngineParts) {
    this.#parts = parts
    const source = { resumeBody: () => this.#readRequest() }
    this.requestBody = new MessageBody(parts.reader, source, false)
    this.responseBody = new MessageBody(parts.reader, this, true)
  }

  // --- what the data plane reads ---

  get port(): number {
    return this.#client?.port ?? 0
  }

  get source(): Peer {
    return this.#client?.source ?? { address: '', port: 0 }
  }

  get local(): Peer {
    return this.#client?.local ?? { address: '', port: 0 }
  }

  get response(): ResponseHeadView | undefined {
    return this.#hasResponse ? this.responseHead : undefined
  }

  get requestBytes(): number {
    return this.requestBody.receivedBytes + this.#tunnelIn
  }

  get responseBytes(): number {
    return this.#ownBytes + this.responseBody.sentBytes + this.#tunnelOut
  }

  get isHead(): boolean {
    return this.request.isHead
  }

  get upgrade(): string | undefined {
    return this.request.upgrade
  }

  get isRequestSent(): boolean {
    return this.requestBody.sent
  }

  /** Whether another forward can still send the whole request. */
  get isReplayable(): boolean {
    return this.requestBody.isReplayable
  }

  get isTunnel(): boolean {
    return this.#phase === 'tunnel'
  }

  // --- life ---

  /** A head has been read: tells the data plane. */
  begin(client: ClientConnection): void {
    this.#client = client
    this.#phase = 'deciding'
    this.startedAt = this.#parts.clock.now()
    const head = this.request
    const kind = head.isChunked ? 'chunked' : head.contentLength >= 0 ? 'length' : 'none'
    this.requestBody.start(kind, Math.max(0, head.contentLength), true)
    this.responseBody.start('none', 0, false)
    this.headIsFresh = true
    this.#undecided++
    try {
      this.#parts.handler.onRequest(this)
    } catch (thrown) {
      this.#answerBug(thrown)
    }
    this.headIsFresh = false
  }

  respond(
    status: number,
    headers: readonly (readonly [string, string])[],
    body: string | Uint8Array | undefined,
  ): void {
    this.#undecided--
    const client = this.#client
    if (client === undefined || !this.#isUndecided()) return
    this.#dropUpstream()
    this.responseHead.compose(status, headers)
    const bytes = typeof body === 'string' ? Buffer.from(body) : body
    const isEmpty = status === 204 || status === 304
    let text = this.responseHead.text(isEmpty ? 'none' : { length: bytes?.length ?? 0 })
    if (!this.responseHead.fields.has('date')) text += `date: ${httpDate()}\r\n`
    if (!client.prepareClose(this.requestBody)) text += 'connection: close\r\n'
    client.transport.appendText(`${text}\r\n`)
    if (bytes !== undefined && !isEmpty && !this.isHead) {
      client.transport.appendBytes(
        Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length),
        0,
        bytes.length,
      )
      this.#ownBytes = bytes.length
    }
    client.transport.flush()
    this.#hasResponse = true
    this.answeredBy = 'gateway'
    this.sentStatus = status
    this.#flushed(client)
  }

  forward(address: UpstreamAddress, options: ForwardOptions): void {
    this.#undecided--
    if (this.#client === undefined || !this.#isUndecided()) return
    if (!this.requestBody.isReplayable) {
      this.#answerError(this.error ?? new GatewayError('upstream_reset', 'the body is gone'))
      return
    }
    this.#dropUpstream()
    this.#hasResponse = false
    this.#address = address
    this.#options = options
    this.#hasRetried = false
    this.#phase = 'forwarding'
    if (options.requestTimeoutMs > 0 && !this.#hasRequestTimer) {
      this.#hasRequestTimer = true
      this.#parts.timers.arm(this.#requestTimer, options.requestTimeoutMs)
    }
    if (options.attemptTimeoutMs > 0) {
      this.#parts.timers.arm(this.#attemptTimer, options.attemptTimeoutMs)
    }
    this.#connect(false)
  }

  mirror(address: UpstreamAddress): void {
    this.#mirrors ??= []
    this.#mirrors.push(address)
  }

  relay(): void {
    this.#undecided--
    const client = this.#client
    if (client === undefined || this.#phase !== 'answering' || !this.#hasResponse) return
    const head = this.responseHead
    this.answeredBy = 'upstream'
    this.sentStatus = head.status
    if (head.status === 101) {
      this.#startTunnel(client)
      return
    }
    const framing = this.#responseFraming()
    if (framing === 'close') client.mustClose = true
    let text = head.text(framing)
    if (!client.prepareClose(this.requestBody)) text += 'connection: close\r\n'
    client.transport.appendText(`${text}\r\n`)
    this.#phase = 'relaying'
    this.#isCloseDelimited = framing === 'close'
    const body = this.responseBody
    body.passesTrailers = this.request.acceptsTrailers
    const isChunked = framing === 'chunked' || (framing === 'as-is' && head.isChunked)
    if (typeof framing === 'object') this.#dropUnfinishedUpstream()
    body.flow(client.transport, isChunked && !this.#isBodyless(), this.#isReadingHead)
    if (body.sent) this.#responseSent()
  }

  // --- the upstream's side ---

  resumeBody(): void {
    this.#upstream?.resumeBody()
  }

  onUpstreamReady(connection: UpstreamConnection): void {
    const body = this.requestBody
    const framing: RequestFraming =
      body.kind === 'none' && body.framing === 'chunked' ? 'as-is' : body.framing
    const isChunked = framing === 'chunked' || (framing === 'as-is' && this.request.isChunked)
    const text = this.request.text(framing, this.upgrade)
    connection.transport.appendText(text)
    if (this.#mirrors !== undefined) this.#startMirrors(this.#mirrors, text, isChunked)
    body.flow(connection.transport, isChunked, false)
  }

  onInterim(): void {
    const client = this.#client
    if (client === undefined || this.request.isHttp10 || this.#phase !== 'forwarding') return
    if (this.responseHead.status === 100 && client.hasContinued) return
    client.transport.appendText(`${this.responseHead.text('none')}\r\n`)
    client.transport.flush()
  }

  onResponseHead(): void {
    this.#hasResponse = true
    this.#isUpstreamDone = false
    this.requestBody.stopRecording()
    this.#phase = 'answering'
    this.#undecided++
    this.#isReadingHead = true
    try {
      this.#parts.handler.onResponse(this)
    } catch (thrown) {
      this.#answerBug(thrown)
    }
    this.#isReadingHead = false
  }

  onReadEnd(): void {
    if (this.#phase === 'relaying') this.#client?.transport.flush()
  }

  onResponseBody(): void {
    if (!this.responseBody.ended) return
    this.#isUpstreamDone = true
    if (this.responseBody.sent) this.#responseSent()
    else if (this.#phase === 'answering') this.#releaseUpstream()
  }

  onUpstreamFailure(connection: UpstreamConnection, error: GatewayError): void {
    if (connection !== this.#upstream || this.#isUpstreamDone) return
    this.#upstream = undefined
    if (this.#phase === 'tunnel') {
      this.#complete()
      return
    }
    this.responseBody.fail(error)
    if (this.#phase === 'relaying') {
      this.error = error
      this.#cut('upstream-cut')
    } else if (this.#phase === 'forwarding' && this.#mayRetry(connection, error)) {
      this.#hasRetried = true
      this.#connect(true)
    } else this.#answerError(error)
  }

  onUpstreamDrain(): void {
    if (this.#phase === 'tunnel') this.#client?.transport.resume()
    else this.requestBody.drained()
  }

  onTunnelBytes(bytes: Buffer, start: number, end: number): void {
    const client = this.#client
    if (client === undefined) return
    this.#tunnelOut += end - start
    client.transport.appendBytes(bytes, start, end)
    if (!client.transport.flush()) this.#upstream?.transport.pause()
  }

  onTunnelEnd(): void {
    this.#client?.transport.end()
  }

  // --- the client's side ---

  /** Everything written has left. */
  onClientDrain(): void {
    if (this.#phase === 'relaying') this.responseBody.drained()
    else if (this.#phase === 'tunnel') this.#upstream?.transport.resume()
    else if (this.#phase === 'flushing') this.#complete()
  }

  /** The body of the request breaks the chunked coding. */
  onBadRequestBody(error: GatewayError): void {
    const client = this.#client
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

  tunnelFromClient(bytes: Buffer, start: number, end: number): void {
    const upstream = this.#upstream
    if (upstream === undefined) return
    this.#tunnelIn += end - start
    upstream.transport.appendBytes(bytes, start, end)
    if (!upstream.transport.flush()) this.#client?.transport.pause()
  }

  tunnelClientEnd(): void {
    this.#upstream?.transport.end()
  }

  onTimer(timer: Timer): void {
    const code = timer === this.#requestTimer ? 'route_timeout' : 'upstream_timeout'
    const error = new GatewayError(code)
    if (this.#phase === 'forwarding' || this.#phase === 'answering') this.#answerError(error)
    else if (this.#phase === 'relaying' || this.#phase === 'flushing') {
      this.error = error
      this.#cut('timeout')
    }
  }

  // --- inside ---

  #isUndecided(): boolean {
    return this.#phase === 'deciding' || this.#phase === 'answering'
  }

  #isBodyless(): boolean {
    const status = this.responseHead.status
    return this.isHead || status === 204 || status === 304
  }

  #responseFraming(): ResponseFraming {
    const body = this.responseBody
    if (this.#isBodyless()) return this.responseHead.status === 204 ? 'none' : 'as-is'
    const wanted = body.framing
    if (typeof wanted === 'object') return wanted
    const isKnown = wanted === 'as-is' && body.kind === 'length'
    if (isKnown || (wanted === 'as-is' && body.kind === 'none')) return 'as-is'
    return this.request.isHttp10 ? 'close' : 'chunked'
  }

  #readRequest(): void {
    this.#client?.wantBody()
  }

  #connect(isFresh: boolean): void {
    const address = this.#address
    if (address === undefined) return
    this.requestBody.rewind()
    const timeout = this.#options.connectTimeoutMs
    const connection = this.#parts.pools.acquire(address, this, timeout, isFresh)
    this.#upstream = connection
    this.#isUpstreamDone = false
    if (connection.isIdle) connection.use(this)
  }

  /** RFC 9110 9.2.2, RFC 9112 9.3.1: an idle connection may close while we write to it. */
  #mayRetry(connection: UpstreamConnection, error: GatewayError): boolean {
    return (
      error.code === 'upstream_reset' &&
      connection.served > 0 &&
      !connection.hasAnswered &&
      !this.#hasRetried &&
      this.requestBody.isReplayable
    )
  }

  #startMirrors(addresses: UpstreamAddress[], head: string, isChunked: boolean): void {
    this.#mirrors = undefined
    this.requestBody.tap = new Mirror(this.#parts, addresses, head, isChunked, this.isHead)
  }

  #startTunnel(client: ClientConnection): void {
    const upstream = this.#upstream
    if (upstream === undefined) return
    const head = this.responseHead
    const protocol = head.upgrade ?? ''
    client.transport.appendText(
      `${head.text('none')}connection: upgrade\r\nupgrade: ${protocol}\r\n\r\n`,
    )
    client.transport.flush()
    this.#phase = 'tunnel'
    this.#parts.timers.disarm(this.#requestTimer)
    this.#parts.timers.disarm(this.#attemptTimer)
    client.mustClose = true
    upstream.startTunnel()
    client.startTunnel()
  }

  #answerError(error: GatewayError): void {
    this.error = error
    this.#dropUpstream()
    this.#hasResponse = false
    this.#phase = 'answering'
    this.#undecided++
    try {
      this.#parts.handler.onError(this, error)
    } catch (thrown) {
      this.#answerBug(thrown)
    }
  }

  /** The data plane threw: nobody else will answer. */
  #answerBug(thrown: unknown): void {
    this.error = new GatewayError('bug', undefined, thrown)
    if (this.#isUndecided())
      this.respond(500, [['content-type', 'text/plain']], this.error.row.text)
    else if (this.#phase === 'relaying') this.#cut('upstream-cut')
  }

  #responseSent(): void {
    const client = this.#client
    if (client !== undefined) this.#flushed(client)
  }

  #flushed(client: ClientConnection): void {
    this.#phase = 'flushing'
    const upstream = this.#upstream
    if (!client.transport.needsDrain) this.#complete()
    else if (upstream !== undefined) {
      // The client may still be reading from this connection's buffer.
      upstream.isLent = true
      upstream.transport.pause()
    }
  }

  #complete(): void {
    this.ending ??= 'complete'
    this.#releaseUpstream()
    this.#over()
  }

  /** Part of the response has been sent: only a broken connection can say that it is not whole. */
  #cut(ending: Ending): void {
    this.ending = ending
    const client = this.#client
    client?.transport.flush()
    if (this.#isCloseDelimited) client?.transport.reset()
    else client?.transport.destroy()
    this.#over()
  }

  #releaseUpstream(): void {
    const upstream = this.#upstream
    if (upstream === undefined) return
    this.#upstream = undefined
    upstream.isLent = false
    upstream.release()
  }

  #dropUpstream(): void {
    const upstream = this.#upstream
    if (upstream === undefined) return
    this.#upstream = undefined
    upstream.close()
  }

  /** Nobody will read the rest of the upstream's body. */
  #dropUnfinishedUpstream(): void {
    if (this.responseBody.ended) return
    this.#dropUpstream()
    this.responseBody.fail(new GatewayError('upstream_reset', 'the body was replaced'))
  }

  #over(): void {
    const client = this.#client
    if (client === undefined) return
    this.#phase = 'over'
    this.#parts.timers.disarm(this.#requestTimer)
    this.#parts.timers.disarm(this.#attemptTimer)
    this.#dropUpstream()
    this.requestBody.tap?.onAbandon()
    const gone = this.error ?? new GatewayError('client_closed')
    if (!this.requestBody.ended && this.ending !== 'complete') this.requestBody.fail(gone)
    this.responseBody.fail(gone)
    this.#parts.handler.onDone(this)
    client.exchangeOver(this)
  }

  /** Ready for another request, where nobody can still hold this one. */
  recycle(): void {
    const isHeld = this.#undecided !== 0 || this.ending !== 'complete'
    this.#client = undefined
    if (isHeld) return
    this.#phase = 'idle'
    this.#hasResponse = false
    this.#address = undefined
    this.#hasRetried = false
    this.#isUpstreamDone = false
    this.#hasRequestTimer = false
    this.#isCloseDelimited = false
    this.#mirrors = undefined
    this.#ownBytes = 0
    this.#tunnelIn = 0
    this.#tunnelOut = 0
    this.state = undefined
    this.place = nowhere
    this.error = undefined
    this.ending = undefined
    this.answeredBy = 'nobody'
    this.sentStatus = 0
    if (this.facts.size > 0) this.facts.clear()
    this.#parts.spareExchanges.push(this)
  }
}
