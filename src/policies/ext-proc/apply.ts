import type { CommonResponse } from '../../../proto/gen/called/ext_proc_pb.ts'
import { GatewayError } from '../../errors.ts'
import { onceOver } from '../../exchange/cleanup.ts'
import {
  type Body,
  type Callouts,
  type Exchange,
  next,
  type ResponseHead,
  type Verdict,
} from '../../exchange/exchange.ts'
import { takeAnswer } from '../../exchange/interruption.ts'
import type { PolicyApply } from '../define.ts'
import { claimsMetadata } from '../ext-auth/check-request.ts'
import type { ExtProcConfig } from './config.ts'
import { changeRequest, changeResponse, requestFields, responseFields } from './fields.ts'
import { takeOver } from './immediate.ts'
import { bodyModes } from './modes.ts'
import { AnsweredInstead, Processing } from './processing.ts'
import { sendWhole } from './whole-body.ts'

/** Each policy keeps its conversation under a key of its own: two phases may ask two processors. */
let policies = 0

/** The message gets another body, and nothing more is said of it. */
const continueAndReplace = 1

const apply: PolicyApply<ExtProcConfig> = {
  bind({ target }, callouts) {
    const fact = `extProc.${policies++}`
    return {
      onRequest: (exchange) => processRequest(exchange, target, callouts, fact),
      onResponse(exchange) {
        const processing = exchange.facts.get(fact) as Processing | undefined
        const isOwn = exchange.responseBody?.detour === undefined
        // What the gateway itself answers is nobody's to change.
        if (processing === undefined || isOwn || processing.isOver) return
        return processResponse(exchange, processing)
      },
    }
  },
}

export default apply

async function processRequest(
  exchange: Exchange,
  target: ExtProcConfig['target'],
  callouts: Callouts,
  fact: string,
): Promise<Verdict> {
  const processing = new Processing(target, exchange, callouts)
  exchange.facts.set(fact, processing)
  onceOver(exchange, () => processing.close())
  const { request, requestBody } = exchange
  const hasBody = requestBody.length !== 0
  const value = { headers: requestFields(request), endOfStream: !hasBody }
  processing.send({ case: 'requestHeaders', value }, claimsMetadata(exchange))
  const side = processing.request
  const answered = side.headersSent((common) => {
    changeRequest(request, common?.headerMutation)
    const bytes = replacement(common)
    if (bytes !== undefined) side.replaceBody(requestBody, bytes)
  })
  // At once: a processor may want to see all of the body before it says anything.
  if (hasBody) side.openBody(requestBody)
  processing.moved()
  try {
    await answered
    return next
  } catch (error) {
    return answerInstead(exchange, error)
  }
}

function answerInstead(exchange: Exchange, error: unknown): Verdict {
  const cause = error instanceof GatewayError ? error.cause : undefined
  if (!(cause instanceof AnsweredInstead)) throw error
  takeAnswer(exchange)
  return cause.answer
}

async function processResponse(exchange: Exchange, processing: Processing): Promise<void> {
  const { response, responseBody } = exchange
  if (response === undefined || responseBody === undefined) return
  processing.beginResponse()
  const hasBody = responseBody.length !== 0 && response.status !== 101
  try {
    if (processing.modes.sendsHeaders) {
      await processHeaders(response, responseBody, processing, hasBody)
    }
    if (hasBody && !processing.isOver && !processing.response.isReplaced) {
      await processBody(exchange, responseBody, processing)
    }
  } catch (error) {
    const verdict = answerInstead(exchange, error)
    if (verdict.kind === 'respond') takeOver(exchange, verdict)
  }
}

function processHeaders(
  response: ResponseHead,
  responseBody: Body,
  processing: Processing,
  hasBody: boolean,
): Promise<void> {
  const side = processing.response
  const value = { headers: responseFields(response), endOfStream: !hasBody }
  processing.send({ case: 'responseHeaders', value })
  const answered = side.headersSent((common) => {
    changeResponse(response, common?.headerMutation)
    const bytes = replacement(common)
    if (bytes !== undefined) side.replaceBody(responseBody, bytes)
  })
  if (hasBody && processing.modes.body === bodyModes.fullDuplex) side.openBody(responseBody)
  processing.moved()
  return answered
}

async function processBody(
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
