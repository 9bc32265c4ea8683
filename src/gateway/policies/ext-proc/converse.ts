import type { JsonObject } from '@bufbuild/protobuf'
import type { CommonResponse } from '../../../../proto/gen/called/ext_proc_pb.ts'
import type { Body, Exchange, ResponseHead } from '../../../ground/exchange/exchange.ts'
import { BodyLedger } from './body-ledger.ts'
import { changeRequest, changeResponse, requestFields, responseFields } from './fields.ts'
import { bodyModes } from './modes.ts'
import type { Processing } from './processing.ts'
import { continueAndReplace } from './understood.ts'
import { sendWhole } from './whole-body.ts'

/** Metadata by the name of the Envoy filter that it belongs to. */
export type FilterMetadata = Readonly<Record<string, JsonObject>>

/**
 * Sends head and body of a request to the processor. Resolves after the processor's changes were applied
 * to the head. Rejects if the processor fails or responds to the client itself.
 */
export function sendRequest(
  { request, requestBody }: Exchange,
  processing: Processing,
  metadata: FilterMetadata | undefined,
): Promise<void> {
  const hasBody = requestBody.length !== 0
  const value = { headers: requestFields(request), endOfStream: !hasBody }
  processing.send({ case: 'requestHeaders', value }, metadata)
  const side = processing.request
  const answered = side.headersSent((common) => {
    changeRequest(request, common?.headerMutation)
    const bytes = replacement(common)
    if (bytes !== undefined) side.replaceBody(requestBody, bytes)
  })
  // The body is sent without waiting for an answer, because a processor may need all of it to answer.
  if (hasBody) side.openBody(requestBody)
  processing.onStateChange()
  return answered
}

/**
 * Sends head and body of the response according to `modes`; `metadata` is sent with the head. Rejects if
 * the processor fails, has failed since it answered the request, or responds to the client itself.
 */
export async function sendResponse(
  exchange: Exchange,
  processing: Processing,
  metadata?: FilterMetadata,
): Promise<void> {
  const { response, responseBody } = exchange
  if (response === undefined || responseBody === undefined) return
  processing.requireIntact()
  processing.beginResponse()
  const hasBody = responseBody.length !== 0 && response.status !== 101
  if (processing.modes.sendsHeaders) {
    const { bufferLimit } = exchange
    await sendHead(response, responseBody, processing, { hasBody, metadata, bufferLimit })
  }
  if (hasBody && !processing.response.isReplaced) {
    // A body that is being sent already has got the error of a processor that has failed.
    if (!processing.response.isSending) processing.requireIntact()
    if (!processing.isOver) await sendBody(exchange, responseBody, processing)
  }
  processing.endWhenDone()
}

function sendHead(
  response: ResponseHead,
  responseBody: Body,
  processing: Processing,
  {
    hasBody,
    metadata,
    bufferLimit,
  }: {
    readonly hasBody: boolean
    readonly metadata: FilterMetadata | undefined
    readonly bufferLimit: number
  },
): Promise<void> {
  const side = processing.response
  // Keeps the body until the first answer, since the processor may end the stream without one.
  const { ledger } = side
  side.ledger ??= new BodyLedger(bufferLimit)
  const value = { headers: responseFields(response), endOfStream: !hasBody }
  processing.send({ case: 'responseHeaders', value }, metadata)
  const answered = side.headersSent((common) => {
    side.ledger = ledger
    changeResponse(response, common?.headerMutation)
    const bytes = replacement(common)
    if (bytes !== undefined) side.replaceBody(responseBody, bytes)
  })
  if (hasBody && processing.modes.body === bodyModes.fullDuplex) side.openBody(responseBody)
  processing.onStateChange()
  return answered
}

async function sendBody(
  exchange: Exchange,
  responseBody: Body,
  processing: Processing,
): Promise<void> {
  const { body: mode, sendsHeaders } = processing.modes
  const side = processing.response
  if (mode === bodyModes.streamed) side.openBody(responseBody, true)
  // If headers are sent, `sendHead` has already opened the body.
  else if (mode === bodyModes.fullDuplex && !sendsHeaders) side.openBody(responseBody)
  else if (mode === bodyModes.buffered || mode === bodyModes.bufferedPartial) {
    await sendWhole(exchange, processing, mode === bodyModes.bufferedPartial)
  }
}

/** The body that replaces the message's body; undefined if the body is kept. */
function replacement(common: CommonResponse | undefined): Uint8Array | undefined {
  if (common?.status !== continueAndReplace) return undefined
  const mutation = common.bodyMutation?.mutation
  return mutation?.case === 'body' ? mutation.value : new Uint8Array()
}

/** Returns whether it is a response of the gateway itself. Processors do not receive those. */
export function isOwnAnswer({ responseBody }: Exchange): boolean {
  return responseBody?.divert === undefined
}
