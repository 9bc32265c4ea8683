/**
 * Whether a message has content, and what frames it (RFC 9110 6.4.1, RFC 9112 6.3, RFC 9113 8.1).
 * Decided here alone, when a message is sent, from what policies and filters have made of it by then.
 */
import type { FramingFields } from './head-output.ts'
import type { BodyKind } from './message-body.ts'
import type { RequestHeadView } from './request-head.ts'
import type { ResponseHeadView } from './response-head.ts'

export interface Framing {
  readonly fields: FramingFields
  /** The body is sent. */
  readonly hasContent: boolean
  /** The end of the connection ends the content. */
  readonly isCloseDelimited: boolean
}

/** What is known of a body before it is sent. */
export interface BodyShape {
  /** How it came. */
  readonly kind: BodyKind
  /** The head that it came with tells its length. */
  readonly isLengthKnown: boolean
  /** What has become of it: nothing, or a body of a known or an unknown length. */
  readonly framing: 'as-is' | 'chunked' | { readonly length: number }
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
 * The status that a client can be told. Every 2xx opens the tunnel that an extended CONNECT asks for
 * (RFC 8441 4), so a response that opens none says 501.
 */
export function tellableStatus({ wasConnect }: RequestHeadView, status: number): number {
  return wasConnect && status >= 200 && status < 300 ? 501 : status
}

/**
 * `framesBodies`: the connection does so itself, as HTTP/2 does; a chunked body is not coded there.
 */
export function frameResponse(
  request: RequestHeadView,
  head: ResponseHeadView,
  body: BodyShape,
  framesBodies: boolean,
): Framing {
  const { status } = head
  if (status < 200 || status === 204) return withoutContent
  // Content is forbidden, and readers expect to be told that there is none (RFC 9110 15.3.6).
  if (status === 205) return resetContent
  if (status === 304) return frameNotModified(head, body)
  if (request.wasHead) return frameHeadAlone(head, body)
  const wanted = body.framing
  if (typeof wanted === 'object') return framing(wanted.length, true)
  if (wanted === 'as-is' && body.isLengthKnown) {
    const saysSo = body.kind !== 'none' || head.contentLength === 0
    // Without content came: a status that has none, an answer to HEAD, or a bare end of a stream.
    return saysSo ? unchanged : framesBodies ? framedBelow : empty
  }
  return request.isHttp10 ? closeDelimited : chunked
}

/** A length tells of the response to a GET, as the upstream alone knows it. */
function frameNotModified(head: ResponseHeadView, body: BodyShape): Framing {
  return head.receivedStatus === 304 && body.framing === 'as-is' ? headAlone : withoutContent
}

/** The fields that a GET would have got (RFC 9110 9.3.2), if they are known. */
function frameHeadAlone(head: ResponseHeadView, { framing: wanted }: BodyShape): Framing {
  if (wanted === 'as-is') return headAlone
  const isOwn = head.receivedStatus === 0
  return isOwn && typeof wanted === 'object' ? framing(wanted.length, false) : withoutContent
}

/** Methods whose requests are not expected to have content (RFC 9110 8.6). */
const mostlyBare = new Set(['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE'])

/**
 * May the request have content? A TRACE may not (RFC 9110 9.3.8). What follows a request for a tunnel
 * belongs to the tunnel.
 */
export function admitsContent({ method, upgrade }: RequestHeadView): boolean {
  return method !== 'TRACE' && upgrade === undefined
}

export function frameRequest(request: RequestHeadView, body: BodyShape): FramingFields {
  const wanted = body.framing
  if (typeof wanted !== 'object') return wanted
  const isBare = wanted.length === 0 && mostlyBare.has(request.method)
  return isBare ? 'none' : wanted.length
}
