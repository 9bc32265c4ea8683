/** A request for a chat completion -> the common form. */
import {
  type Block,
  type Chat,
  isEffort,
  type OutputFormat,
  type Reasoning,
  type TextBlock,
  type Tool,
  type ToolCallBlock,
  type ToolChoice,
  type ToolResultBlock,
  type Turn,
} from '../../chat.ts'
import { booleanAt, field, listAt, needList, numberAt, objectAt, stringAt } from '../../json.ts'
import { LlmError } from '../../llm-error.ts'
import { readArguments } from '../arguments.ts'
import { given } from '../given.ts'
import { sourceOfUrl } from '../media.ts'
import { toolSchema } from '../tool-schema.ts'
import { readVendorD } from '../vendor-d-fields.ts'
import { readThinking } from './thinking.ts'

/** Text of a message's content: a string, or the text parts of a list. */
function textsOf(content: unknown): string[] {
  if (typeof content === 'string') return [content]
  if (!Array.isArray(content)) return []
  return content.flatMap((part) => stringAt(part, 'text') ?? stringAt(part, 'refusal') ?? [])
}

const isBlank = (text: string): boolean => text.trim() === ''

function textBlocks(content: unknown): TextBlock[] {
  return textsOf(content)
    .filter((text) => !isBlank(text))
    .map((text) => ({ type: 'text', text }))
}

function userBlocks(content: unknown): Block[] {
  if (!Array.isArray(content)) return textBlocks(content)
  return content.flatMap((part): Block[] => {
    const text = stringAt(part, 'text')
    if (text !== undefined) return isBlank(text) ? [] : [{ type: 'text', text }]
    const url = stringAt(objectAt(part, 'image_url'), 'url')
    return url === undefined ? [] : [{ type: 'image', source: sourceOfUrl(url) }]
  })
}

function toolCall(call: unknown): ToolCallBlock[] {
  const made = objectAt(call, 'function')
  const custom = objectAt(call, 'custom')
  const name = stringAt(made ?? custom, 'name')
  if (name === undefined) return []
  const input =
    made === undefined
      ? { input: stringAt(custom, 'input') ?? '' }
      : readArguments(stringAt(made, 'arguments'))
  return [{ type: 'tool-call', id: stringAt(call, 'id') ?? '', name, input }]
}

function assistantBlocks(message: unknown): Block[] {
  const refusal = stringAt(message, 'refusal')
  return [
    ...readThinking(message),
    ...textBlocks(field(message, 'content')),
    ...(refusal === undefined || isBlank(refusal)
      ? []
      : [{ type: 'text' as const, text: refusal }]),
    ...listAt(message, 'tool_calls').flatMap(toolCall),
  ]
}

function toolResult(message: unknown): ToolResultBlock {
  const content = textsOf(field(message, 'content')).map((text) => ({
    type: 'text' as const,
    text,
  }))
  return { type: 'tool-result', id: stringAt(message, 'tool_call_id') ?? '', content }
}

/** Conversation and system texts; results of parallel calls share one turn, as providers demand. */
function readMessages(messages: readonly unknown[]): Pick<Chat, 'system' | 'turns'> {
  const system: TextBlock[] = []
  const turns: Turn[] = []
  let results: Block[] | undefined
  for (const message of messages) {
    const role = stringAt(message, 'role')
    if (role === 'tool') {
      if (results === undefined) {
        results = []
        turns.push({ role: 'user', blocks: results })
      }
      results.push(toolResult(message))
      continue
    }
    results = undefined
    if (role === 'system' || role === 'developer') {
      const text = textsOf(field(message, 'content')).join('\n')
      if (!isBlank(text)) system.push({ type: 'text', text })
    } else if (role === 'assistant') {
      turns.push({ role, blocks: assistantBlocks(message) })
    } else if (role === 'user' || role === 'function') {
      turns.push({ role: 'user', blocks: userBlocks(field(message, 'content')) })
    } else {
      throw new LlmError(400, `messages: unknown role ${String(role)}`)
    }
  }
  return { system, turns: turns.filter(({ blocks }) => blocks.length > 0) }
}

function readTool(tool: unknown): Tool[] {
  const made = objectAt(tool, 'function')
  const name = stringAt(made, 'name')
  if (stringAt(tool, 'type') !== 'function' || name === undefined) return []
  const description = stringAt(made, 'description')
  return [
    {
      name,
      ...(description !== undefined && { description }),
      schema: toolSchema(field(made, 'parameters')),
    },
  ]
}

function readToolChoice(choice: unknown): ToolChoice | undefined {
  if (choice === 'auto' || choice === 'required' || choice === 'none') return { type: choice }
  const name = stringAt(objectAt(choice, 'function'), 'name')
  return name === undefined ? undefined : { type: 'tool', name }
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
  return {
    model: stringAt(body, 'model') ?? '',
    ...readMessages(needList(body, 'messages')),
    tools: listAt(body, 'tools').flatMap(readTool),
    stream: booleanAt(body, 'stream') ?? false,
    ...given<Omit<Chat, 'model' | 'system' | 'turns' | 'tools' | 'stream'>>({
      toolChoice: readToolChoice(field(body, 'tool_choice')),
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
      ofVendorD: readVendorD(body),
    }),
  }
}
