/** The end of a response: why it ended, or the error if it ended without a result. */
import type { ResponseEvent, StopReason } from '../chat.ts'
import { LlmError } from '../llm-error.ts'

export type Ending = StopReason | LlmError

/** The ending for a reason that neither completes a response nor says that it was cut off. */
export const endedWithout = (reason: string): LlmError =>
  new LlmError(502, `the provider ended the response without a result: ${reason}`)

/** @throws LlmError 502 if the response has no result */
export function stopOfEnding(ending: Ending): StopReason {
  if (ending instanceof LlmError) throw ending
  return ending
}

export function eventOfEnding(
  ending: Ending,
  more: Omit<Extract<ResponseEvent, { type: 'stop' }>, 'type' | 'reason'> = {},
): ResponseEvent {
  if (!(ending instanceof LlmError)) return { type: 'stop', reason: ending, ...more }
  const { status, message } = ending
  return { type: 'error', error: { status, message } }
}
