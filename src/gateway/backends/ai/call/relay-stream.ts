/** Relays streamed responses to the client while they arrive. */
import type { ChatFormat } from '../../../../engines/messages/format.ts'
import { mediaTypes } from '../../../../engines/messages/framing/encoder.ts'
import type { OutgoingRequest } from '../../../../engines/messages/request/outgoing.ts'
import type { ConversionOptions } from '../../../../engines/messages/response/conversion.ts'
import { ModelResponseStream } from '../../../../engines/messages/response/stream.ts'
import type { Body, RespondVerdict, ResponseHead } from '../../../../ground/exchange/exchange.ts'
import { isRegex } from '../policy/bind-guard.ts'
import { relayInWindows } from './guard-windows.ts'
import type { ModelCall } from './model-call.ts'
import { recorder } from './record-output.ts'
import { streamAuditsOf, streamGuardOf, windowGuardsOf } from './response-guards.ts'
import { watchUsage } from './transcripts.ts'

interface StreamedResponse {
  readonly call: ModelCall
  readonly request: OutgoingRequest
  readonly response: ResponseHead
  readonly body: Body
  /** The client's format; undefined if the response is not a conversation. */
  readonly format: ChatFormat | undefined
}

/**
 * Converts the events of a stream while they pass. If guards ask services, returns a promise: of a response to send
 * instead, or of undefined once the stream may be sent.
 */
export function relayStream(
  { call, request, format, response, body }: StreamedResponse,
  conversionOf: (format: ChatFormat) => ConversionOptions,
): Promise<RespondVerdict | undefined> | undefined {
  if (format === undefined) return watchUsage(call)
  response.headers.set('content-type', mediaTypes[request.framing ?? 'sse'])
  const conversion = conversionOf(format)
  const guards = windowGuardsOf(call)
  const isByCore = !guards.some(({ guard }) => isRegex(guard))
  const guard = isByCore ? streamGuardOf(call, format, conversion.eventLimit) : undefined
  const audits = isByCore ? streamAuditsOf(call, format, conversion.eventLimit) : undefined
  const isGuarded = guard !== undefined
  const onEvent = recorder(call, format)
  call.audits = audits
  if (guards.length === 0) {
    const stream = new ModelResponseStream({ ...conversion, guard, isGuarded, audits, onEvent })
    call.stream = stream
    body.through(stream)
    return undefined
  }
  const source = new ModelResponseStream({
    ...conversion,
    guard,
    isGuarded,
    audits,
    framing: 'sse',
  })
  call.stream = source
  return relayInWindows(call, body, { guards, conversion, source, onEvent })
}
