/** The span of a request to a target. */
import type { startCallSpan } from '../../../../proxy/request/tracing.ts'
import type { ReceivedResponse } from '../target/transport.ts'

export type CallSpan = NonNullable<ReturnType<typeof startCallSpan>>

/** Ends the span with the request. Resolves and rejects as the request does. */
export async function endSpan(
  span: CallSpan,
  asked: Promise<ReceivedResponse>,
): Promise<ReceivedResponse> {
  try {
    const received = await asked
    span.end(received.response.error === undefined ? undefined : 'the response is an error')
    return received
  } catch (thrown) {
    span.end(thrown instanceof Error ? thrown.message : 'no response')
    throw thrown
  }
}
