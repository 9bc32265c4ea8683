/** Responses to calls that the gateway refuses. */
import { codes, resultText } from '../../json-rpc.ts'
import type { McpRequest } from '../../message.ts'
import type { ProtocolEra } from '../../methods.ts'
import type { ClientResponse } from '../exchange/message-stream.ts'
import { refusal } from './located-item.ts'

/**
 * Models read the results of tools, so that a refused call has a result with the reason. Errors of the protocol may
 * never reach them.
 */
export function refusedCall(
  request: Pick<McpRequest, 'id' | 'method'>,
  era: ProtocolEra,
  message: string,
): ClientResponse {
  if (request.method !== 'tools/call') return refusal(request, codes.invalidRequest, message)
  const result = {
    ...(era === 'modern' && { resultType: 'complete' }),
    content: [{ type: 'text', text: message }],
    isError: true,
  }
  return { text: resultText(request.id, JSON.stringify(result)) }
}
