/** InvokeModel of vendor F with models of vendor C: its messages, with the model and the wish for a stream in the path. */
import type { ChatFormat } from '../../format.ts'
import { type JsonObject, listAt } from '../../json/json.ts'
import { bedrockRequests } from '../converse/client.ts'
import { anthropicErrors, messages } from '../messages/index.ts'

/** Returns the body for providers of messages, which have versions and beta features in headers. */
function withoutVersions(body: JsonObject): JsonObject {
  const { anthropic_version: _version, anthropic_beta: _features, ...rest } = body
  return rest
}

/** How providers of messages serve requests, in addition to their path. */
export const servedAsMessages = {
  kind: 'native',
  needsModel: true,
  errors: anthropicErrors,
  change: withoutVersions,
} as const

export const invokeModel: ChatFormat<'InvokeModel'> = {
  ...messages,
  ...bedrockRequests,
  name: 'InvokeModel',
  endings: ['/invoke', '/invoke-with-response-stream'],
  framing: 'chunks',
  headersOf(body) {
    const features = listAt(body, 'anthropic_beta').filter((one) => typeof one === 'string')
    return features.length === 0 ? [] : [['anthropic-beta', features.join(',')]]
  },
}
