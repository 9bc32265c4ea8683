/**
 * Asks the user of a client to open a page, because a server needs a grant that the user has not given yet.
 *
 *   2025-11-25    error -32042 with the URL (URL elicitation)
 *   2026-07-28    an `input_required` result with the URL
 *   clients that declare no URL elicitation    a failed tool call with the URL in its text
 */
import { randomUUID } from 'node:crypto'
import { isObject } from '../../../../../ground/base/json-object.ts'
import type { RespondVerdict } from '../../../../../ground/exchange/exchange.ts'
import { type Edit, jsonValue, member } from '../../json/node.ts'
import { codes, errorText, resultText } from '../../json-rpc.ts'
import type { McpRequest } from '../../message.ts'
import type { ProtocolEra } from '../../methods.ts'

type Consent = NonNullable<RespondVerdict['consent']>

/** Key of the question in `inputRequests`. The answer proves nothing: the gateway looks for the grant again. */
const inputKey = 'sluice-consent'
/** Methods whose results may be `input_required`. */
const asking: readonly string[] = ['tools/call', 'prompts/get', 'resources/read']

export const consentError = (id: string | undefined, { url, message }: Consent): string =>
  errorText(id, codes.elicitationRequired, message, {
    elicitations: [{ mode: 'url', elicitationId: randomUUID(), url, message }],
  })

/** The response to a request of a client. `id` is JSON; `capabilities` are undefined if they are not known. */
export function consentText(
  { id, method }: { readonly id: string; readonly method: string },
  era: ProtocolEra,
  capabilities: unknown,
  consent: Consent,
): string {
  const { url, message } = consent
  const elicitation = isObject(capabilities) ? capabilities.elicitation : undefined
  const takesURL = isObject(elicitation) && isObject(elicitation.url)
  if (era === 'modern' && takesURL && asking.includes(method)) {
    const question = { method: 'elicitation/create', params: { mode: 'url', message, url } }
    const inputRequests = { [inputKey]: question }
    return resultText(id, JSON.stringify({ resultType: 'input_required', inputRequests }))
  }
  if (method === 'tools/call' && !takesURL) {
    const text = `${message}: ${url}`
    const result = { content: [{ type: 'text', text }], isError: true }
    return resultText(
      id,
      JSON.stringify(era === 'modern' ? { resultType: 'complete', ...result } : result),
    )
  }
  return consentError(id, consent)
}

/** The edit that empties the answer to the question of the gateway, which is not for the server. */
export function consentEdit(request: McpRequest): Edit | undefined {
  const answers = member(request.params, 'inputResponses')
  if (answers === undefined) return undefined
  const value = jsonValue(request.text, answers)
  const isOwn = isObject(value) && Object.keys(value).join() === inputKey
  return isOwn ? { start: answers.start, end: answers.end, text: '{}' } : undefined
}
