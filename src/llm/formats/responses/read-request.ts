/** A request in the responses format -> the common form. */
import {
  type Block,
  type Chat,
  isEffort,
  type MediaSource,
  type OutputFormat,
  type TextBlock,
  type Tool,
  type ToolChoice,
  type Turn,
} from '../../chat.ts'
import { booleanAt, field, listAt, numberAt, objectAt, parseJson, stringAt } from '../../json.ts'
import { LlmError } from '../../llm-error.ts'
import { given } from '../given.ts'
import { sourceOfUrl } from '../media.ts'
import { toolSchema } from '../tool-schema.ts'
import { readVendorD } from '../vendor-d-fields.ts'
import { readReasoning } from './reasoning.ts'

function imageBlock(part: unknown): Block[] {
  const url = stringAt(part, 'image_url')
  if (url === undefined) throw new LlmError(400, 'input_image by file_id is not supported')
  return [{ type: 'image', source: sourceOfUrl(url) }]
}

function fileBlock(part: unknown): Block[] {
  const data = stringAt(part, 'file_data') ?? stringAt(part, 'file_url')
  if (data === undefined) throw new LlmError(400, 'input_file by file_id is not supported')
  const name = stringAt(part, 'filename')
  const isPlain = stringAt(part, 'file_data') !== undefined && !data.startsWith('data:')
  const source: MediaSource = isPlain
    ? { type: 'data', mediaType: 'application/octet-stream', data }
    : sourceOfUrl(data)
  return [{ type: 'document', source, ...(name !== undefined && { name }) }]
}

function partBlocks(part: unknown): Block[] {
  switch (stringAt(part, 'type')) {
    case 'input_text':
    case 'output_text':
    case 'text': {
      const text = stringAt(part, 'text')
      return text === undefined || text.trim() === '' ? [] : [{ type: 'text', text }]
    }
    case 'refusal': {
      const text = stringAt(part, 'refusal')
      return text === undefined ? [] : [{ type: 'text', text }]
    }
    case 'input_image':
      return imageBlock(part)
    case 'input_file':
      return fileBlock(part)
    default:
      return []
  }
}

function contentBlocks(content: unknown): Block[] {
  if (typeof content === 'string') {
    return content.trim() === '' ? [] : [{ type: 'text', text: content }]
  }
  return Array.isArray(content) ? content.flatMap(partBlocks) : []
}

const textsOf = (blocks: readonly Block[]): TextBlock[] =>
  blocks.flatMap((block) => (block.type === 'text' ? [block] : []))

/** Calls whose arguments are no JSON object cannot be repeated to a provider, and are left out. */
function callBlocks(item: unknown): Block[] {
  const name = stringAt(item, 'name')
  const id = stringAt(item, 'call_id') ?? ''
  if (name === undefined) return []
  if (stringAt(item, 'type') === 'custom_tool_call') {
    return [{ type: 'tool-call', id, name, input: { input: stringAt(item, 'input') ?? '' } }]
  }
  const text = stringAt(item, 'arguments') ?? '{}'
  const input = parseJson(text === '' ? '{}' : text)
  return input === undefined ? [] : [{ type: 'tool-call', id, name, input }]
}

function resultBlock(item: unknown): Block {
  const content = textsOf(contentBlocks(field(item, 'output')))
  return { type: 'tool-result', id: stringAt(item, 'call_id') ?? '', content }
}

/** Items of the assistant are one turn until somebody answers; results of tools are one as well. */
function append(
  turns: { role: Turn['role']; blocks: Block[] }[],
  role: Turn['role'],
  blocks: Block[],
) {
  const last = turns.at(-1)
  const isCallOrResult = ({ type }: Block) => type === 'tool-call' || type === 'tool-result'
  const isOneTurn = role === 'assistant' || blocks.every(isCallOrResult)
  if (last?.role === role && isOneTurn) last.blocks.push(...blocks)
  else if (blocks.length > 0) turns.push({ role, blocks })
}

function readItem(
  item: unknown,
  system: TextBlock[],
  turns: { role: Turn['role']; blocks: Block[] }[],
): void {
  switch (stringAt(item, 'type') ?? 'message') {
    case 'message': {
      const role = stringAt(item, 'role')
      const blocks = contentBlocks(field(item, 'content'))
      if (role === 'system' || role === 'developer') system.push(...textsOf(blocks))
      else append(turns, role === 'assistant' ? 'assistant' : 'user', blocks)
      break
    }
    case 'reasoning':
      append(turns, 'assistant', readReasoning(item))
      break
    case 'function_call':
    case 'custom_tool_call':
      append(turns, 'assistant', callBlocks(item))
      break
    case 'function_call_output':
    case 'custom_tool_call_output':
      append(turns, 'user', [resultBlock(item)])
      break
  }
}

function readInput(body: unknown): Pick<Chat, 'system' | 'turns'> {
  const instructions = stringAt(body, 'instructions')
  const system: TextBlock[] = instructions ? [{ type: 'text', text: instructions }] : []
  const turns: { role: Turn['role']; blocks: Block[] }[] = []
  const input = field(body, 'input')
  if (typeof input === 'string') append(turns, 'user', contentBlocks(input))
  else if (Array.isArray(input)) for (const item of input) readItem(item, system, turns)
  else throw new LlmError(400, 'input must be text or an array')
  return { system, turns }
}

function readTool(tool: unknown): Tool[] {
  const name = stringAt(tool, 'name')
  if (stringAt(tool, 'type') !== 'function' || name === undefined) return []
  const description = stringAt(tool, 'description')
  const schema = toolSchema(field(tool, 'parameters'))
  return [{ name, ...(description !== undefined && { description }), schema }]
}

function readToolChoice(choice: unknown): ToolChoice | undefined {
  if (choice === 'auto' || choice === 'required' || choice === 'none') return { type: choice }
  const name = stringAt(choice, 'name')
  if (stringAt(choice, 'type') !== 'function' || name === undefined) return undefined
  return { type: 'tool', name }
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

/**
 * No state is kept here: a request that refers to an earlier response can only be served by the
 * provider that made it.
 * @throws LlmError 400 where the body is no such request.
 */
export function readResponsesRequest(body: unknown): Chat {
  if (stringAt(body, 'previous_response_id') !== undefined) {
    throw new LlmError(400, 'previous_response_id: this provider keeps no responses')
  }
  return {
    model: stringAt(body, 'model') ?? '',
    ...readInput(body),
    tools: listAt(body, 'tools').flatMap(readTool),
    stream: booleanAt(body, 'stream') ?? false,
    ...given<Omit<Chat, 'model' | 'system' | 'turns' | 'tools' | 'stream'>>({
      toolChoice: readToolChoice(field(body, 'tool_choice')),
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
      ofVendorD: readVendorD(body),
    }),
  }
}
