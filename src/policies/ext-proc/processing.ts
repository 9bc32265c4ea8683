/** One exchange in conversation with a processor (Envoy's external processing, version 3). */
import {
  create,
  fromBinary,
  type JsonObject,
  type MessageInitShape,
  toBinary,
} from '@bufbuild/protobuf'
import {
  ProcessingRequestSchema,
  type ProcessingResponse,
  ProcessingResponseSchema,
} from '../../../proto/gen/called/ext_proc_pb.ts'
import { type ErrorCode, GatewayError } from '../../errors/index.ts'
import type {
  Callouts,
  CalloutTarget,
  Exchange,
  GrpcStream,
  GrpcStreamListener,
  RespondVerdict,
} from '../../exchange/exchange.ts'
import { leaveAnswer } from '../../exchange/interruption.ts'
import type { LearnedRecord } from '../../exchange/learned.ts'
import { trailerFields } from './fields.ts'
import { immediateAnswer } from './immediate.ts'
import { type Conversation, MessageSide } from './message-side.ts'
import { allOfResponse, bodyModes, overridden, type ResponseModes } from './modes.ts'

const method = '/envoy.service.ext_proc.v3.ExternalProcessor/Process'
/** Longest silence while an answer is owed, unless the backend has a time limit of its own. */
const timeoutMs = 10_000

type Sent = MessageInitShape<typeof ProcessingRequestSchema>
type Metadata = Readonly<Record<string, JsonObject>>

interface ProcessingOptions {
  readonly target: CalloutTarget
  readonly exchange: Exchange
  readonly callouts: Callouts
  /** Takes dynamic metadata, by the name of the filter that it is for. */
  learn(metadata: LearnedRecord): void
  /** Is it an endpoint picker? */
  readonly isPicker?: true
}

/** An answer in place of a message's own; thrown where a message waits for its headers. */
class AnsweredInstead extends Error {
  readonly answer: RespondVerdict

  constructor(answer: RespondVerdict) {
    super('the processor has answered')
    this.answer = answer
  }
}

/** The answer in what a message met in place of its headers; undefined where that is an error. */
export function answerIn(error: unknown): RespondVerdict | undefined {
  const cause = error instanceof GatewayError ? error.cause : undefined
  return cause instanceof AnsweredInstead ? cause.answer : undefined
}

export class Processing implements Conversation, GrpcStreamListener {
  readonly #exchange: Exchange
  readonly #learn: ProcessingOptions['learn']
  readonly #failure: ErrorCode
  readonly #stream: GrpcStream
  readonly request: MessageSide
  readonly response: MessageSide
  modes: ResponseModes = allOfResponse
  #isFirst = true
  #isSlow = false
  #isPaused = false
  #hasResponse = false
  /** The processor has ended the conversation, as it may once it has answered everything. */
  isOver = false

  constructor({ target, exchange, callouts, learn, isPicker }: ProcessingOptions) {
    this.#exchange = exchange
    this.request = new MessageSide('request', this, exchange.bufferLimit)
    this.response = new MessageSide('response', this, exchange.bufferLimit)
    this.#learn = learn
    this.#failure = isPicker ? 'endpoint_picker_failed' : 'ext_proc_failed'
    this.#stream = callouts.stream({
      target,
      path: method,
      exchange,
      subtype: isPicker ? 'EndpointPicker' : 'ExtProc',
      timeoutMs,
      ...(isPicker && { isPicker }),
      listener: this,
    })
  }

  // --- to the processor ---

  send(request: NonNullable<Sent['request']>, metadata?: Metadata): boolean {
    if (this.isOver) return true
    const message: Sent = {
      request,
      ...(metadata && { metadataContext: { filterMetadata: { ...metadata } } }),
      ...(this.#isFirst && {
        protocolConfig: {
          requestBodyMode: bodyModes.fullDuplex,
          responseBodyMode: bodyModes.fullDuplex,
        },
      }),
    }
    this.#isFirst = false
    const isTaken = this.#stream.send(
      toBinary(ProcessingRequestSchema, create(ProcessingRequestSchema, message)),
    )
    if (!isTaken) this.#isSlow = true
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

  /** The way back begins: from now on the request holds nothing up. */
  beginResponse(): void {
    this.#hasResponse = true
    this.moved()
  }

  onDrain(): void {
    this.#isSlow = false
    this.request.resume()
    this.response.resume()
  }

  /**
   * Messages of both directions share one stream: where what came back cannot be passed on, it rests;
   * but never for the request once there is a response, which may have to be read first.
   */
  moved(): void {
    if (this.isOver) return
    const isPaused = this.response.isFull || (this.request.isFull && !this.#hasResponse)
    if (isPaused !== this.#isPaused) {
      this.#isPaused = isPaused
      if (isPaused) this.#stream.pause()
      else this.#stream.resume()
    }
    this.#stream.expect(this.request.isOwed || this.response.isOwed)
  }

  // --- from the processor ---

  onMessage(bytes: Uint8Array): void {
    let message: ProcessingResponse
    try {
      message = fromBinary(ProcessingResponseSchema, bytes)
    } catch {
      this.broken('it sent a message that cannot be read')
      return
    }
    if (message.dynamicMetadata !== undefined) this.#learn(message.dynamicMetadata as LearnedRecord)
    this.#take(message)
    this.moved()
  }

  #take({ response, modeOverride }: ProcessingResponse): void {
    switch (response.case) {
      case 'requestHeaders': {
        const modes = modeOverride && overridden(modeOverride)
        if (modes !== undefined) this.modes = modes
        this.request.answerHeaders(response.value)
        break
      }
      case 'responseHeaders':
        this.response.answerHeaders(response.value)
        break
      case 'requestBody':
        this.request.answerBody(response.value)
        break
      case 'responseBody':
        this.response.answerBody(response.value)
        break
      case 'requestTrailers':
        this.request.answerTrailers(response.value.headerMutation)
        break
      case 'responseTrailers':
        this.response.answerTrailers(response.value.headerMutation)
        break
      case 'immediateResponse': {
        const answer = immediateAnswer(response.value)
        if (answer === undefined) this.broken('it answered with a status that no response can have')
        else this.#answerInstead(answer)
        break
      }
      default:
        this.broken('it sent a message that says nothing')
    }
  }

  #answerInstead(answer: RespondVerdict): void {
    this.#finish()
    // Where the request is under way already, its error is turned into this answer.
    leaveAnswer(this.#exchange, answer)
    const error = new GatewayError(this.#failure, 'it answered', new AnsweredInstead(answer))
    this.request.fail(error)
    this.response.fail(error)
  }

  broken(detail: string): void {
    this.#fail(new GatewayError(this.#failure, detail))
  }

  /**
   * A clean end is the processor's right where it owes nothing. A response of which it has said
   * nothing may have crossed that end, and goes the same way as one that comes after it.
   */
  onEnd(error: GatewayError | undefined): void {
    if (error !== undefined) {
      this.#fail(new GatewayError(this.#failure, error.message, error))
      return
    }
    this.isOver = this.request.isDone
    if (this.isOver && (this.response.isDone || this.response.goOnUnseen())) return
    this.#fail(new GatewayError(this.#failure, 'it ended before it had answered'))
  }

  #fail(error: GatewayError): void {
    this.#finish()
    this.request.fail(error)
    this.response.fail(error)
  }

  #finish(): void {
    this.isOver = true
    this.#stream.close()
  }

  /** Nobody waits for anything any more. */
  close(): void {
    if (!this.isOver) this.#finish()
  }
}
