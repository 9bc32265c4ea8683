import type { DownstreamHandler, DownstreamStream } from '../contracts/downstream.ts'
import { type BodyShape, frameResponse, tellableStatus } from '../message/framing.ts'
import { httpDate } from '../message/status-line.ts'

const nothing = Buffer.alloc(0)

/** Bytes that are there from the start. */
const wholeBody = (length: number): BodyShape => ({
  kind: 'none',
  isLengthKnown: true,
  framing: { length },
})

/**
 * Writes an answer of the gateway's own. Returns the bytes of its body that were sent.
 * @throws GatewayError filter_failed when a header is not HTTP; nothing is written then
 */
export function writeOwnAnswer(
  client: DownstreamStream,
  exchange: DownstreamHandler,
  status: number,
  headers: readonly (readonly [string, string])[],
  body: string | Uint8Array | undefined,
): number {
  const { request, responseHead: head } = exchange
  head.compose(tellableStatus(request, status), headers)
  const bytes = typeof body === 'string' ? Buffer.from(body) : (body ?? nothing)
  const { fields, hasContent } = frameResponse(
    request,
    head,
    wholeBody(bytes.length),
    client.framesBodies,
  )
  let text = head.text(fields)
  if (!head.fields.has('date')) text += `date: ${httpDate()}\r\n`
  client.sendHead(text, exchange)
  if (hasContent) {
    const whole = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    client.sink.appendBytes(whole, 0, whole.length)
  }
  client.sink.endBody('')
  client.sink.flush()
  return hasContent ? bytes.length : 0
}
