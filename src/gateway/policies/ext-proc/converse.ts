import type { CommonResponse } from '../../../../proto/gen/called/ext_proc_pb.ts'
import type { Body, Exchange } from '../../../ground/exchange/exchange.ts'
import { BodyLedger } from './body-ledger.ts'
import { changeRequest, changeResponse, requestFields, responseFields } from './fields.ts'
import type { MessageSide } from './message-side.ts'
import type { SentContext } from './message-writer.ts'
import { bodyModes, wantsAny } from './modes.ts'
import type { Processing } from './processing.ts'
import { continueAndReplace } from './understood.ts'
import { sendWhole } from './whole-body.ts'

/** A message of an exchange, as it is sent to a processor. */
interface Message {
  readonly side: MessageSide
  readonly body: Body
  readonly hasBody: boolean
  readonly bufferLimit: number
  sendHead(endOfStream: boolean): void
  /** Applies changes of the processor to the head. */
  change(common: CommonResponse | undefined): void
}

/**
 * Sends a request to the processor, according to the modes. Resolves after the processor's changes were applied to the
 * head. Rejects if the processor fails or responds to the client itself.
 */
export async function sendRequest(
  { request, requestBody, bufferLimit }: Exchange,
  processing: Processing,
  context?: SentContext,
): Promise<void> {
  const message: Message = {
    side: processing.request,
    body: requestBody,
    hasBody: requestBody.length !== 0,
    bufferLimit,
    sendHead(endOfStream) {
      const value = { headers: requestFields(request), endOfStream }
      processing.send({ case: 'requestHeaders', value }, context)
    },
    change: (common) => changeRequest(request, common?.headerMutation),
  }
  processing.isSendingRequest = true
  try {
    if (processing.modes.request.sendsHeaders) {
      const answered = sendHead(message, processing)
      // The body is on its way, or there is none: the stream may end with the last answer, before this continues.
      processing.isSendingRequest = message.hasBody && !processing.request.isSending
      await answered
    }
    const hasMore = message.hasBody && !processing.request.isReplaced && !processing.isOver
    if (hasMore) await sendBody(message, processing)
  } finally {
    processing.isSendingRequest = false
    processing.onStateChange()
  }
}

/**
 * Sends a response to the processor, according to the modes. Rejects if the processor fails, has failed since it
 * answered the request, or responds to the client itself.
 */
export async function sendResponse(
  { response, responseBody, bufferLimit }: Exchange,
  processing: Processing,
  context?: SentContext,
): Promise<void> {
  if (response === undefined || responseBody === undefined) return
  processing.requireIntact()
  if (wantsAny(processing.modes.response)) processing.beginResponse()
  const side = processing.response
  const message: Message = {
    side,
    body: responseBody,
    hasBody: responseBody.length !== 0 && response.status !== 101,
    bufferLimit,
    sendHead(endOfStream) {
      const value = { headers: responseFields(response), endOfStream }
      processing.send({ case: 'responseHeaders', value }, context)
    },
    change: (common) => changeResponse(response, common?.headerMutation),
  }
  if (processing.modes.response.sendsHeaders) {
    // Keeps the body until the first answer, since the processor may end the stream without one.
    const { ledger } = side
    side.ledger ??= new BodyLedger(bufferLimit)
    await sendHead(message, processing, () => {
      side.ledger = ledger
    })
  }
  if (message.hasBody && !side.isReplaced) {
    // A body that is being sent already has got the error of a processor that has failed.
    if (!side.isSending) processing.requireIntact()
    if (!processing.isOver) await sendBody(message, processing)
  }
  processing.endWhenDone()
}

function sendHead(
  message: Message,
  processing: Processing,
  onAnswer: () => void = () => {},
): Promise<void> {
  const { side, body, hasBody } = message
  message.sendHead(!hasBody)
  const answered = side.headersSent((common) => {
    onAnswer()
    message.change(common)
    const bytes = replacement(common)
    if (bytes !== undefined) side.replaceBody(body, bytes)
  })
  // The body is sent without waiting for an answer, because a processor may need all of it to answer.
  if (hasBody && processing.modes[side.name].body === bodyModes.fullDuplex) side.openBody(body)
  processing.onStateChange()
  return answered
}

async function sendBody(message: Message, processing: Processing): Promise<void> {
  const { side, body } = message
  // `sendHead` has opened the body in full duplex mode.
  if (side.isSending) return
  const { body: mode, sendsTrailers } = processing.modes[side.name]
  if (mode === bodyModes.streamed) side.openBody(body, 'by piece')
  else if (mode === bodyModes.fullDuplex) side.openBody(body)
  else {
    const mayHaveTrailers =
      mode === bodyModes.none ||
      (await sendWhole(message, processing, mode === bodyModes.bufferedPartial))
    // The rest passes; only its trailers are sent.
    if (mayHaveTrailers && sendsTrailers && !processing.isOver) side.openBody(body, 'passing')
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
