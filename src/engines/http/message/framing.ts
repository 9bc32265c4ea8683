/**
 * Decides whether a message has content, and how it is framed (RFC 9110 6.4.1, RFC 9112 6.3, RFC 9113
 * 8.1). This is decided only here, when a message is sent, after all changes by policies and filters.
 */

import type { BodyKind } from '../bytes/body-kind.ts'
import type { FramingFields } from './head-output.ts'
import type { RequestHeadView } from './request-head.ts'
import type { ResponseHeadView } from './response-head.ts'

export interface Framing {
  readonly fields: FramingFields
  /** Whether the body is sent. */
  readonly hasContent: boolean
  /** Whether the end of the connection ends the content. */
  readonly isCloseDelimited: boolean
}

/** The properties of a body that decide how it is framed. */
export interface BodyShape {
  /** How the received body was framed. */
  readonly kind: BodyKind
  /** Whether the received head states the length of the body. */
  readonly isLengthKnown: boolean
  /** `as-is` if the body is unchanged; otherwise its new length, or `chunked` if that is unknown. */
  readonly framing: 'as-is' | 'chunked' | number
}

const framing = (
  fields: FramingFields,
  hasContent: boolean,
  isCloseDelimited = false,
): Framing => ({
  fields,
  hasContent,
  isCloseDelimited,
})

export const withoutContent: Framing = framing('none', false)
const headAlone = framing('as-is', false)
const resetContent = framing(0, false)
const unchanged = framing('as-is', true)
const empty = framing(0, true)
const chunked = framing('chunked', true)
const framedBelow = framing('none', true)
const closeDelimited = framing('none', true, true)

/**
 * Returns the status to send to the client. Any 2xx would open the tunnel that an extended CONNECT
 * asks for (RFC 8441 4), so a response that opens no tunnel is sent as 501.
 */
export function statusForClient({ wasConnect }: RequestHeadView, status: number): number {
  return wasConnect && status >= 200 && status < 300 ? 501 : status
}

/** Decides how a response is framed. `framesBodies`: the connection does it itself, as HTTP/2 does. */
export function frameResponse(
  request: RequestHeadView,
  head: ResponseHeadView,
  body: BodyShape,
  framesBodies: boolean,
): Framing {
  const { status } = head
  if (status < 200 || status === 204) return withoutContent
  // Content is forbidden, and its absence must be stated (RFC 9110 15.3.6).
  if (status === 205) return resetContent
  if (status === 304) return frameNotModified(head, body)
  if (request.wasHead) return frameHeadAlone(head, body)
  const wanted = body.framing
  if (typeof wanted === 'number') return framing(wanted, true)
  if (wanted === 'as-is' && body.isLengthKnown) {
    const isStated = body.kind !== 'none' || head.contentLength === 0
    // Received without content: because of its status, as a response to HEAD, or as an empty stream.
    return isStated ? unchanged : framesBodies ? framedBelow : empty
  }
  return request.isHttp10 ? closeDelimited : chunked
}

/** Frames a 304. Its length is that of the response to a GET, which only the upstream knows. */
function frameNotModified(head: ResponseHeadView, body: BodyShape): Framing {
  return head.receivedStatus === 304 && body.framing === 'as-is' ? headAlone : withoutContent
}

/** Keeps the framing fields that a GET would have got (RFC 9110 9.3.2), if they are known. */
function frameHeadAlone(head: ResponseHeadView, { framing: wanted }: BodyShape): Framing {
  if (wanted === 'as-is') return headAlone
  const isOwn = head.receivedStatus === 0
  return isOwn && typeof wanted === 'number' ? framing(wanted, false) : withoutContent
}

/** Methods whose requests are not expected to have content (RFC 9110 8.6). */
const usuallyWithoutContent = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE'])

/**
 * Whether the request may have content. A TRACE must not (RFC 9110 9.3.8), and everything after a
 * request for a tunnel belongs to the tunnel.
 */
export function admitsContent({ method, upgrade }: RequestHeadView): boolean {
  return method !== 'TRACE' && upgrade === undefined
}

export function frameRequest(request: RequestHeadView, body: BodyShape): FramingFields {
  const wanted = body.framing
  return wanted === 0 && usuallyWithoutContent.has(request.method) ? 'none' : wanted
}
