/** Responses of the gateway's own. */
import { bufferOf, isInParts, type WholeBody } from '../../../ground/base/buffers.ts'
import type { DownstreamHandler, DownstreamStream } from '../contracts/downstream.ts'
import type { ResponseStream } from '../contracts/requests.ts'
import { type BodyShape, type Framing, frameResponse, statusForClient } from '../message/framing.ts'
import type { MessageBody } from '../message/message-body.ts'

const nothing = Buffer.alloc(0)

/** The shape of a body that is complete from the start. */
const wholeBody = (length: number): BodyShape => ({
  kind: 'none',
  isLengthKnown: true,
  framing: length,
})

/**
 * Writes a whole response. Returns the number of body bytes that were sent.
 * @throws GatewayError filter_failed if a header is not valid HTTP; nothing is written then
 */
export function writeOwnResponse(
  client: DownstreamStream,
  exchange: DownstreamHandler,
  status: number,
  headers: readonly (readonly [string, string])[],
  body: WholeBody | undefined,
): number {
  exchange.responseHead.compose(statusForClient(exchange.request, status), headers)
  const bytes = typeof body === 'string' ? Buffer.from(body) : (body ?? nothing)
  const length = isInParts(bytes) ? bytes.reduce((sum, part) => sum + part.length, 0) : bytes.length
  const { hasContent } = sendOwnHead(client, exchange, wholeBody(length))
  if (hasContent) {
    if (isInParts(bytes)) for (const part of bytes) append(client, part)
    else append(client, bytes)
  }
  client.sink.endBody('')
  client.sink.flush()
  return hasContent ? length : 0
}

const append = ({ sink }: DownstreamStream, bytes: Uint8Array): void =>
  sink.appendBytes(bufferOf(bytes), 0, bytes.length)

/**
 * Writes the head of a response whose body follows piece by piece. Returns how the body is framed.
 * @throws GatewayError filter_failed if a header is not valid HTTP; nothing is written then
 */
export function beginOwnStream(
  client: DownstreamStream,
  exchange: DownstreamHandler,
  status: number,
  headers: readonly (readonly [string, string])[],
): Framing {
  exchange.responseHead.compose(statusForClient(exchange.request, status), headers)
  exchange.responseSource.start('stream', -1, false)
  return sendOwnHead(client, exchange, exchange.responseSource)
}

function sendOwnHead(
  client: DownstreamStream,
  exchange: DownstreamHandler,
  body: BodyShape,
): Framing {
  const { request, responseHead: head } = exchange
  const framing = frameResponse(request, head, body, client.framesBodies)
  if (framing.isCloseDelimited) client.mustClose = true
  client.sendResponse(head, framing.fields, exchange)
  return framing
}

/** The body of a response that is written piece by piece. */
export class OwnStream implements ResponseStream {
  readonly #body: MessageBody
  readonly #onEnd: () => void
  #isOver = false
  onDrain: (() => void) | undefined

  /** `onEnd` is called once the body has all of its bytes. */
  constructor(body: MessageBody, onEnd: () => void) {
    this.#body = body
    this.#onEnd = onEnd
  }

  get isSlow(): boolean {
    return !this.#isOver && this.#body.blocked
  }

  write(bytes: Buffer): void {
    if (!this.#isOver) this.#body.feed(bytes, 0, bytes.length)
  }

  end(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#body.feed(nothing, 0, 0, true)
    this.#onEnd()
  }

  /** Called when the exchange is over, since its body may soon belong to another exchange. */
  close(): void {
    this.#isOver = true
    this.onDrain = undefined
  }
}
