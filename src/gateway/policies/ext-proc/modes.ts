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

/** Which parts of a message are sent to a processor, and how. */
export interface MessageModes {
  readonly sendsHeaders: boolean
  readonly body: number
  readonly sendsTrailers: boolean
}

/** The modes of both messages of an exchange. */
export interface ExchangeModes {
  readonly request: MessageModes
  readonly response: MessageModes
  /** Whether answers of the processor may change the modes of parts that have not begun. */
  readonly allowsOverride: boolean
}

/** Sends everything; bodies are sent and returned at the same time. */
const everything: MessageModes = {
  sendsHeaders: true,
  body: bodyModes.fullDuplex,
  sendsTrailers: true,
}

export const allOfExchange: ExchangeModes = {
  request: everything,
  response: everything,
  allowsOverride: true,
}

/** Returns whether any part of a message is sent. */
export const wantsAny = ({ sendsHeaders, body, sendsTrailers }: MessageModes): boolean =>
  sendsHeaders || body !== bodyModes.none || sendsTrailers

/**
 * Returns the modes of a message after a processor has requested others. `hasBegun` is true if its headers were sent, so
 * that only the modes of the body and the trailers can change. Returns the same modes for an unknown body mode.
 */
export function overridden(
  modes: MessageModes,
  mode: ProcessingMode,
  name: 'request' | 'response',
  hasBegun: boolean,
): MessageModes {
  const isRequest = name === 'request'
  const body = isRequest ? mode.requestBodyMode : mode.responseBodyMode
  const headers = isRequest ? mode.requestHeaderMode : mode.responseHeaderMode
  const trailers = isRequest ? mode.requestTrailerMode : mode.responseTrailerMode
  if (body < bodyModes.none || body > bodyModes.fullDuplex) return modes
  const sends = (wanted: number, before: boolean) => (wanted === 0 ? before : wanted !== skip)
  const isWanted = sends(trailers, modes.sendsTrailers && body !== bodyModes.none)
  return {
    sendsHeaders: hasBegun ? modes.sendsHeaders : sends(headers, modes.sendsHeaders),
    body,
    // In full duplex mode, trailers mark the end of the body, so they must be sent.
    sendsTrailers: body === bodyModes.fullDuplex || isWanted,
  }
}
