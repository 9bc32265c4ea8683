import { GatewayError } from '../../../ground/errors/index.ts'
import type { BufferedBody, RespondVerdict } from '../../../ground/exchange/exchange.ts'
import type { BodyKind } from '../bytes/body-kind.ts'
import type { DownstreamHandler, DownstreamStream } from '../contracts/downstream.ts'
import type { EngineParts } from '../contracts/engine-parts.ts'
import type {
  Ending,
  ForwardOptions,
  ResponseStream,
  ServerExchange,
} from '../contracts/requests.ts'
import type { UpstreamHandler, UpstreamStream } from '../contracts/upstream.ts'
import type { UpstreamAddress } from '../sockets/upstream-address.ts'
import { Attempt } from '../upstream/attempt.ts'
import { Deadlines } from './deadlines.ts'
import type { ExchangePhase } from './exchange-phase.ts'
import type { ExchangePool } from './exchange-pool.ts'
import { ExchangeView } from './exchange-view.ts'
import { beginOwnStream, OwnStream, writeOwnResponse } from './own-response.ts'
import { RequestUpload } from './request-upload.ts'

/** One request and its response: the view of the data plane, and the transfer from socket to socket. */
export class HttpExchange
  extends ExchangeView
  implements ServerExchange, DownstreamHandler, UpstreamHandler
{
  readonly #parts: EngineParts
  readonly #pool: ExchangePool
  #phase: ExchangePhase = 'over'
  readonly #attempt: Attempt
  readonly #deadlines: Deadlines
  readonly #upload: RequestUpload
  /** Number of calls of onRequest, onResponse and onError that the data plane has not answered. */
  #openDecisions = 0
  #isReadingHead = false

  constructor(parts: EngineParts, pool: ExchangePool) {
    const requestSource = { resumeBody: () => this.client?.wantBody() }
    const responseSource = {
      resumeBody: () =>
        this.ownStream ? this.ownStream.onDrain?.() : this.#attempt.stream?.resumeBody(),
    }
    super(parts, requestSource, responseSource)
    this.#parts = parts
    this.#pool = pool
    this.#attempt = new Attempt(parts, this)
    this.#upload = new RequestUpload(parts.timers, this)
    this.#deadlines = new Deadlines(parts.timers, (error) => this.stop(error, 'timeout'))
  }

  /** Called when a head has been read; notifies the data plane. */
  begin(client: DownstreamStream, body: BodyKind): void {
    this.serve(client)
    this.generation++
    this.#phase = 'deciding'
    this.#parts.activeExchanges++
    this.startedAt = this.#parts.clock.now()
    this.requestSource.start(body, this.request.contentLength, true)
    this.headIsFresh = true
    this.#notify(undefined)
    this.headIsFresh = false
    this.request.detach()
  }

  respond(
    status: number,
    headers: readonly (readonly [string, string])[],
    body: RespondVerdict['body'],
  ): void {
    const client = this.#takeDecision()
    if (client === undefined) return
    this.ownBytes = writeOwnResponse(client, this, status, headers, body)
    this.markOwnResponse()
    this.#phase = 'relaying'
    this.#responseSent()
  }

  respondStream(
    status: number,
    headers: readonly (readonly [string, string])[],
  ): ResponseStream | undefined {
    const client = this.#takeDecision()
    if (client === undefined) return undefined
    this.framing = beginOwnStream(client, this, status, headers)
    const stream = new OwnStream(this.responseSource, () => this.onResponseBody())
    this.ownStream = stream
    this.markOwnResponse()
    this.#phase = 'relaying'
    this.#sendResponseBody(client)
    return stream
  }

  #takeDecision(): DownstreamStream | undefined {
    this.#openDecisions--
    if (this.client === undefined || !this.#isUndecided()) return undefined
    this.#deadlines.endWait()
    this.#attempt.drop()
    return this.client
  }

  forward(address: UpstreamAddress, options: ForwardOptions): void {
    this.#openDecisions--
    if (this.client === undefined || !this.#isUndecided()) return
    if (!this.requestBody.isReplayable) {
      this.#reportError(this.error ?? new GatewayError('upstream_reset', 'the body is gone'))
      return
    }
    this.dropForbiddenContent()
    this.hasResponse = false
    this.isUpstreamDone = false
    this.#phase = 'forwarding'
    this.#upload.stop()
    this.#deadlines.begin(options)
    this.tunnelOptions = options.tunnel
    this.startMirrors(this.#parts)
    const refused = this.#attempt.start(address, options)
    if (refused !== undefined) this.#reportError(refused)
  }

  relay(): void {
    this.#openDecisions--
    const client = this.client
    if (client === undefined || this.#phase !== 'responding' || !this.hasResponse) return
    if (!this.#isReadingHead && !this.responseSource.ended && this.#isLate()) return
    // Up to this point another attempt could still be made.
    this.#deadlines.endWait()
    this.requestBody.stopRecording()
    const head = this.responseHead
    this.framing = this.frame(client)
    this.respondedBy = 'upstream'
    this.sentStatus = head.status
    if (this.opensTunnel(head.status)) {
      this.#startTunnel(client)
      return
    }
    client.sendResponse(head, this.framing.fields, this)
    this.#phase = 'relaying'
    const { generation } = this
    this.#sendResponseBody(client)
    if (generation === this.generation && this.#phase === 'relaying')
      this.#upload.responded(head.status)
  }

  #sendResponseBody(client: DownstreamStream): void {
    const body = this.responseBody
    const { fields, hasContent } = this.framing
    if (!hasContent || typeof fields === 'number') this.#dropUnfinishedUpstream()
    if (!hasContent) {
      client.sink.endBody('')
      client.sink.flush()
      this.#responseSent()
      return
    }
    body.passesTrailers = client.framesBodies || this.request.acceptsTrailers
    const generation = this.generation
    try {
      const isCoded = fields === 'chunked' && !client.framesBodies
      body.flow(client.sink, isCoded, this.#isReadingHead && this.ownStream === undefined)
    } catch (thrown) {
      this.#respondToBug(thrown, generation)
      return
    }
    if (generation === this.generation && body.sent) this.#responseSent()
  }

  onUpstreamReady(stream: UpstreamStream): void {
    this.#upload.start(stream)
  }

  onUploadFailed(thrown: unknown): void {
    this.#reportError(this.#parts.toError(thrown))
  }

  onUnaskedBody(): void {
    this.#upload.proceed()
  }

  onAlternateAddress(address: UpstreamAddress): void {
    this.#attempt.onAlternateAddress(address)
    this.#parts.handler.onAlternateAddress?.(this, address)
  }

  onInterim(): void {
    const client = this.client
    if (client === undefined || this.request.isHttp10 || this.#phase !== 'forwarding') return
    if (this.responseHead.status === 100 && (this.#upload.proceed() || client.hasContinued)) return
    client.sendInterim(this.responseHead.text('none'))
  }

  onResponseHead(): void {
    if (this.#isLate()) return
    this.hasResponse = true
    this.isUpstreamDone = false
    this.#phase = 'responding'
    this.#deadlines.noteRead()
    this.#isReadingHead = true
    this.#notify(undefined)
    this.#isReadingHead = false
  }

  onReadEnd(): void {
    if (this.#phase === 'relaying') this.client?.sink.flush()
    else if (this.#phase === 'responding') this.#deadlines.noteRead()
  }

  onResponseBody(): void {
    this.isUpstreamDone = this.responseSource.ended
    if (this.responseBody.sent) this.#responseSent()
    else if (this.isUpstreamDone && this.#phase === 'responding') this.#attempt.release()
    const whole = this.#phase === 'responding' ? this.takeWholeResponse() : undefined
    if (whole !== undefined) this.#notify(undefined, whole)
  }

  onUpstreamFailure(stream: UpstreamStream, error: GatewayError): void {
    if (stream !== this.#attempt.stream || this.isUpstreamDone) return
    this.#attempt.stream = undefined
    this.#upload.stop()
    if (this.#phase === 'tunnel' && stream.wasReset !== true) {
      // A slow client may not have received everything yet.
      this.#phase = 'flushing'
      if (this.client?.needsDrain !== true) this.#complete()
      return
    }
    this.responseSource.failAll(error)
    if (this.#phase === 'relaying' || this.#phase === 'tunnel') this.stop(error, 'upstream-cut')
    else if (this.#phase !== 'forwarding' || !this.#attempt.retry(stream, error))
      this.#reportError(error)
  }

  onClientDrain(): void {
    if (this.#phase === 'relaying') this.responseBody.drained()
    else if (this.#phase === 'tunnel') this.tunnel?.clientDrained()
    else if (this.#phase === 'flushing') this.#complete()
  }

  /** Called when the body of the request violates the chunked coding. */
  onBadRequestBody(error: GatewayError): void {
    const client = this.client
    if (client === undefined) return
    client.mustClose = true
    this.requestSource.failAll(error)
    this.error = error
    if (this.#phase === 'relaying' && !this.takeBackResponse(error)) this.#cut('client-closed')
    else if (this.#phase === 'flushing') this.#complete()
    else if (this.#phase !== 'over') this.#reportError(error)
  }

  /** Called when the client is gone, or sends nothing more although it should. */
  onClientGone(error?: GatewayError): void {
    if (this.#phase === 'over') return
    if (this.#phase === 'tunnel' && error === undefined) this.ending = 'complete'
    else {
      this.ending = 'client-closed'
      this.error = error ?? new GatewayError('client_closed')
    }
    this.#over()
  }

  onReturned(): void {
    if (this.#phase === 'relaying' && this.responseBody.sent) this.#responseSent()
  }

  onReturnFailed(error: GatewayError): void {
    if (this.#phase === 'deciding') this.#reportError(error)
    else this.stop(error, 'upstream-cut')
  }

  protected stop(error: GatewayError, ending: Ending): void {
    if (this.#phase === 'forwarding' || this.#phase === 'responding') this.#reportError(error)
    else if (this.#phase === 'relaying' || this.#phase === 'flushing') this.#breakOff(error, ending)
    else if (this.#phase === 'tunnel') this.#cut(ending, error)
  }

  /** Responds with an error if a deadline has passed. Otherwise returns false. */
  #isLate(): boolean {
    const error = this.#deadlines.takePassed()
    if (error !== undefined) this.#reportError(error)
    return error !== undefined
  }

  #isUndecided(): boolean {
    return this.#phase === 'deciding' || this.#phase === 'responding'
  }

  #startTunnel(client: DownstreamStream): void {
    const upstream = this.#attempt.stream
    if (upstream === undefined) return
    this.#phase = 'tunnel'
    this.#deadlines.beginTunnel(this.tunnelOptions, this)
    this.startTunnel(client, upstream)
  }

  #reportError(error: GatewayError): void {
    this.error = error
    this.#deadlines.endWait()
    this.#upload.stop()
    this.#attempt.drop()
    this.closeOwnStream()
    this.dropResponse(error)
    this.#phase = 'responding'
    this.#notify(error)
  }

  /** Calls the data plane: onError if there is an error, otherwise the method for the phase. */
  #notify(error: GatewayError | undefined, whole?: BufferedBody): void {
    const { generation } = this
    const { handler } = this.#parts
    // The whole body continues the decision of onResponse.
    if (whole === undefined) this.#openDecisions++
    try {
      if (error !== undefined) handler.onError(this, error)
      else if (this.#phase === 'deciding') handler.onRequest(this)
      else if (whole !== undefined) handler.onWholeResponse?.(this, whole)
      else handler.onResponse(this)
    } catch (thrown) {
      this.#respondToBug(thrown, generation)
    }
  }

  /** Responds 500 after the data plane threw, because it will not respond. */
  #respondToBug(thrown: unknown, generation: number): void {
    if (generation !== this.generation) return
    const error = this.#parts.toError(thrown)
    const isTakenBack = this.#phase === 'relaying' && this.takeBackResponse(error)
    this.error = new GatewayError('bug', undefined, thrown)
    if (isTakenBack) this.#reportError(error)
    else if (this.#isUndecided())
      this.respond(500, [['content-type', 'text/plain']], this.error.row.text)
    else if (this.#phase === 'relaying') this.#cut('upstream-cut')
  }

  /** Called when the response has been written completely. */
  #responseSent(): void {
    if (this.#phase !== 'relaying') return
    this.#dropUnfinishedUpstream()
    this.#phase = 'flushing'
    if (this.client?.needsDrain !== true) this.#complete()
    else if (this.client.bufferHolder !== undefined) this.#attempt.pin()
    else this.#attempt.release()
  }

  #complete(): void {
    this.ending ??= 'complete'
    this.endedAt = this.#parts.clock.now()
    this.#attempt.release(this.endedAt)
    this.#over()
  }

  /** Ends a response that cannot be completed: an error replaces it, a transform ends it, or it is cut. */
  #breakOff(error: GatewayError, ending: Ending): void {
    this.error = error
    if (this.takeBackResponse(error)) this.#reportError(error)
    else if (this.responseBody.conclude()) {
      this.ending = ending
      this.#attempt.drop()
      this.#responseSent()
    } else this.#cut(ending)
  }

  /** Closes the connection, which alone shows that a response that was sent in part is incomplete. */
  #cut(ending: Ending, tunnelError?: GatewayError): void {
    this.ending = ending
    this.error = tunnelError ?? this.error
    this.client?.cut(tunnelError !== undefined || this.framing.isCloseDelimited)
    this.#over()
  }

  /** Drops the rest of the upstream's body, which is not needed. */
  #dropUnfinishedUpstream(): void {
    if (this.responseSource.ended) return
    this.#attempt.drop()
    this.responseSource.fail(new GatewayError('upstream_reset', 'the body was replaced'))
  }

  #over(): void {
    const client = this.client
    if (client === undefined) return
    this.#phase = 'over'
    if (this.endedAt === 0) this.endedAt = this.#parts.clock.now()
    this.#deadlines.end()
    this.#upload.stop()
    this.#attempt.drop()
    this.closeOwnStream()
    this.requestBody.tap?.onAbandon()
    this.requestBody.stopRecording()
    if (this.ending !== 'complete') this.failBodies()
    this.#parts.activeExchanges--
    this.#parts.handler.onDone(this)
    client.exchangeOver(this)
  }

  /** Returns this exchange to the pool, unless something may still refer to it. */
  recycle(): void {
    this.client = undefined
    // A late answer of the data plane must not reach another request.
    if (this.#openDecisions !== 0 || this.ending !== 'complete') return
    this.clear()
    this.#pool.keep(this)
  }
}
