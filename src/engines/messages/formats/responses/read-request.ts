/** Converts a request in the responses format to the common form. */
import type { Chat } from '../../chat.ts'
import { readEffort, readGenerateContentFields, readOutput } from '../../common/client-settings.ts'
import { readService } from '../../common/service.ts'
import { booleanAt, field, numberAt, objectAt, stringAt } from '../../json/json.ts'
import { UnsupportedByProviderError, unsupportedPart } from '../../llm-error.ts'
import { readInput } from './read-input.ts'
import { RequestTools } from './read-tools.ts'

/** Fields that refer to state that only the vendor of the format stores. */
const storedFields = ['previous_response_id', 'conversation', 'prompt'] as const

/**
 * Reads a request. The gateway stores no responses, so a request that refers to an earlier response can
 * only be served by the provider that stored it.
 * @throws LlmError 400 if the body is not a request that can be converted.
 */
export function readResponsesRequest(body: unknown): Chat {
  for (const name of storedFields) {
    if (field(body, name) == null) continue
    throw new UnsupportedByProviderError(`${name}: this provider keeps no responses and prompts`)
  }
  if (booleanAt(body, 'background') === true) {
    throw unsupportedPart('background', 'responses in the background')
  }
  const text = objectAt(body, 'text')
  const format = objectAt(text, 'format')
  const reasoning = objectAt(body, 'reasoning')
  const tools = new RequestTools(body)
  return {
    model: stringAt(body, 'model') ?? '',
    ...readInput(body, tools),
    ...tools.settings(field(body, 'tool_choice')),
    stream: booleanAt(body, 'stream') ?? false,
    parallelTools: booleanAt(body, 'parallel_tool_calls'),
    maxTokens: numberAt(body, 'max_output_tokens'),
    temperature: numberAt(body, 'temperature'),
    topP: numberAt(body, 'top_p'),
    reasoning: readEffort(field(reasoning, 'effort')),
    showsThinking:
      field(reasoning, 'summary') != null || field(reasoning, 'generate_summary') != null,
    output: readOutput(stringAt(format, 'type'), format, 'text.format'),
    user: stringAt(body, 'user'),
    service: readService(stringAt(body, 'service_tier')),
    verbosity: stringAt(text, 'verbosity'),
    generateContent: readGenerateContentFields(body),
  }
}
