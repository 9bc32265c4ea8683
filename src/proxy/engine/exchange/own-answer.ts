import type { ClientSide, ClientUser } from '../client/client-side.ts'
import { httpDate } from '../message/status-line.ts'

/**
 * Writes an answer of the gateway's own. Returns the bytes of its body that were sent: none for
 * HEAD, 204 and 304 (RFC 9110 6.4.1).
 * @throws GatewayError filter_failed when a header is not HTTP; nothing is written then
 */
export function writeOwnAnswer(
  client: ClientSide,
  exchange: ClientUser,
  status: number,
  headers: readonly (readonly [string, string])[],
  body: string | Uint8Array | undefined,
): number {
  const head = exchange.responseHead
  head.compose(status, headers)
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  const isEmpty = status === 204 || status === 304
  let text = head.text(isEmpty ? 'none' : { length: bytes?.length ?? 0 })
  if (!head.fields.has('date')) text += `date: ${httpDate()}\r\n`
  client.sendHead(text, exchange)
  const isSent = bytes !== undefined && !isEmpty && !exchange.request.wasHead
  if (isSent) {
    const whole = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    client.sink.appendBytes(whole, 0, whole.length)
  }
  client.sink.endBody('')
  client.sink.flush()
  return isSent ? bytes.length : 0
}
