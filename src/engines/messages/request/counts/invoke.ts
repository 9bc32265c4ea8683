/** Converts requests and responses of the CountTokens API of vendor F. */
import { countAt } from '../../common/usage.ts'
import { readConverseError } from '../../formats/converse/response.ts'
import type { JsonObject } from '../../json/json.ts'
import { LlmError } from '../../llm-error.ts'

/** The format requires a limit, which has no influence on the count. */
const anyMaxTokens = 4096

/** Converts a token count request in the messages format to the provider's format. */
function writeInvokeCount({ model: _model, ...body }: JsonObject): JsonObject {
  const defaults = { anthropic_version: 'bedrock-2023-05-31', max_tokens: anyMaxTokens }
  const encoded = Buffer.from(JSON.stringify({ ...defaults, ...body })).toString('base64')
  return { input: { invokeModel: { body: encoded } } }
}

/** @throws LlmError 502 if the response has no count. */
function readInvokeCount(body: JsonObject): number {
  const tokens = countAt(body, 'inputTokens')
  if (tokens === undefined) throw new LlmError(502, 'the response has no inputTokens')
  return tokens
}

/** Token counts of vendor F. */
export const invokeCount = {
  writeRequest: writeInvokeCount,
  readResponse: readInvokeCount,
  readError: readConverseError,
  responseFields: ['inputTokens'],
}
