import type { ProcessingMode } from '../../../../proto/gen/called/ext_proc_pb.ts'

/** Numbers of Envoy's enum BodySendMode. */
export const bodyModes = {
  none: 0,
  streamed: 1,
  buffered: 2,
  bufferedPartial: 3,
  fullDuplex: 4,
} as const

const skip = 2

/** Which parts of a response are sent to a processor, and how. */
export interface ResponseModes {
  readonly sendsHeaders: boolean
  readonly body: number
  readonly sendsTrailers: boolean
}

/** Sends everything; bodies are sent and returned at the same time. */
export const allOfResponse: ResponseModes = {
  sendsHeaders: true,
  body: bodyModes.fullDuplex,
  sendsTrailers: true,
}

/**
 * Reads the modes that a processor requests when it answers the request's headers. They apply only to the
 * response, since the request's body is already being sent. Returns undefined for an unknown mode.
 */
export function overridden(mode: ProcessingMode): ResponseModes | undefined {
  const body = mode.responseBodyMode
  if (body < bodyModes.none || body > bodyModes.fullDuplex) return undefined
  return {
    sendsHeaders: mode.responseHeaderMode !== skip,
    body,
    // In full duplex mode, trailers mark the end of the body, so they must be sent.
    sendsTrailers: body === bodyModes.fullDuplex || mode.responseTrailerMode !== skip,
  }
}
