/** What the head of a response of HTTP/1.1 means for the bytes behind it. */

import type { UpstreamHandler } from '../contracts/upstream.ts'
import type { BodyKind } from '../message/message-body.ts'
import type { ResponseHeadView } from '../message/response-head.ts'

/** RFC 9112 6.3, for a final response or 101. */
export function bodyKind(head: ResponseHeadView, isHead: boolean): BodyKind {
  const { status } = head
  if (isHead || status === 101 || status === 204 || status === 304) return 'none'
  if (head.isChunked) return 'chunked'
  return head.contentLength >= 0 ? 'length' : 'close'
}

/** A 101 names one of the protocols that were asked for (RFC 9110 7.8: names ignore case). */
export function switchesAsAsked(handler: UpstreamHandler, head: ResponseHeadView): boolean {
  const given = head.upgrade?.trim().toLowerCase()
  const wanted = handler.upgrade?.split(',') ?? []
  return wanted.some((protocol) => protocol.trim().toLowerCase() === given)
}
