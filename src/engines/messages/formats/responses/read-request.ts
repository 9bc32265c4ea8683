/** Converts a request in the responses format to the common form. */
import type { Chat, Tool } from '../../chat.ts'
import {
  customTool,
  functionTool,
  readEffort,
  readGenerateContentFields,
  readOutput,
  readToolChoice,
  readTools,
} from '../../common/client-settings.ts'
import { booleanAt, field, isObject, numberAt, objectAt, stringAt } from '../../json/json.ts'
import { LlmError, UnsupportedByProviderError, unsupportedPart } from '../../llm-error.ts'
import { readInput } from './read-input.ts'

function readTool(tool: unknown, path: string): Tool {
  const type = stringAt(tool, 'type')
  const name = stringAt(tool, 'name')
  if (type !== 'function' && type !== 'custom') {
    throw unsupportedPart(path, `tools of type ${String(type)}`)
  }
  if (name === undefined) throw new LlmError(400, `${path}.name must be a string`)
  return type === 'custom'
    ? customTool(name, tool)
    : functionTool(name, tool, field(tool, 'parameters'))
}

const choiceTypes: readonly unknown[] = ['allowed_tools', 'function', 'custom']

function readToolSettings(body: unknown): Pick<Chat, 'tools' | 'webSearch' | 'toolChoice'> {
  const { tools, webSearch } = readTools(body, readTool)
  const choice = field(body, 'tool_choice')
  const type = field(choice, 'type')
  if (isObject(choice) && !choiceTypes.includes(type)) {
    throw unsupportedPart('tool_choice', 'choices of this form')
  }
  const allowed = type === 'allowed_tools' ? choice : undefined
  return { webSearch, ...readToolChoice(choice, tools, allowed, (tool) => stringAt(tool, 'name')) }
}

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
  const format = objectAt(objectAt(body, 'text'), 'format')
  return {
    model: stringAt(body, 'model') ?? '',
    ...readInput(body),
    ...readToolSettings(body),
    stream: booleanAt(body, 'stream') ?? false,
    parallelTools: booleanAt(body, 'parallel_tool_calls'),
    maxTokens: numberAt(body, 'max_output_tokens'),
    temperature: numberAt(body, 'temperature'),
    topP: numberAt(body, 'top_p'),
    reasoning: readEffort(field(objectAt(body, 'reasoning'), 'effort')),
    output: readOutput(stringAt(format, 'type'), format),
    user: stringAt(body, 'user'),
    generateContent: readGenerateContentFields(body),
  }
}
