/** Audits of whole responses, which only report what they would have done. */
import type { StreamEvent } from '../../../../engines/messages/chat.ts'
import type { ChatFormat } from '../../../../engines/messages/format.ts'
import { isObject, parseJson, utf8Text } from '../../../../engines/messages/json/json.ts'
import { LlmError } from '../../../../engines/messages/llm-error.ts'
import type { HeldStream } from '../../../../engines/messages/mask/held-stream.ts'
import { otherResponse } from '../../../../engines/messages/mask/message-forms.ts'
import type { RespondVerdict } from '../../../../ground/exchange/exchange.ts'
import { recordCheck } from './guard-checks.ts'
import type { ModelCall } from './model-call.ts'
import {
  actsOnResponse,
  guardHeld,
  guardResponse,
  holdStream,
  responseGuardsOf,
} from './response-guards.ts'

/** Whether guards read the response, but none of them may change it. */
export const hasAuditsOnly = (call: ModelCall): boolean =>
  !actsOnResponse(call) && responseGuardsOf(call).length > 0

/** Returns the guarded stream or a refusal; undefined if only audits have read it, so that it passes as it is. */
export async function judgeHeld(
  call: ModelCall,
  format: ChatFormat,
  events: readonly StreamEvent[],
): Promise<HeldStream | RespondVerdict | undefined> {
  const isActing = actsOnResponse(call)
  try {
    const held = holdStream(call, format, events)
    const refusal = await guardHeld(call, held)
    return isActing ? (refusal ?? held) : undefined
  } catch (error) {
    if (isActing) throw error
    noteUnread(call, error)
    return undefined
  }
}

/** Lets audits read the whole response that the client will get. */
export async function auditWhole<Result>(
  replaced: Result | undefined,
  call: ModelCall,
  format: ChatFormat,
  whole: Uint8Array,
): Promise<Result | undefined> {
  if (replaced !== undefined || call.context.over) return replaced
  const known = call.context.exchange.responseBody?.known
  const bytes = known?.complete === true ? known.bytes : whole
  try {
    const body = parseJson(utf8Text(bytes))
    if (!isObject(body)) throw new LlmError(502, otherResponse)
    await guardResponse(call, body, format)
  } catch (error) {
    noteUnread(call, error)
  }
  return undefined
}

/** Records that audits could not read a response. @throws any other error */
function noteUnread(call: ModelCall, error: unknown): void {
  if (!(error instanceof LlmError)) throw error
  for (const placed of responseGuardsOf(call)) {
    recordCheck(call, placed, 'FailOpen', { detail: 'the response cannot be read' })
  }
}
