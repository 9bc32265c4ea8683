import type { GatewayError } from '../../../ground/errors/index.ts'
import type {
  Body,
  Callouts,
  CalloutTarget,
  Exchange,
  GrpcStream,
  GrpcStreamListener,
} from '../../../ground/exchange/exchange.ts'
import { addNote } from '../../../ground/exchange/notes.ts'
import type { ReturnStream, SideStream } from '../../../ground/exchange/side-stream.ts'
import { divertInto } from './diverted.ts'
import { requestFields, responseFields, trailerFields } from './fields.ts'
import { MessageWriter, type SentContext } from './message-writer.ts'
import { bodyModes, type ExchangeModes, type MessageModes } from './modes.ts'
import { defaultTimeoutMs, method } from './processing.ts'

interface ObservationOptions {
  readonly target: CalloutTarget
  readonly exchange: Exchange
  readonly callouts: Callouts
  readonly modes: ExchangeModes
  readonly timeoutMs: number | undefined
}

/**
 * Sends an exchange to a processor whose answers are ignored (observability mode of Envoy). A slow processor slows
 * bodies down until it takes more, at most for the timeout. If it fails, the exchange continues without it.
 */
export class Observation implements GrpcStreamListener {
  readonly #exchange: Exchange
  readonly #modes: ExchangeModes
  readonly #stream: GrpcStream
  readonly #writer: MessageWriter
  readonly #bodies: ObservedBody[] = []
  #isOver = false

  constructor({ target, exchange, callouts, modes, timeoutMs }: ObservationOptions) {
    this.#exchange = exchange
    this.#modes = modes
    this.#stream = callouts.stream({
      target,
      path: method,
      exchange,
      subtype: 'ExtProc',
      timeoutMs: timeoutMs ?? defaultTimeoutMs,
      listener: this,
    })
    this.#writer = new MessageWriter(this.#stream, modes, true)
  }

  request(context: SentContext): void {
    const { request, requestBody } = this.#exchange
    const { sendsHeaders } = this.#modes.request
    const hasBody = requestBody.length !== 0
    if (sendsHeaders) {
      const value = { headers: requestFields(request), endOfStream: !hasBody }
      this.write({ case: 'requestHeaders', value }, context)
    }
    if (hasBody) this.#observe(requestBody, 'request', this.#modes.request)
  }

  response(context: SentContext): void {
    const { response, responseBody } = this.#exchange
    if (response === undefined || responseBody === undefined) return
    const hasBody = responseBody.length !== 0 && response.status !== 101
    if (this.#modes.response.sendsHeaders) {
      const value = { headers: responseFields(response), endOfStream: !hasBody }
      this.write({ case: 'responseHeaders', value }, context)
    }
    if (hasBody) this.#observe(responseBody, 'response', this.#modes.response)
  }

  #observe(body: Body, name: 'request' | 'response', modes: MessageModes): void {
    const wantsBody = modes.body !== bodyModes.none
    if (this.#isOver || (!wantsBody && !modes.sendsTrailers)) return
    this.#bodies.push(new ObservedBody(this, body, { name, wantsBody, ...modes }))
  }

  /** Returns false if the processor is slow; then the bodies wait for `resume`. */
  write(...message: Parameters<MessageWriter['write']>): boolean {
    if (this.#isOver) return true
    const hasRoom = this.#writer.write(...message)
    // The stream may have ended while the message was written.
    if (hasRoom || this.#isOver) return true
    this.#stream.expect(true)
    return false
  }

  onMessage(): void {}

  onDrain(): void {
    this.#stream.expect(false)
    for (const body of this.#bodies) body.resume()
  }

  onEnd(error: GatewayError | undefined): void {
    this.#isOver = true
    if (error !== undefined) {
      addNote(this.#exchange, 'traffic.extProc', `not observed: ${error.message}`)
    }
    for (const body of this.#bodies) body.resume()
  }

  /** Must be called when the exchange is over. */
  close(): void {
    if (!this.#isOver) this.#stream.end()
    this.#isOver = true
  }
}

interface ObservedParts {
  readonly name: 'request' | 'response'
  readonly wantsBody: boolean
  readonly sendsTrailers: boolean
}

/** A body that passes without waiting, and of which the processor gets a copy. */
class ObservedBody implements SideStream {
  readonly #observation: Observation
  readonly #parts: ObservedParts
  #returned: ReturnStream | undefined
  #isFull = false
  #isSlow = false

  constructor(observation: Observation, body: Body, parts: ObservedParts) {
    this.#observation = observation
    this.#parts = parts
    divertInto(body, this, (returned) => {
      this.#returned = returned
    })
  }

  push(bytes: Uint8Array): boolean {
    this.#isFull = this.#returned?.write(bytes) === false
    this.#isSlow = !this.#send(bytes, false)
    return !this.#isFull && !this.#isSlow
  }

  end(bytes: Uint8Array, trailers: string): void {
    if (bytes.length > 0) this.#returned?.write(bytes)
    const sendsTrailers = this.#parts.sendsTrailers && trailers !== ''
    this.#send(bytes, !sendsTrailers)
    if (sendsTrailers) {
      const value = { trailers: trailerFields(trailers) }
      const { name } = this.#parts
      this.#observation.write({
        case: name === 'request' ? 'requestTrailers' : 'responseTrailers',
        value,
      })
    }
    this.#returned?.end(trailers)
  }

  #send(body: Uint8Array, endOfStream: boolean): boolean {
    if (!this.#parts.wantsBody || (body.length === 0 && !endOfStream)) return true
    const part = this.#parts.name === 'request' ? 'requestBody' : 'responseBody'
    return this.#observation.write({ case: part, value: { body, endOfStream } })
  }

  drained(): void {
    this.#isFull = false
    this.#continue()
  }

  /** Called when the processor takes more. */
  resume(): void {
    this.#isSlow = false
    this.#continue()
  }

  #continue(): void {
    if (!this.#isFull && !this.#isSlow) this.#returned?.resume()
  }
}
