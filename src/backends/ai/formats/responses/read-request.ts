/** A request in the responses format -> the common form. */
import { type Chat, isEffort, type OutputFormat, type ScalarFields, type Tool } from '../../chat.ts'
import { booleanAt, field, listAt, numberAt, objectAt, stringAt } from '../../json.ts'
import { LlmError, UnsupportedByProviderError } from '../../llm-error.ts'
import {
  allowedTools,
  customTool,
  functionTool,
  isWebSearch,
  readWebSearch,
  type ToolSettings,
} from '../client-tool-settings.ts'
import { readGenerateContentFields } from '../generate-content/own-fields.ts'
import { given } from '../given.ts'
import { unsupportedPart } from '../unsupported-part.ts'
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

function readTools(body: unknown): ToolSettings {
  const tools: Tool[] = []
  let webSearch: ToolSettings['webSearch']
  for (const [at, tool] of listAt(body, 'tools').entries()) {
    if (isWebSearch(tool)) webSearch = readWebSearch(tool, `tools[${at}]`)
    else tools.push(readTool(tool, `tools[${at}]`))
  }
  return {
    tools,
    ...(webSearch && { webSearch }),
    ...readToolChoice(field(body, 'tool_choice'), tools),
  }
}

const nameOfChoice = (choice: unknown): string | undefined => stringAt(choice, 'name')

function readToolChoice(choice: unknown, tools: readonly Tool[]): Partial<ToolSettings> {
  if (choice == null) return {}
  if (choice === 'auto' || choice === 'required' || choice === 'none') {
    return { toolChoice: { type: choice } }
  }
  const type = stringAt(choice, 'type')
  if (type === 'allowed_tools') return allowedTools(tools, choice, nameOfChoice)
  const name = nameOfChoice(choice)
  if (name === undefined || (type !== 'function' && type !== 'custom')) {
    throw unsupportedPart('tool_choice', 'choices of this form')
  }
  return { toolChoice: { type: 'tool', name } }
}

function readOutput(body: unknown): OutputFormat | undefined {
  const format = objectAt(objectAt(body, 'text'), 'format')
  const name = stringAt(format, 'name')
  const description = stringAt(format, 'description')
  switch (stringAt(format, 'type')) {
    case 'json_object':
      return { type: 'json' }
    case 'json_schema':
      return {
        type: 'schema',
        ...(name !== undefined && { name }),
        ...(description !== undefined && { description }),
        schema: field(format, 'schema') ?? {},
      }
    default:
      return undefined
  }
}

function readEffort(body: unknown): Chat['reasoning'] {
  const effort = field(objectAt(body, 'reasoning'), 'effort')
  if (!isEffort(effort)) return undefined
  return effort === 'none' ? { type: 'off' } : { type: 'effort', effort }
}

/** Fields that refer to what only the provider of the format keeps. */
const keptElsewhere = ['previous_response_id', 'conversation', 'prompt'] as const

/**
 * No state is kept here: a request that refers to an earlier response can only be served by the
 * provider that made it.
 * @throws LlmError 400 where the body is no such request.
 */
export function readResponsesRequest(body: unknown): Chat {
  for (const name of keptElsewhere) {
    if (field(body, name) == null) continue
    throw new UnsupportedByProviderError(`${name}: this provider keeps no responses and prompts`)
  }
  return {
    model: stringAt(body, 'model') ?? '',
    ...readInput(body),
    ...readTools(body),
    stream: booleanAt(body, 'stream') ?? false,
    ...given<ScalarFields>({
      parallelTools: booleanAt(body, 'parallel_tool_calls'),
      maxTokens: numberAt(body, 'max_output_tokens'),
      temperature: numberAt(body, 'temperature'),
      topP: numberAt(body, 'top_p'),
      topK: undefined,
      stop: undefined,
      seed: undefined,
      frequencyPenalty: undefined,
      presencePenalty: undefined,
      choices: undefined,
      reasoning: readEffort(body),
      output: readOutput(body),
      user: stringAt(body, 'user'),
      generateContent: readGenerateContentFields(body),
    }),
  }
}
