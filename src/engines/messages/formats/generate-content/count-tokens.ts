/** Token counts of vendor D: of contents, or of a whole request. */
import type { Chat } from '../../chat.ts'
import { countAt } from '../../common/usage.ts'
import type { OtherFormat } from '../../format.ts'
import { field, isObject, type JsonObject } from '../../json/json.ts'
import { readGenerateContentRequest } from './read-request.ts'
import { generateContentRequests } from './requests.ts'

/** Members of a request, in either case. */
const inner = ['generateContentRequest', 'generate_content_request'] as const

/** The request that is counted has the name of the model, too. */
function withoutPath({ model: _model, stream: _stream, ...body }: JsonObject, model: string) {
  const name = inner.find((one) => isObject(field(body, one)))
  const request = name && field(body, name)
  if (name === undefined || !isObject(request) || request.model === undefined) return body
  return { ...body, [name]: { ...request, model: resourceOf(model) } }
}

/** The request may be in a member, or be the body itself. */
function readRequest(body: JsonObject): Chat {
  const name = inner.find((one) => isObject(field(body, one)))
  const request = name && field(body, name)
  return readGenerateContentRequest(isObject(request) ? request : body)
}

/** The name of a model as a resource. */
export const resourceOf = (model: string): string =>
  /^(?:tuned)?models\//i.test(model) ? model : `models/${model}`

export const geminiTokenCount: OtherFormat<'GeminiCountTokens'> = {
  ...generateContentRequests,
  name: 'GeminiCountTokens',
  operation: 'count_tokens',
  endings: [':counttokens'],
  canStream: false,
  withoutPath,
  readUsage: () => undefined,
  responseFields: ['totalTokens'],
  hasResponse: ({ totalTokens }) => typeof totalTokens === 'number',
  readCount: (body) => countAt(body, 'totalTokens'),
  count: { readRequest, writeResponse: (totalTokens) => ({ totalTokens }) },
}
