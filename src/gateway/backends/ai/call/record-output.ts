/** Records the output of streamed responses for what reads it later. */
import type { StreamEvent } from '../../../../engines/messages/chat.ts'
import type { ChatFormat } from '../../../../engines/messages/format.ts'
import { Completeness } from '../../../../engines/messages/response/completeness.ts'
import { StreamedOutput } from '../../../../engines/messages/response/model-output.ts'
import type { ModelCall } from './model-call.ts'

/** Returns a recorder of the model's output; undefined if neither an expression nor the cache of answers reads it. */
export function recorder(call: ModelCall, format: ChatFormat) {
  const { observers, exchange } = call.context
  const completeness = call.answer?.key === undefined ? undefined : new Completeness()
  call.completeness = completeness
  if (!observers.parts.modelTexts) return completeness?.push
  const output = new StreamedOutput(format, exchange.bufferLimit)
  call.output = output
  return (event: StreamEvent) => {
    output.push(event)
    completeness?.push(event)
  }
}
