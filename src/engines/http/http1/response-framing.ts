import type { GatewayError } from '../../../ground/errors/index.ts'
import type { BodyKind } from '../bytes/body-kind.ts'
import type { UpstreamHandler } from '../contracts/upstream.ts'
import type { ResponseHeadView } from '../message/response-head.ts'

/** The end of a connection whose last bytes are still unread. */
export interface DeferredEnd {
  /** The error of a response that is incomplete without further bytes. */
  readonly error: GatewayError
  /** Whether a response without a length ends here. */
  readonly isOrderly: boolean
}

/** Returns how the body after a final response or a 101 is framed (RFC 9112 6.3). */
export function bodyKind(head: ResponseHeadView, isHead: boolean): BodyKind {
  const { status } = head
  if (isHead || status === 101 || status === 204 || status === 304) return 'none'
  if (head.isChunked) return 'chunked'
  return head.contentLength >= 0 ? 'length' : 'close'
}

/** Whether a 101 names one of the requested protocols (RFC 9110 7.8: names ignore case). */
export function switchesAsAsked(handler: UpstreamHandler, head: ResponseHeadView): boolean {
  const given = head.upgrade?.trim().toLowerCase()
  const wanted = handler.upgrade?.split(',') ?? []
  return wanted.some((protocol) => protocol.trim().toLowerCase() === given)
}

/**
 * Whether the upstream has refused the request before it received all of it. A server that then
 * closes without reading the rest resets the connection (RFC 9112 9.6), so its response may end in a
 * reset.
 */
export function isRefusal(handler: UpstreamHandler | undefined): boolean {
  return handler !== undefined && !handler.isRequestSent && handler.responseHead.status >= 400
}

/**
 * Whether the response of a connection that has ended must still be delivered: `heldBytes` of its body
 * are unread, or it has switched protocols. A response that misses bytes of its length fails at once.
 */
export function mustDeliver(handler: UpstreamHandler | undefined, heldBytes: number): boolean {
  if (handler === undefined) return false
  if (handler.responseHead.status === 101) return true
  return heldBytes > 0 && (handler.responseSource.remaining ?? 0) <= heldBytes
}
