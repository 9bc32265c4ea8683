/**
 * One direction of an exchange on its way through a processor: its headers, then its body, which goes
 * there and comes back at the same time, then its trailers.
 *
 *   headers --> answered? --+--> body pieces out ... body pieces back --> end
 *                           '--> replaced: nothing more is said about this message
 *
 * With a ledger, a body goes on without its processor where that fails, as it was sent.
 */
import type {
  BodyResponse,
  CommonResponse,
  HeaderMutation,
  HeadersResponse,
} from '../../../proto/gen/called/ext_proc_pb.ts'
import { Fifo } from '../../base/fifo.ts'
import { PieceQueue } from '../../base/piece-queue.ts'
import type { GatewayError } from '../../errors/index.ts'
import type { Body, BodyDetour, BodyOutlet } from '../../exchange/exchange.ts'
import type { BodyLedger } from './body-ledger.ts'
import { changeTrailers } from './fields.ts'

/** What a side needs of the conversation that it is part of. */
export interface Conversation {
  /** False: the processor is slow. */
  sendBody(side: MessageSide, bytes: Uint8Array, isLast: boolean): boolean
  sendTrailers(side: MessageSide, lines: string): void
  /** What is owed, or whether there is room, may have changed. */
  moved(): void
  /** The processor has broken the protocol. */
  broken(detail: string): void
}

type Apply = (common: CommonResponse | undefined) => void

/** Who waits for the processor to say something of headers. */
interface Answered {
  readonly apply: Apply
  resolve(): void
  reject(error: unknown): void
}

type State = 'before' | 'headers' | 'body' | 'alone' | 'done'

/**
 * How a processor answers a body: each piece that it is sent with one answer, or with pieces of its
 * own, whenever it likes. Unknown until its first answer: endpoint pickers do either.
 */
type BodyAnswers = 'unknown' | 'by piece' | 'streamed'

export class MessageSide implements BodyDetour {
  readonly name: 'request' | 'response'
  readonly #conversation: Conversation
  #state: State = 'before'
  #outlet: BodyOutlet | undefined
  isReplaced = false
  /** Set where the message matters more than what its processor makes of it. */
  ledger: BodyLedger | undefined
  /** What is owed is said of the body, not of the headers. */
  #isWhole = false
  /** The whole body is with the processor. */
  #isSent = false
  #trailers = ''
  /** Whoever takes what comes back is slow. */
  isFull = false
  #answers: BodyAnswers = 'unknown'
  /** The pieces that the processor has not answered, in order; none if its answers are streamed. */
  readonly #pieces = new PieceQueue()
  readonly #pieceSizes = new Fifo<number>()
  readonly #pieceLimit: number
  #awaited: Answered | undefined

  /** `pieceLimit`: bytes of a body that are kept until the processor answers them. */
  constructor(name: 'request' | 'response', conversation: Conversation, pieceLimit: number) {
    this.name = name
    this.#conversation = conversation
    this.#pieceLimit = pieceLimit
  }

  get isDone(): boolean {
    return this.#state === 'done' || this.#state === 'before'
  }

  /** The processor must say something before this message can go on. */
  get isOwed(): boolean {
    if (this.#state === 'headers') return true
    if (this.#state !== 'body' || this.#outlet === undefined) return false
    return this.#isSent || (this.#answers === 'by piece' && this.#pieceSizes.length > 0)
  }

  /** The headers are on their way; `apply` is told what the processor says, before its next message. */
  headersSent(apply: Apply): Promise<void> {
    this.#state = 'headers'
    return new Promise((resolve, reject) => {
      this.#awaited = { apply, resolve, reject }
    })
  }

  /** The same for a body that is on its way in one piece. */
  wholeSent(apply: Apply): Promise<void> {
    const answered = this.headersSent(apply)
    this.#isWhole = true
    return answered
  }

  /** Sends the body to the processor. `isByPiece`: each piece gets an answer of its own. */
  openBody(body: Body, isByPiece = false): void {
    if (isByPiece) this.#answers = 'by piece'
    if (this.#state === 'before' || this.#state === 'done') this.#state = 'body'
    this.#outlet = body.detour?.(this)
  }

  // --- to the processor ---

  push(bytes: Uint8Array): boolean {
    if (this.isReplaced) return true
    if (this.#state === 'alone') return this.#outlet?.write(bytes) !== false
    this.ledger?.sent(bytes)
    this.#keep(bytes)
    const hasRoom = this.#conversation.sendBody(this, bytes, false)
    this.#conversation.moved()
    return hasRoom && !this.#isWaiting
  }

  end(bytes: Uint8Array, trailers: string): void {
    if (this.isReplaced) return
    this.#isSent = true
    this.#trailers = trailers
    if (this.#state === 'alone') {
      this.#outlet?.write(bytes)
      this.#finish(trailers)
      return
    }
    this.ledger?.sent(bytes)
    if (trailers === '' || bytes.length > 0) {
      this.#keep(bytes)
      this.#conversation.sendBody(this, bytes, trailers === '')
    }
    if (trailers !== '') this.#conversation.sendTrailers(this, trailers)
    this.#conversation.moved()
  }

  #keep(piece: Uint8Array): void {
    if (this.#answers === 'streamed') return
    this.#pieces.push(piece, 0, piece.length)
    this.#pieceSizes.push(piece.length)
    // A processor that reads the whole body before it answers must make pieces of its own.
    const isTooMuch = this.#pieces.size > this.#pieceLimit
    if (isTooMuch && this.#answers === 'unknown') this.#forgetPieces()
  }

  /** The processor's answers are the body from now on. */
  #forgetPieces(): void {
    this.#answers = 'streamed'
    this.#pieces.clear()
    this.#pieceSizes.clear()
  }

  /** More of the body must not be sent yet. */
  get #isWaiting(): boolean {
    return this.isFull || this.#pieces.size > this.#pieceLimit
  }

  /** There is room at the processor. */
  resume(): void {
    if (!this.#isWaiting) this.#outlet?.resume()
  }

  drained(): void {
    if (this.#state === 'alone') this.#outlet?.resume()
    if (!this.isFull) return
    this.isFull = false
    this.#conversation.moved()
    this.resume()
  }

  // --- from the processor ---

  answerHeaders({ response }: HeadersResponse): void {
    if (this.#state === 'headers' && !this.#isWhole) this.#settle(response)
    else this.#conversation.broken(`it answered ${this.name} headers that were not sent`)
  }

  #settle(response: CommonResponse | undefined): void {
    const awaited = this.#awaited
    this.#awaited = undefined
    this.#isWhole = false
    this.#state = this.#outlet === undefined ? 'done' : 'body'
    try {
      awaited?.apply(response)
      awaited?.resolve()
    } catch (error) {
      awaited?.reject(error)
    }
  }

  /** The message has been given another body: what the processor still says of it is not for us. */
  replaceBody(body: Body, bytes: Uint8Array): void {
    this.isReplaced = true
    this.#state = 'done'
    if (this.#outlet === undefined) body.replace(bytes)
    else {
      this.#write(bytes)
      this.#outlet.end()
      this.#outlet.resume()
    }
    this.#conversation.moved()
  }

  answerBody({ response }: BodyResponse): void {
    if (this.isReplaced) return
    if (this.#isWhole) {
      this.#settle(response)
      return
    }
    if (this.#state !== 'body' || this.#outlet === undefined) {
      this.#conversation.broken(`it answered a ${this.name} body before its headers`)
      return
    }
    const mutation = response?.bodyMutation?.mutation
    if (this.#answers !== 'by piece' && mutation?.case === 'streamedResponse') {
      this.#forgetPieces()
      this.#write(mutation.value.body)
      if (mutation.value.endOfStream) this.#finish('')
    } else if (this.#answers !== 'streamed') {
      this.#answers = 'by piece'
      this.#answerPiece(mutation)
    } else {
      this.#conversation.broken(
        `it answered a ${this.name} body without streamed_response, but it had streamed before or more than ${this.#pieceLimit} bytes were waiting`,
      )
    }
  }

  #answerPiece(
    mutation: NonNullable<CommonResponse['bodyMutation']>['mutation'] | undefined,
  ): void {
    const size = this.#pieceSizes.take()
    if (size === undefined) {
      this.#conversation.broken(`it answered a piece of the ${this.name} body that was not sent`)
      return
    }
    const piece = this.#pieces.read(size)
    if (mutation?.case === 'body') this.#write(mutation.value)
    else if (mutation?.case !== 'clearBody') this.#write(piece)
    if (this.#isSent && this.#pieceSizes.length === 0 && this.#trailers === '') this.#finish('')
    else this.resume()
  }

  answerTrailers(mutation: HeaderMutation | undefined): void {
    if (this.isReplaced) return
    if (this.#state !== 'body' || !this.#isSent || this.#trailers === '') {
      this.#conversation.broken(`it answered ${this.name} trailers that were not sent`)
      return
    }
    this.#finish(changeTrailers(this.#trailers, mutation))
  }

  #write(bytes: Uint8Array): void {
    if (bytes.length === 0) return
    this.ledger?.returned(bytes)
    if (this.#outlet?.write(bytes) === false) this.isFull = true
    this.#conversation.moved()
  }

  #finish(trailers: string): void {
    this.#state = 'done'
    this.#outlet?.end(trailers)
    this.#conversation.moved()
  }

  /** The conversation is over: what waits for an answer gets none. */
  fail(error: GatewayError): void {
    const { 0: state, 1: awaited } = [this.#state, this.#awaited]
    this.#state = 'done'
    this.#awaited = undefined
    if (state === 'headers') awaited?.reject(error)
    else if (state === 'body' && !this.goOnAlone()) this.#outlet?.abort(error)
  }

  /**
   * The processor has failed, and the body goes on as it is. False where it cannot: nobody keeps a
   * ledger, or it says that the body was changed or is too large to be kept.
   */
  goOnAlone(): boolean {
    if (this.#outlet === undefined) return true
    const rest = this.ledger?.takeRest()
    if (rest === undefined) return false
    this.#sendAlone(this.#outlet, rest)
    return true
  }

  /**
   * The processor has ended well without a word on this message: it goes on as it is. False where
   * there was one, or more of the body is away than is kept.
   */
  goOnUnseen(): boolean {
    const outlet = this.#outlet
    if (this.#state !== 'headers' || this.#isWhole) return false
    const rest = outlet === undefined ? [] : this.ledger?.takeRest()
    if (rest === undefined) return false
    this.#settle(undefined)
    if (outlet !== undefined) this.#sendAlone(outlet, rest)
    return true
  }

  #sendAlone(outlet: BodyOutlet, rest: readonly Uint8Array[]): void {
    this.#state = 'alone'
    this.#forgetPieces()
    for (const piece of rest) outlet.write(piece)
    if (this.#isSent) this.#finish(this.#trailers)
    else outlet.resume()
  }
}
