/** The two halves of a conversation about an exchange: its request, then its response. */
import type { JsonObject } from '@bufbuild/protobuf'
import type { CommonResponse } from '../../../proto/gen/called/ext_proc_pb.ts'
import type { Body, Exchange, ResponseHead } from '../../exchange/exchange.ts'
import { BodyLedger } from './body-ledger.ts'
import { changeRequest, changeResponse, requestFields, responseFields } from './fields.ts'
import { bodyModes } from './modes.ts'
import type { Processing } from './processing.ts'
import { sendWhole } from './whole-body.ts'

/** By the name of the filter that they come from. */
export type FilterMetadata = Readonly<Record<string, JsonObject>>

/** The message gets another body, and nothing more is said of it. */
const continueAndReplace = 1

/**
 * Sends head and body of a request. Resolves once the processor has said what is to be changed of
 * the head, and that is changed; rejects where it fails, or answers instead.
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
  // At once: a processor may want to see all of the body before it says anything.
  if (hasBody) side.openBody(requestBody)
  processing.moved()
  return answered
}

/** The same for the response; `metadata` goes with the head, or with the body where that is not sent. */
export async function sendResponse(
  exchange: Exchange,
  processing: Processing,
  metadata?: FilterMetadata,
): Promise<void> {
  const { response, responseBody } = exchange
  if (response === undefined || responseBody === undefined) return
  processing.beginResponse()
  const hasBody = responseBody.length !== 0 && response.status !== 101
  if (processing.modes.sendsHeaders) {
    const { bufferLimit } = exchange
    await sendHead(response, responseBody, processing, { hasBody, metadata, bufferLimit })
  }
  if (hasBody && !processing.isOver && !processing.response.isReplaced) {
    await sendBody(exchange, responseBody, processing)
  }
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
  // Until the processor has said something, it may have ended without having seen the response.
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
  processing.moved()
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
  // Otherwise it is on its way since the headers were.
  else if (mode === bodyModes.fullDuplex && !sendsHeaders) side.openBody(responseBody)
  else if (mode === bodyModes.buffered || mode === bodyModes.bufferedPartial) {
    await sendWhole(exchange, processing, mode === bodyModes.bufferedPartial)
  }
}

/** The body that a message is to have instead; undefined where it keeps its own. */
function replacement(common: CommonResponse | undefined): Uint8Array | undefined {
  if (common?.status !== continueAndReplace) return undefined
  const mutation = common.bodyMutation?.mutation
  return mutation?.case === 'body' ? mutation.value : new Uint8Array()
}

/** What the gateway itself answers is nobody's to change. */
export function isOwnAnswer({ responseBody }: Exchange): boolean {
  return responseBody?.detour === undefined
}
