/** Converts a request in the messages format to the common form. */
import { hash } from 'node:crypto'
import type { Chat, OutputFormat, Reasoning, Tool } from '../../chat.ts'
import { cacheOf } from '../../common/cache-control.ts'
import { functionTool, readGenerateContentFields, readTools } from '../../common/client-settings.ts'
import { isEffort, showsThinkingIn } from '../../common/effort.ts'
import { readService } from '../../common/service.ts'
import {
  booleanAt,
  field,
  isObject,
  listAt,
  numberAt,
  objectAt,
  parseJson,
  stringAt,
} from '../../json/json.ts'
import { LlmError, unsupportedPart } from '../../llm-error.ts'
import { readMessages } from './read-messages.ts'

/** Reads a tool of the client. Tools that a provider runs itself have other types and are rejected. */
function readTool(tool: unknown, path: string): Tool {
  const name = stringAt(tool, 'name')
  const type = stringAt(tool, 'type') ?? 'custom'
  if (type !== 'custom') throw unsupportedPart(path, `tools of type ${type}`)
  if (name === undefined) throw new LlmError(400, `${path}.name must be a string`)
  return { ...functionTool(name, tool, field(tool, 'input_schema')), cache: cacheOf(tool) }
}

const choiceTypes = { auto: 'auto', any: 'required', none: 'none' } as const

function readToolChoice(choice: unknown): Chat['toolChoice'] {
  if (choice === undefined) return undefined
  const name = stringAt(choice, 'name')
  const type = stringAt(choice, 'type')
  if (type === 'auto' || type === 'any' || type === 'none') return { type: choiceTypes[type] }
  if (type !== 'tool') throw unsupportedPart('tool_choice', 'choices of this form')
  if (name === undefined) throw new LlmError(400, 'tool_choice.name must be a string')
  return { type: 'tool', name }
}

/**
 * Reads the choice of a tool, which is a search if it names one: other formats have no tool of that name.
 */
function settleToolChoice(
  choice: unknown,
  { tools, webSearch }: Pick<Chat, 'tools' | 'webSearch'>,
) {
  const read = readToolChoice(choice)
  const isTool = read?.type === 'tool' && tools.some(({ name }) => name === read.name)
  return read?.type === 'tool' && !isTool && webSearch ? ({ type: 'search' } as const) : read
}

/**
 * Returns an id that stands for the user. Clients write JSON with ids of the account, the device and the session,
 * which are only for the vendor of this format, and longer than others allow.
 */
function readUser(body: unknown): string | undefined {
  const id = stringAt(objectAt(body, 'metadata'), 'user_id')
  if (id === undefined) return undefined
  const parsed = parseJson(id)
  if (!isObject(parsed)) return id.length > maxUserLength ? hash('sha256', id) : id
  const { session_id: _session, ...user } = parsed
  return hash('sha256', JSON.stringify(user))
}

const maxUserLength = 64

function readReasoning(body: unknown): Reasoning | undefined {
  const thinking = objectAt(body, 'thinking')
  const effort = field(objectAt(body, 'output_config'), 'effort')
  switch (stringAt(thinking, 'type')) {
    case 'enabled':
      return { type: 'budget', tokens: numberAt(thinking, 'budget_tokens') ?? 0 }
    case 'adaptive':
    case 'between_tools':
      return { type: 'adaptive', effort: isEffort(effort) ? effort : undefined }
    case 'disabled':
      return { type: 'off' }
    default:
      return isEffort(effort) ? { type: 'effort', effort, isGuide: true } : undefined
  }
}

function readOutput(body: unknown): OutputFormat | undefined {
  const config = objectAt(body, 'output_config')
  const format = objectAt(config, 'format') ?? objectAt(body, 'output_format')
  if (stringAt(format, 'type') !== 'json_schema') return undefined
  // The vendor of the format always enforces schemas.
  const schema = field(format, 'schema') ?? {}
  return { type: 'schema', schema, strict: true, path: 'output_config.format' }
}

/** @throws LlmError 400 if the body is not a request in the messages format. */
export function readMessagesRequest(body: unknown): Chat {
  const messages = readMessages(body)
  const tools = readTools(body, readTool)
  if (listAt(body, 'mcp_servers').length > 0) {
    throw unsupportedPart('mcp_servers', 'servers that the provider calls')
  }
  const choice = objectAt(body, 'tool_choice')
  const isSerial = booleanAt(choice, 'disable_parallel_tool_use')
  const stop = listAt(body, 'stop_sequences').filter((one) => typeof one === 'string')
  return {
    model: stringAt(body, 'model') ?? '',
    ...messages,
    ...tools,
    toolChoice: settleToolChoice(choice, tools),
    stream: booleanAt(body, 'stream') ?? false,
    parallelTools: isSerial === undefined ? undefined : !isSerial,
    maxTokens: numberAt(body, 'max_tokens'),
    service: readService(stringAt(body, 'service_tier')),
    temperature: numberAt(body, 'temperature'),
    topP: numberAt(body, 'top_p'),
    topK: numberAt(body, 'top_k'),
    stop: stop.length === 0 ? undefined : stop,
    reasoning: readReasoning(body),
    showsThinking: showsThinkingIn(objectAt(body, 'thinking')),
    output: readOutput(body),
    user: readUser(body),
    cache: cacheOf(body),
    generateContent: readGenerateContentFields(body),
  }
}
