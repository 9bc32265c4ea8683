/** A request in the messages format -> the common form. */
import {
  type Block,
  type Chat,
  type Effort,
  type ImageBlock,
  isEffort,
  type MediaSource,
  type OutputFormat,
  type Reasoning,
  type TextBlock,
  type Tool,
  type ToolChoice,
  type Turn,
} from '../../chat.ts'
import {
  booleanAt,
  field,
  type JsonObject,
  listAt,
  needList,
  numberAt,
  objectAt,
  stringAt,
} from '../../json.ts'
import { LlmError } from '../../llm-error.ts'
import { given } from '../given.ts'
import { toolSchema } from '../tool-schema.ts'
import { readVendorD } from '../vendor-d-fields.ts'

/** `cache_control` on a block, in the common form. */
function cacheOf(block: unknown): { cache: true } | Record<never, never> {
  return field(block, 'cache_control') == null ? {} : { cache: true }
}

function textBlocks(content: unknown): TextBlock[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  if (!Array.isArray(content)) return []
  return content.flatMap((block): TextBlock[] => {
    const text = stringAt(block, 'type') === 'text' ? stringAt(block, 'text') : undefined
    return text === undefined ? [] : [{ type: 'text', text, ...cacheOf(block) }]
  })
}

function sourceOf(block: unknown): MediaSource | undefined {
  const source = objectAt(block, 'source')
  const url = stringAt(source, 'url')
  if (url !== undefined) return { type: 'url', url }
  const data = stringAt(source, 'data')
  const mediaType = stringAt(source, 'media_type') ?? 'text/plain'
  if (data === undefined) return undefined
  const isText = stringAt(source, 'type') === 'text'
  return { type: 'data', mediaType, data: isText ? Buffer.from(data).toString('base64') : data }
}

function imageBlock(block: unknown): ImageBlock[] {
  const source = sourceOf(block)
  return source === undefined ? [] : [{ type: 'image', source, ...cacheOf(block) }]
}

function toolResult(block: unknown): Block {
  const content = field(block, 'content')
  const images = Array.isArray(content)
    ? content.filter((one) => stringAt(one, 'type') === 'image').flatMap(imageBlock)
    : []
  const isError = booleanAt(block, 'is_error')
  return {
    type: 'tool-result',
    id: stringAt(block, 'tool_use_id') ?? '',
    content: [...textBlocks(content), ...images],
    ...(isError !== undefined && { isError }),
    ...cacheOf(block),
  }
}

function documentBlock(block: unknown): Block[] {
  const source = sourceOf(block)
  const name = stringAt(block, 'title')
  if (source === undefined) return []
  return [{ type: 'document', source, ...(name !== undefined && { name }), ...cacheOf(block) }]
}

function toolCall(block: unknown): Block[] {
  const name = stringAt(block, 'name')
  if (name === undefined) return []
  const id = stringAt(block, 'id') ?? ''
  return [{ type: 'tool-call', id, name, input: field(block, 'input') ?? {}, ...cacheOf(block) }]
}

function thinkingBlock(block: unknown): Block[] {
  const text = stringAt(block, 'thinking')
  const signature = stringAt(block, 'signature')
  if (text === undefined) return []
  return [{ type: 'thinking', text, ...(signature !== undefined && { signature }) }]
}

function redactedBlock(block: unknown): Block[] {
  const data = stringAt(block, 'data')
  return data === undefined ? [] : [{ type: 'redacted-thinking', data }]
}

/** Blocks that have no counterpart elsewhere (search results, server tools) are left out. */
const blockReaders: Readonly<Record<string, (block: unknown) => readonly Block[]>> = {
  text: (block) => textBlocks([block]),
  image: imageBlock,
  document: documentBlock,
  tool_use: toolCall,
  tool_result: (block) => [toolResult(block)],
  thinking: thinkingBlock,
  redacted_thinking: redactedBlock,
}

function blocksOf(content: unknown): Block[] {
  if (!Array.isArray(content)) return textBlocks(content)
  return content.flatMap((block) => {
    const type = stringAt(block, 'type') ?? ''
    return Object.hasOwn(blockReaders, type) ? (blockReaders[type]?.(block) ?? []) : []
  })
}

function readMessages(body: unknown): Pick<Chat, 'system' | 'turns'> {
  const system = textBlocks(field(body, 'system'))
  const turns: Turn[] = []
  for (const message of needList(body, 'messages')) {
    const role = stringAt(message, 'role')
    const content = field(message, 'content')
    if (role === 'system') system.push(...textBlocks(content))
    else if (role === 'user' || role === 'assistant') {
      turns.push({ role, blocks: blocksOf(content) })
    } else throw new LlmError(400, `messages: unknown role ${String(role)}`)
  }
  return { system, turns: turns.filter(({ blocks }) => blocks.length > 0) }
}

/** Tools that the provider itself would run have a type of their own, and are left out. */
function readTool(tool: unknown): Tool[] {
  const name = stringAt(tool, 'name')
  const type = stringAt(tool, 'type') ?? 'custom'
  if (name === undefined || type !== 'custom') return []
  const description = stringAt(tool, 'description')
  const schema = toolSchema(field(tool, 'input_schema'))
  return [{ name, ...(description !== undefined && { description }), schema, ...cacheOf(tool) }]
}

function readToolChoice(choice: JsonObject | undefined): ToolChoice | undefined {
  const name = stringAt(choice, 'name')
  switch (stringAt(choice, 'type')) {
    case 'auto':
      return { type: 'auto' }
    case 'any':
      return { type: 'required' }
    case 'none':
      return { type: 'none' }
    case 'tool':
      return name === undefined ? undefined : { type: 'tool', name }
    default:
      return undefined
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
    tools: listAt(body, 'tools').flatMap(readTool),
    stream: booleanAt(body, 'stream') ?? false,
    ...given<Omit<Chat, 'model' | 'system' | 'turns' | 'tools' | 'stream'>>({
      toolChoice: readToolChoice(choice),
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
      ofVendorD: readVendorD(body),
    }),
  }
}
