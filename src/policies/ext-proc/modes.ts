/** Which parts of a response are sent to a processor, and how. */
import type { ProcessingMode } from '../../../proto/gen/called/ext_proc_pb.ts'

/** Numbers of Envoy's BodySendMode. */
export const bodyModes = {
  none: 0,
  streamed: 1,
  buffered: 2,
  bufferedPartial: 3,
  fullDuplex: 4,
} as const

const skip = 2

export interface ResponseModes {
  readonly sendsHeaders: boolean
  readonly body: number
  readonly sendsTrailers: boolean
}

/** Everything is sent, and bodies go both ways at once. */
export const allOfResponse: ResponseModes = {
  sendsHeaders: true,
  body: bodyModes.fullDuplex,
  sendsTrailers: true,
}

/**
 * What a processor asks for in its answer to the request's headers. The body of the request is on its
 * way by then, so only the response is left to decide. Undefined: the mode is unknown.
 */
export function overridden(mode: ProcessingMode): ResponseModes | undefined {
  const body = mode.responseBodyMode
  if (body < bodyModes.none || body > bodyModes.fullDuplex) return undefined
  return {
    sendsHeaders: mode.responseHeaderMode !== skip,
    body,
    // Trailers end a body that goes both ways: leaving them out would leave it without an end.
    sendsTrailers: body === bodyModes.fullDuplex || mode.responseTrailerMode !== skip,
  }
}
