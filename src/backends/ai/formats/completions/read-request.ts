/** A request for a chat completion -> the common form. */
import {
  type Chat,
  isEffort,
  type OutputFormat,
  type Reasoning,
  type ScalarFields,
  type Tool,
} from '../../chat.ts'
import { booleanAt, field, listAt, needList, numberAt, objectAt, stringAt } from '../../json.ts'
import { LlmError } from '../../llm-error.ts'
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
import { readMessages } from './read-messages.ts'

function readTool(tool: unknown, path: string): Tool {
  const type = stringAt(tool, 'type')
  if (type !== 'function' && type !== 'custom') {
    throw unsupportedPart(path, `tools of type ${String(type)}`)
  }
  const made = objectAt(tool, type)
  const name = stringAt(made, 'name')
  if (name === undefined) throw new LlmError(400, `${path}.${type}.name must be a string`)
  return type === 'custom'
    ? customTool(name, made)
    : functionTool(name, made, field(made, 'parameters'))
}

const nameOfChoice = (choice: unknown): string | undefined =>
  stringAt(objectAt(choice, 'function') ?? objectAt(choice, 'custom'), 'name')

function readTools(body: unknown): ToolSettings {
  if (listAt(body, 'functions').length > 0) {
    throw unsupportedPart('functions', 'functions outside of tools')
  }
  const tools: Tool[] = []
  const options = objectAt(body, 'web_search_options')
  let webSearch = options && readWebSearch(options, 'web_search_options')
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

function readToolChoice(choice: unknown, tools: readonly Tool[]): Partial<ToolSettings> {
  if (choice == null) return {}
  if (choice === 'auto' || choice === 'required' || choice === 'none') {
    return { toolChoice: { type: choice } }
  }
  const allowed = objectAt(choice, 'allowed_tools')
  if (allowed !== undefined) return allowedTools(tools, allowed, nameOfChoice)
  const name = nameOfChoice(choice)
  if (name === undefined) throw unsupportedPart('tool_choice', 'choices of this form')
  return { toolChoice: { type: 'tool', name } }
}

function readStop(stop: unknown): readonly string[] | undefined {
  if (typeof stop === 'string') return [stop]
  if (!Array.isArray(stop)) return undefined
  return stop.filter((one): one is string => typeof one === 'string')
}

/** `thinking_budget_tokens` is an extension that several gateways share. */
function readReasoning(body: unknown): Reasoning | undefined {
  const tokens = numberAt(body, 'thinking_budget_tokens')
  if (tokens !== undefined) return { type: 'budget', tokens }
  const effort = field(body, 'reasoning_effort')
  if (!isEffort(effort)) return undefined
  return effort === 'none' ? { type: 'off' } : { type: 'effort', effort }
}

function readOutput(body: unknown): OutputFormat | undefined {
  const format = objectAt(body, 'response_format')
  const type = stringAt(format, 'type')
  if (type === 'json_object') return { type: 'json' }
  const described = objectAt(format, 'json_schema')
  if (type !== 'json_schema' || described === undefined) return undefined
  const name = stringAt(described, 'name')
  const description = stringAt(described, 'description')
  return {
    type: 'schema',
    ...(name !== undefined && { name }),
    ...(description !== undefined && { description }),
    schema: field(described, 'schema') ?? {},
  }
}

/** @throws LlmError 400 where the body is no such request. */
export function readCompletionsRequest(body: unknown): Chat {
  const modalities = listAt(body, 'modalities')
  if (modalities.includes('audio')) {
    throw unsupportedPart('modalities', 'audio answers')
  }
  return {
    model: stringAt(body, 'model') ?? '',
    ...readMessages(needList(body, 'messages')),
    ...readTools(body),
    ...(modalities.includes('image') && { images: true }),
    stream: booleanAt(body, 'stream') ?? false,
    ...given<ScalarFields>({
      parallelTools: booleanAt(body, 'parallel_tool_calls'),
      maxTokens: numberAt(body, 'max_completion_tokens') ?? numberAt(body, 'max_tokens'),
      temperature: numberAt(body, 'temperature'),
      topP: numberAt(body, 'top_p'),
      topK: numberAt(body, 'top_k'),
      stop: readStop(field(body, 'stop')),
      seed: numberAt(body, 'seed'),
      frequencyPenalty: numberAt(body, 'frequency_penalty'),
      presencePenalty: numberAt(body, 'presence_penalty'),
      choices: numberAt(body, 'n'),
      reasoning: readReasoning(body),
      output: readOutput(body),
      user: stringAt(body, 'user'),
      generateContent: readGenerateContentFields(body),
    }),
  }
}
