/** A request in the messages format -> the common form. */
import {
  type Chat,
  type Effort,
  isEffort,
  type OutputFormat,
  type Reasoning,
  type ScalarFields,
  type Tool,
  type ToolChoice,
} from '../../chat.ts'
import {
  booleanAt,
  field,
  type JsonObject,
  listAt,
  numberAt,
  objectAt,
  stringAt,
} from '../../json.ts'
import { LlmError } from '../../llm-error.ts'
import {
  functionTool,
  isWebSearch,
  readWebSearch,
  type ToolSettings,
} from '../client-tool-settings.ts'
import { readGenerateContentFields } from '../generate-content/own-fields.ts'
import { given } from '../given.ts'
import { unsupportedPart } from '../unsupported-part.ts'
import { cacheOf, readMessages } from './read-messages.ts'

/** Tools that the provider itself would run have types of their own; each provider has others. */
function readTool(tool: unknown, path: string): Tool {
  const name = stringAt(tool, 'name')
  const type = stringAt(tool, 'type') ?? 'custom'
  if (type !== 'custom') throw unsupportedPart(path, `tools of type ${type}`)
  if (name === undefined) throw new LlmError(400, `${path}.name must be a string`)
  return { ...functionTool(name, tool, field(tool, 'input_schema')), ...cacheOf(tool) }
}

function readTools(body: unknown): ToolSettings {
  const tools: Tool[] = []
  let webSearch: ToolSettings['webSearch']
  for (const [at, tool] of listAt(body, 'tools').entries()) {
    if (isWebSearch(tool)) webSearch = readWebSearch(tool, `tools[${at}]`)
    else tools.push(readTool(tool, `tools[${at}]`))
  }
  if (listAt(body, 'mcp_servers').length > 0) {
    throw unsupportedPart('mcp_servers', 'servers that the provider calls')
  }
  const toolChoice = readToolChoice(objectAt(body, 'tool_choice'))
  return { tools, ...(webSearch && { webSearch }), ...(toolChoice && { toolChoice }) }
}

function readToolChoice(choice: JsonObject | undefined): ToolChoice | undefined {
  if (choice === undefined) return undefined
  const name = stringAt(choice, 'name')
  switch (stringAt(choice, 'type')) {
    case 'auto':
      return { type: 'auto' }
    case 'any':
      return { type: 'required' }
    case 'none':
      return { type: 'none' }
    case 'tool':
      if (name === undefined) throw new LlmError(400, 'tool_choice.name must be a string')
      return { type: 'tool', name }
    default:
      throw unsupportedPart('tool_choice', 'choices of this form')
  }
}

function readReasoning(body: unknown): Reasoning | undefined {
  const thinking = objectAt(body, 'thinking')
  const effort = field(objectAt(body, 'output_config'), 'effort')
  const known: { effort?: Effort } = isEffort(effort) ? { effort } : {}
  switch (stringAt(thinking, 'type')) {
    case 'enabled':
      return { type: 'budget', tokens: numberAt(thinking, 'budget_tokens') ?? 0 }
    case 'adaptive':
      return { type: 'adaptive', ...known }
    case 'disabled':
      return { type: 'off' }
    default:
      return undefined
  }
}

function readOutput(body: unknown): OutputFormat | undefined {
  const config = objectAt(body, 'output_config')
  const format = objectAt(config, 'format') ?? objectAt(body, 'output_format')
  if (stringAt(format, 'type') !== 'json_schema') return undefined
  return { type: 'schema', schema: field(format, 'schema') ?? {} }
}

function readStop(body: unknown): readonly string[] | undefined {
  const stop = listAt(body, 'stop_sequences').filter((one) => typeof one === 'string')
  return stop.length === 0 ? undefined : stop
}

/** @throws LlmError 400 where the body is no such request. */
export function readMessagesRequest(body: unknown): Chat {
  const choice = objectAt(body, 'tool_choice')
  const isSerial = booleanAt(choice, 'disable_parallel_tool_use')
  return {
    model: stringAt(body, 'model') ?? '',
    ...readMessages(body),
    ...readTools(body),
    stream: booleanAt(body, 'stream') ?? false,
    ...given<ScalarFields>({
      parallelTools: isSerial === undefined ? undefined : !isSerial,
      maxTokens: numberAt(body, 'max_tokens'),
      temperature: numberAt(body, 'temperature'),
      topP: numberAt(body, 'top_p'),
      topK: numberAt(body, 'top_k'),
      stop: readStop(body),
      seed: undefined,
      frequencyPenalty: undefined,
      presencePenalty: undefined,
      choices: undefined,
      reasoning: readReasoning(body),
      output: readOutput(body),
      user: stringAt(objectAt(body, 'metadata'), 'user_id'),
      generateContent: readGenerateContentFields(body),
    }),
  }
}
