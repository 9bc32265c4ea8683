/**
 * One direction of an exchange that a processor handles: first its headers, then its body, which is sent
 * and returned at the same time, then its trailers.
 *
 *   headers --> answered? --+--> body pieces out ... body pieces back --> end
 *                           |--> passing: the body is not sent, only its trailers are
 *                           '--> replaced: no more answers about this message
 *
 * If it has a `ledger`, the body continues unchanged when the processor fails.
 */
import type {
  BodyResponse,
  CommonResponse,
  HeaderMutation,
  HeadersResponse,
} from '../../../../proto/gen/called/ext_proc_pb.ts'
import { PieceQueue } from '../../../engines/http/bytes/piece-queue.ts'
import { Fifo } from '../../../ground/base/fifo.ts'
import type { GatewayError } from '../../../ground/errors/index.ts'
import type { Body } from '../../../ground/exchange/exchange.ts'
import type { ReturnStream, SideStream } from '../../../ground/exchange/side-stream.ts'
import type { BodyLedger } from './body-ledger.ts'
import { divertInto } from './diverted.ts'
import { changeTrailers } from './fields.ts'

/** What a message side needs from the conversation with the processor. */
export interface Conversation {
  /** Returns false if the processor is slow; `MessageSide.resume` is called when it is ready again. */
  sendBody(side: MessageSide, bytes: Uint8Array, isLast: boolean): boolean
  sendTrailers(side: MessageSide, lines: string): void
  /** Called after a change of whether an answer is expected, or whether returned data can be passed on. */
  onStateChange(): void
  /** Called if the processor violates the protocol. */
  onViolation(detail: string): void
}

type Apply = (common: CommonResponse | undefined) => void

/** The callbacks for the processor's answer to the headers. */
interface PendingResponse {
  readonly apply: Apply
  resolve(): void
  reject(error: unknown): void
}

type State = 'before' | 'headers' | 'body' | 'passing' | 'alone' | 'done'

/**
 * How a processor answers a body: with one answer for each piece that it receives, or with a stream of
 * pieces of its own. This is unknown until its first answer, since endpoint pickers do either.
 */
type BodyResponses = 'unknown' | 'by piece' | 'streamed'

export class MessageSide implements SideStream {
  readonly name: 'request' | 'response'
  readonly #conversation: Conversation
  #state: State = 'before'
  #returnStream: ReturnStream | undefined
  isReplaced = false
  /** Whether the message must continue even if the processor fails. */
  ledger: BodyLedger | undefined
  /** Whether the expected answer is for a whole body, not for headers. */
  #isWhole = false
  /** Whether the whole body was sent to the processor. */
  #isSent = false
  #trailers = ''
  /** Whether the receiver of the returned body accepts no more data. */
  isFull = false
  #bodyResponses: BodyResponses = 'unknown'
  /** Sent pieces that the processor has not answered yet, in order; empty if its answers are streamed. */
  readonly #pieces = new PieceQueue()
  readonly #pieceSizes = new Fifo<number>()
  readonly #pieceLimit: number
  /** Whether trailers are sent to the processor. If not, they pass unchanged behind the returned body. */
  sendsTrailers: boolean
  #awaited: PendingResponse | undefined
  /** Whether the body continues without the processor. */
  #isAlone = false

  /**
   * `pieceLimit` is the maximum number of unanswered bytes of a body to keep. Endpoint pickers wait for the end of the
   * body, and ignore trailers, so the gateway does not send them (`sendsTrailers`).
   */
  constructor(
    name: 'request' | 'response',
    conversation: Conversation,
    pieceLimit: number,
    sendsTrailers: boolean,
  ) {
    this.name = name
    this.#conversation = conversation
    this.#pieceLimit = pieceLimit
    this.sendsTrailers = sendsTrailers
  }

  get isDone(): boolean {
    return this.#state === 'done' || this.#state === 'before' || this.#state === 'alone'
  }

  /** Whether the body was opened for pieces, which then get the error of a processor that fails. */
  get isSending(): boolean {
    return this.#returnStream !== undefined
  }

  /** Whether the message can continue only after an answer of the processor. */
  get expectsResponse(): boolean {
    if (this.#state === 'headers') return true
    if (this.#state !== 'body' || this.#returnStream === undefined) return false
    return this.#isSent || (this.#bodyResponses === 'by piece' && this.#pieceSizes.length > 0)
  }

  /** Call after sending the headers. `apply` is called with the answer, before the next message is read. */
  headersSent(apply: Apply): Promise<void> {
    this.#state = 'headers'
    return new Promise((resolve, reject) => {
      this.#awaited = { apply, resolve, reject }
    })
  }

  /** Like `headersSent`, after a whole body was sent in one piece. */
  wholeSent(apply: Apply): Promise<void> {
    const answered = this.headersSent(apply)
    this.#isWhole = true
    return answered
  }

  /**
   * Starts to send the body to the processor. `by piece`: each piece gets its own answer. `passing`: the body passes
   * unchanged, and only its trailers are sent.
   */
  openBody(body: Body, how?: 'by piece' | 'passing'): void {
    if (how === 'by piece') this.#bodyResponses = 'by piece'
    if (how === 'passing') {
      this.#state = 'passing'
      divertInto(body, this, (returned) => {
        this.#returnStream = returned
      })
      return
    }
    if (this.#state === 'before' || this.#state === 'done') this.#state = 'body'
    this.#returnStream = body.divert?.(this)
  }

  // --- to the processor ---

  push(bytes: Uint8Array): boolean {
    if (this.isReplaced) return true
    if (this.#passes) return this.#returnStream?.write(bytes) !== false
    this.ledger?.sent(bytes)
    this.#keep(bytes)
    const hasRoom = this.#conversation.sendBody(this, bytes, false)
    this.#conversation.onStateChange()
    return hasRoom && !this.#isWaiting
  }

  end(bytes: Uint8Array, trailers: string): void {
    if (this.isReplaced) return
    this.#isSent = true
    this.#trailers = trailers
    if (this.#passes) {
      this.#returnStream?.write(bytes)
      if (this.#state === 'alone' || !this.#endsWithTrailers) this.#finish(trailers)
      else this.#sendTrailers(trailers)
      return
    }
    this.ledger?.sent(bytes)
    const isLast = !this.#endsWithTrailers
    if (isLast || bytes.length > 0) {
      this.#keep(bytes)
      this.#conversation.sendBody(this, bytes, isLast)
    }
    if (isLast) this.#conversation.onStateChange()
    else this.#sendTrailers(trailers)
  }

  #sendTrailers(trailers: string): void {
    if (this.#state === 'passing') this.#state = 'body'
    this.#conversation.sendTrailers(this, trailers)
    this.#conversation.onStateChange()
  }

  /** Whether the body passes without the processor. */
  get #passes(): boolean {
    return this.#state === 'alone' || this.#state === 'passing'
  }

  /** Whether trailers are sent behind the body. */
  get #endsWithTrailers(): boolean {
    return this.sendsTrailers && this.#trailers !== ''
  }

  #keep(piece: Uint8Array): void {
    if (this.#bodyResponses === 'streamed') return
    this.#pieces.push(piece, 0, piece.length)
    this.#pieceSizes.push(piece.length)
    // A processor that has not answered by now reads the whole body first, and then streams its answer.
    const isTooMuch = this.#pieces.size > this.#pieceLimit
    if (isTooMuch && this.#bodyResponses === 'unknown') this.#forgetPieces()
  }

  /** Treats the processor's answers as a stream from now on. */
  #forgetPieces(): void {
    this.#bodyResponses = 'streamed'
    this.#pieces.clear()
    this.#pieceSizes.clear()
  }

  /** Whether no more of the body may be sent yet. */
  get #isWaiting(): boolean {
    return this.isFull || this.#pieces.size > this.#pieceLimit
  }

  /** Called when the processor can receive more data. */
  resume(): void {
    if (!this.#isWaiting) this.#returnStream?.resume()
  }

  drained(): void {
    if (this.#passes) this.#returnStream?.resume()
    if (!this.isFull) return
    this.isFull = false
    this.#conversation.onStateChange()
    this.resume()
  }

  // --- from the processor ---

  onHeadersResponse({ response }: HeadersResponse): void {
    if (this.#state === 'headers' && !this.#isWhole) this.#settle(response)
    else this.#conversation.onViolation(`it answered ${this.name} headers that were not sent`)
  }

  #settle(response: CommonResponse | undefined): void {
    const awaited = this.#awaited
    this.#awaited = undefined
    this.#isWhole = false
    this.#state = this.#returnStream === undefined ? 'done' : 'body'
    try {
      awaited?.apply(response)
      awaited?.resolve()
    } catch (error) {
      awaited?.reject(error)
    }
  }

  /** Replaces the body. Further answers to the message are ignored. */
  replaceBody(body: Body, bytes: Uint8Array): void {
    this.isReplaced = true
    this.#state = 'done'
    if (this.#returnStream === undefined) body.replace(bytes)
    else {
      this.#write(bytes)
      this.isFull = false
      this.#returnStream.end()
      this.#returnStream.resume()
    }
    this.#conversation.onStateChange()
  }

  onBodyResponse({ response }: BodyResponse): void {
    if (this.isReplaced) return
    if (this.#isWhole) {
      this.#settle(response)
      return
    }
    if (this.#state !== 'body' || this.#returnStream === undefined) {
      this.#conversation.onViolation(`it answered a ${this.name} body before its headers`)
      return
    }
    const mutation = response?.bodyMutation?.mutation
    if (this.#bodyResponses !== 'by piece' && mutation?.case === 'streamedResponse') {
      this.#forgetPieces()
      this.#write(mutation.value.body)
      if (mutation.value.endOfStream) this.#finishBody()
    } else if (this.#bodyResponses !== 'streamed') {
      this.#bodyResponses = 'by piece'
      this.#onPieceResponse(mutation)
    } else {
      this.#conversation.onViolation(
        `it answered a ${this.name} body without streamed_response, but it had streamed before or more than ${this.#pieceLimit} bytes were waiting`,
      )
    }
  }

  #onPieceResponse(
    mutation: NonNullable<CommonResponse['bodyMutation']>['mutation'] | undefined,
  ): void {
    const size = this.#pieceSizes.take()
    if (size === undefined) {
      this.#conversation.onViolation(
        `it answered a piece of the ${this.name} body that was not sent`,
      )
      return
    }
    if (mutation?.case === 'streamedResponse') {
      this.#conversation.onViolation(
        `it answered a piece of the ${this.name} body with streamed_response`,
      )
      return
    }
    const piece = this.#pieces.read(size)
    if (mutation?.case === 'body') this.#write(mutation.value)
    else if (mutation?.case !== 'clearBody') this.#write(piece)
    const isWhole = this.#isSent && this.#pieceSizes.length === 0 && !this.#endsWithTrailers
    if (isWhole) this.#finishBody()
    else this.resume()
  }

  onTrailersResponse(mutation: HeaderMutation | undefined): void {
    if (this.isReplaced) return
    if (this.#state !== 'body' || !this.#isSent || !this.#endsWithTrailers) {
      this.#conversation.onViolation(`it answered ${this.name} trailers that were not sent`)
      return
    }
    this.#finish(changeTrailers(this.#trailers, mutation))
  }

  #write(bytes: Uint8Array): void {
    if (bytes.length === 0) return
    this.ledger?.returned(bytes)
    if (this.#returnStream?.write(bytes) === false) this.isFull = true
    this.#conversation.onStateChange()
  }

  /** Called at the end of the returned body. Trailers that were sent end with it if they have no answer. */
  #finishBody(): void {
    this.#finish(this.sendsTrailers ? '' : this.#trailers)
  }

  #finish(trailers: string): void {
    this.#state = 'done'
    // Nothing more is written, so a receiver that is slow must not hold up what the processor sends next.
    this.isFull = false
    this.#returnStream?.end(trailers)
    this.#conversation.onStateChange()
  }

  /** Called when the conversation has failed. Rejects the pending answer. */
  fail(error: GatewayError): void {
    const { 0: state, 1: awaited } = [this.#state, this.#awaited]
    this.#state = 'done'
    this.#awaited = undefined
    if (state === 'headers') awaited?.reject(error)
    else if ((state === 'body' || state === 'passing') && !this.continueAlone()) {
      this.#returnStream?.abort(error)
    }
  }

  /** Called if the processor has ended the stream in order: a body that passes needs no answer any more. */
  stopPassing(): void {
    if (this.#state === 'passing') this.#state = 'alone'
  }

  /**
   * Continues the body unchanged after the processor has failed. Returns false if that is impossible:
   * there is no ledger, or the body was changed or is too large to be kept.
   */
  continueAlone(): boolean {
    if (this.#returnStream === undefined || this.#isAlone) return true
    const rest = this.ledger?.takeRest()
    if (rest === undefined) return false
    this.#sendAlone(this.#returnStream, rest)
    return true
  }

  /**
   * Continues the message unchanged after the processor has ended the stream without answering it.
   * Returns false if there was an answer, or if the body is too large to be kept.
   */
  continueWithoutResponse(): boolean {
    const stream = this.#returnStream
    if (this.#state !== 'headers' || this.#isWhole) return false
    const rest = stream === undefined ? [] : this.ledger?.takeRest()
    if (rest === undefined) return false
    this.#settle(undefined)
    if (stream !== undefined) this.#sendAlone(stream, rest)
    return true
  }

  #sendAlone(stream: ReturnStream, rest: readonly Uint8Array[]): void {
    this.#state = 'alone'
    this.#isAlone = true
    this.#forgetPieces()
    for (const piece of rest) stream.write(piece)
    if (this.#isSent) this.#finish(this.#trailers)
    else stream.resume()
  }
}
