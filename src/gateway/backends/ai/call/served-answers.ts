/**
 * Runs guards on a stored answer before it is served again, if one of them asks a service, whose rules may have changed.
 * All other guards are a part of the key of the answer, and have checked it before it was stored.
 */
import type { StreamEvent } from '../../../../engines/messages/chat.ts'
import { chatFormatOf } from '../../../../engines/messages/format.ts'
import { eventEncoder } from '../../../../engines/messages/framing/encoder.ts'
import { SseDecoder } from '../../../../engines/messages/framing/sse.ts'
import { utf8Text } from '../../../../engines/messages/json/json.ts'
import type { OutgoingRequest } from '../../../../engines/messages/request/outgoing.ts'
import { needObject } from '../../../../engines/messages/response/provider-error.ts'
import type { RespondVerdict } from '../../../../ground/exchange/exchange.ts'
import type { StoredAnswer } from '../answers/answer-memory.ts'
import type { ModelCall } from './model-call.ts'
import { guardHeld, guardResponse, holdStream } from './response-guards.ts'

/** Whether a service judges responses, and may change them. */
export const isJudgedByService = ({ policy }: ModelCall): boolean =>
  policy?.guardsResponses === true && policy.responseChain === undefined

/** Returns whether guards can judge the stored answer to a request. */
export const canJudgeAgain = ({ format, isStream, framing = 'sse' }: OutgoingRequest): boolean =>
  chatFormatOf(format) !== undefined && (!isStream || framing === 'sse')

/** Returns the bytes that the client gets, or the refusal of a guard. */
export async function judgeAgain(
  call: ModelCall,
  { body }: StoredAnswer,
  { format, isStream }: OutgoingRequest,
): Promise<Uint8Array | RespondVerdict> {
  const chat = chatFormatOf(format)
  if (chat === undefined) throw new Error(`${format.name} answers cannot be judged again`)
  if (!isStream) {
    const judged = await guardResponse(call, needObject(utf8Text(body)), chat)
    return judged.refusal ?? Buffer.from(JSON.stringify(judged.body))
  }
  const events: StreamEvent[] = []
  const decoder = new SseDecoder(Number.POSITIVE_INFINITY)
  decoder.push(body, (event) => void events.push(event))
  const held = holdStream(call, chat, events)
  const refusal = await guardHeld(call, held)
  const encoder = eventEncoder('sse')
  return refusal ?? Buffer.concat([encoder.encode(held.release()), encoder.end()])
}
