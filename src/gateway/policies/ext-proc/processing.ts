import { fromBinary } from '@bufbuild/protobuf'
import {
  type ProcessingMode,
  type ProcessingResponse,
  ProcessingResponseSchema,
} from '../../../../proto/gen/called/ext_proc_pb.ts'
import { type ErrorCode, GatewayError } from '../../../ground/errors/index.ts'
import type {
  Callouts,
  CalloutTarget,
  Exchange,
  GrpcStream,
  GrpcStreamCallout,
  GrpcStreamListener,
  RespondVerdict,
} from '../../../ground/exchange/exchange.ts'
import { storeResponse } from '../../../ground/exchange/interruption.ts'
import type { LearnedRecord } from '../../../ground/exchange/learned.ts'
import { trailerFields } from './fields.ts'
import { immediateResponse } from './immediate.ts'
import { type Conversation, MessageSide } from './message-side.ts'
import { MessageWriter, type SentContext, type SentPart } from './message-writer.ts'
import { allOfExchange, type ExchangeModes, overridden, wantsAny } from './modes.ts'
import { notUnderstood } from './understood.ts'

export const method = '/envoy.service.ext_proc.v3.ExternalProcessor/Process'
/** Default of the maximum time to wait for an expected answer. A timeout of the backend overrides it. */
export const defaultTimeoutMs = 10_000

interface ProcessingOptions extends Pick<GrpcStreamCallout, 'defaultTls'> {
  readonly target: CalloutTarget
  readonly exchange: Exchange
  readonly callouts: Callouts
  /** Called with dynamic metadata of the processor, by filter name. */
  learn(metadata: LearnedRecord): void
  /** Whether the processor is an endpoint picker. */
  readonly isPicker?: true
  /** Default: everything is sent. */
  readonly modes?: ExchangeModes | undefined
  /** Maximum time to wait for an expected answer. */
  readonly timeoutMs?: number | undefined
}

/** Cause of the error with which a pending answer is rejected if the processor responds to the client. */
class RespondedInstead extends Error {
  readonly verdict: RespondVerdict

  constructor(verdict: RespondVerdict) {
    super('the processor has answered')
    this.verdict = verdict
  }
}

/** The processor's response to the client that caused an error; undefined for other errors. */
export function responseIn(error: unknown): RespondVerdict | undefined {
  const cause = error instanceof GatewayError ? error.cause : undefined
  return cause instanceof RespondedInstead ? cause.verdict : undefined
}

/** The conversation with a processor about one exchange (Envoy's external processing, version 3). */
export class Processing implements Conversation, GrpcStreamListener {
  readonly #exchange: Exchange
  readonly #learn: ProcessingOptions['learn']
  readonly #failure: ErrorCode
  readonly #isPicker: boolean
  readonly #stream: GrpcStream
  readonly request: MessageSide
  readonly response: MessageSide
  readonly #writer: MessageWriter
  modes: ExchangeModes
  #isSlow = false
  #isPaused = false
  #hasResponse = false
  /** Whether the processor ended the stream in order: the rest of the exchange passes without it. */
  hasPassed = false
  #endsWhenDone = false
  /** Whether parts of the request may still have to be sent. */
  isSendingRequest = false
  /** Whether nothing more is sent. The processor may end the stream after its last expected answer. */
  isOver = false
  /** The error with which the conversation ended; undefined if it ended in order or is not over. */
  #error: GatewayError | undefined

  constructor(options: ProcessingOptions) {
    const { target, exchange, callouts, learn, isPicker, defaultTls } = options
    this.modes = options.modes ?? allOfExchange
    this.#exchange = exchange
    const { bufferLimit } = exchange
    const { request, response } = this.modes
    const sends = (wanted: boolean) => wanted && isPicker !== true
    this.request = new MessageSide('request', this, bufferLimit, sends(request.sendsTrailers))
    this.response = new MessageSide('response', this, bufferLimit, sends(response.sendsTrailers))
    this.#learn = learn
    this.#isPicker = isPicker === true
    this.#failure = isPicker ? 'endpoint_picker_failed' : 'ext_proc_failed'
    this.#stream = callouts.stream({
      target,
      path: method,
      exchange,
      subtype: isPicker ? 'EndpointPicker' : 'ExtProc',
      timeoutMs: options.timeoutMs ?? defaultTimeoutMs,
      defaultTls,
      listener: this,
    })
    this.#writer = new MessageWriter(this.#stream, this.modes)
    this.#endsWhenDone = !wantsAny(response)
  }

  // --- to the processor ---

  send(request: SentPart, context?: SentContext): boolean {
    if (this.isOver) return true
    if (!this.#writer.write(request, context)) this.#isSlow = true
    return !this.#isSlow
  }

  sendBody({ name }: MessageSide, body: Uint8Array, endOfStream: boolean): boolean {
    const value = { body, endOfStream }
    return this.send({ case: name === 'request' ? 'requestBody' : 'responseBody', value })
  }

  sendTrailers({ name }: MessageSide, lines: string): void {
    const value = { trailers: trailerFields(lines) }
    this.send({ case: name === 'request' ? 'requestTrailers' : 'responseTrailers', value })
  }

  /**
   * Call when the response begins. From then on the request no longer pauses the stream. Throws if another
   * response was begun before, which was lost and whose request was sent again: a conversation has only one.
   */
  beginResponse(): void {
    if (this.#hasResponse) {
      throw new GatewayError(this.#failure, 'it has processed a response that was lost')
    }
    this.#hasResponse = true
    this.onStateChange()
  }

  /**
   * Call before a part passes that the processor has not received. Throws the error with which the
   * conversation ended, since a processor that is lost has not agreed to the rest of the exchange.
   */
  requireIntact(): void {
    if (this.#error !== undefined) throw this.#error
  }

  /** Returns whether an error is a failure of the processor, not of the message, such as a body that is too large. */
  hasFailed(error: unknown): boolean {
    return error instanceof GatewayError && error.code === this.#failure
  }

  /** Call when the last part was begun. The stream ends once the processor has answered everything. */
  endWhenDone(): void {
    this.#endsWhenDone = true
    this.onStateChange()
  }

  onDrain(): void {
    this.#isSlow = false
    this.request.resume()
    this.response.resume()
  }

  /**
   * Messages of both directions share one stream. It is paused while a returned body cannot be passed on.
   * After the response has begun, the request does not pause it, since the response may have to be
   * read first.
   */
  onStateChange(): void {
    if (this.isOver) return
    if (this.#endsWhenDone && this.#isDone && !this.isSendingRequest) {
      this.#end()
      return
    }
    const isPaused = this.response.isFull || (this.request.isFull && !this.#hasResponse)
    if (isPaused !== this.#isPaused) {
      this.#isPaused = isPaused
      if (isPaused) this.#stream.pause()
      else this.#stream.resume()
    }
    this.#stream.expect(this.request.expectsResponse || this.response.expectsResponse)
  }

  // --- from the processor ---

  onMessage(bytes: Uint8Array): void {
    let message: ProcessingResponse
    try {
      message = fromBinary(ProcessingResponseSchema, bytes)
    } catch {
      this.onViolation('it sent a message that cannot be read')
      return
    }
    const problem = notUnderstood(message)
    if (problem !== undefined) {
      this.onViolation(problem)
      return
    }
    if (message.dynamicMetadata !== undefined) this.#learn(message.dynamicMetadata as LearnedRecord)
    this.#take(message)
    this.onStateChange()
  }

  #take({ response, modeOverride }: ProcessingResponse): void {
    switch (response.case) {
      case 'requestHeaders':
        if (modeOverride !== undefined) this.#override(modeOverride, this.request)
        this.request.onHeadersResponse(response.value)
        break
      case 'responseHeaders':
        if (modeOverride !== undefined) this.#override(modeOverride, this.response)
        this.response.onHeadersResponse(response.value)
        break
      case 'requestBody':
        this.request.onBodyResponse(response.value)
        break
      case 'responseBody':
        this.response.onBodyResponse(response.value)
        break
      case 'requestTrailers':
        this.request.onTrailersResponse(response.value.headerMutation)
        break
      case 'responseTrailers':
        this.response.onTrailersResponse(response.value.headerMutation)
        break
      case 'immediateResponse': {
        const verdict = immediateResponse(response.value)
        if (verdict === undefined)
          this.onViolation('it answered with a status that no response can have')
        else this.#respondInstead(verdict)
        break
      }
      default:
        this.onViolation('it sent an empty message')
    }
  }

  /** Changes the modes of parts that have not begun. `answered` is the message whose headers the processor answers. */
  #override(mode: ProcessingMode, answered: MessageSide): void {
    if (!this.modes.allowsOverride) return
    for (const side of [this.request, this.response]) {
      const hasBegun = side === answered
      if (side.isSending || (side === this.request && answered === this.response)) continue
      const modes = overridden(this.modes[side.name], mode, side.name, hasBegun)
      this.modes = { ...this.modes, [side.name]: modes }
      side.sendsTrailers = modes.sendsTrailers && !this.#isPicker
    }
    // If no part of the response is sent, the stream may end after the answer to the request.
    if (answered === this.request) this.#endsWhenDone = !wantsAny(this.modes.response)
  }

  #respondInstead(verdict: RespondVerdict): void {
    this.#end()
    // If the request was already forwarded, its error is turned into this response.
    storeResponse(this.#exchange, verdict)
    this.#stop(new GatewayError(this.#failure, 'it answered', new RespondedInstead(verdict)))
  }

  onViolation(detail: string): void {
    this.#fail(new GatewayError(this.#failure, detail))
  }

  /**
   * The processor may end the stream if no answer is expected. If the response was sent at the same time
   * and has no answer, it passes unchanged, like a response that comes later.
   */
  onEnd(error: GatewayError | undefined): void {
    if (error !== undefined) {
      this.#fail(new GatewayError(this.#failure, error.message, error))
      return
    }
    this.request.stopPassing()
    this.response.stopPassing()
    this.isOver = this.request.isDone
    this.hasPassed =
      this.isOver && (this.response.isDone || this.response.continueWithoutResponse())
    if (this.hasPassed) return
    this.#fail(new GatewayError(this.#failure, 'it ended before it had answered'))
  }

  #fail(error: GatewayError): void {
    this.#reset()
    this.#stop(error)
  }

  /** Fails what is being processed, and keeps the error for what begins later. */
  #stop(error: GatewayError): void {
    this.#error = error
    this.request.fail(error)
    this.response.fail(error)
  }

  get #isDone(): boolean {
    return this.request.isDone && this.response.isDone
  }

  /**
   * Ends the gateway's side of the stream. A reset for every exchange would look like an attack to servers
   * that limit resets (CVE-2023-44487).
   */
  #end(): void {
    this.isOver = true
    this.#stream.end()
  }

  #reset(): void {
    this.isOver = true
    this.#stream.close()
  }

  /** Call when the exchange is over. Resets the stream if a message was aborted. */
  close(): void {
    if (this.isOver) return
    if (this.#isDone) this.#end()
    else this.#reset()
  }
}
