/** Counting tokens of what a model would be invoked with (Bedrock CountTokens). */
import { type JsonObject, numberAt } from '../json.ts'
import { LlmError } from '../llm-error.ts'
import { defaultMaxTokens } from './messages/write-request.ts'

/** A count in the messages format -> the provider's. */
export function writeInvokeCount({ model: _model, ...body }: JsonObject): JsonObject {
  const invoked = {
    anthropic_version: 'bedrock-2023-05-31',
    max_tokens: defaultMaxTokens,
    ...body,
  }
  const encoded = Buffer.from(JSON.stringify(invoked)).toString('base64')
  return { input: { invokeModel: { body: encoded } } }
}

/** @throws LlmError 502 if the answer has no count. */
export function readInvokeCount(body: JsonObject): number {
  const tokens = numberAt(body, 'inputTokens')
  if (tokens === undefined) throw new LlmError(502, 'the answer has no inputTokens')
  return tokens
}
