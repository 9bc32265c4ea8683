import type { DownstreamHandler, DownstreamStream } from '../contracts/downstream.ts'
import type { ResponseStream } from '../contracts/requests.ts'
import { type Framing, frameResponse, tellableStatus } from '../message/framing.ts'
import type { MessageBody } from '../message/message-body.ts'
import { httpDate } from '../message/status-line.ts'

const nothing = Buffer.alloc(0)

export class OwnStream implements ResponseStream {
  readonly #body: MessageBody
  readonly #onFed: () => void
  #isOver = false
  onDrain: (() => void) | undefined

  /** `onFed`: the body has got bytes, perhaps the last ones. */
  constructor(body: MessageBody, onFed: () => void) {
    this.#body = body
    this.#onFed = onFed
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
    this.#onFed()
  }

  /** The exchange is over, and its body may belong to another one soon. */
  close(): void {
    this.#isOver = true
    this.onDrain = undefined
  }
}

/**
 * Writes the head of such a response, and says how its body is framed.
 * @throws GatewayError filter_failed when a header is not HTTP; nothing is written then
 */
export function beginOwnStream(
  client: DownstreamStream,
  exchange: DownstreamHandler,
  status: number,
  headers: readonly (readonly [string, string])[],
): Framing {
  const { request, responseHead, responseSource } = exchange
  responseHead.compose(tellableStatus(request, status), headers)
  responseSource.start('stream', -1, false)
  const framing = frameResponse(request, responseHead, responseSource, client.framesBodies)
  let text = responseHead.text(framing.fields)
  if (!responseHead.fields.has('date')) text += `date: ${httpDate()}\r\n`
  if (framing.isCloseDelimited) client.mustClose = true
  client.sendHead(text, exchange)
  return framing
}
