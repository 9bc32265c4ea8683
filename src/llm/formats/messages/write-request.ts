/** The common form -> a request in the messages format. */
import {
  type Block,
  type Chat,
  type MediaSource,
  type OutputFormat,
  type Reasoning,
  type Tool,
  type ToolChoice,
  type Turn,
  thinkingBudget,
} from '../../chat.ts'
import { compact, type JsonObject } from '../../json.ts'

/** The format demands a limit; this one holds where the client names none. */
export const defaultMaxTokens = 4096

/** The least budget that the format allows. */
const leastBudget = 1024

const cacheControl = (block: { readonly cache?: boolean }) =>
  block.cache === true ? { type: 'ephemeral' } : undefined

function source(media: MediaSource): JsonObject {
  return media.type === 'url'
    ? { type: 'url', url: media.url }
    : { type: 'base64', media_type: media.mediaType, data: media.data }
}

function writeBlock(block: Block): JsonObject[] {
  switch (block.type) {
    case 'text':
      if (block.text.trim() === '') return []
      return [compact({ type: 'text', text: block.text, cache_control: cacheControl(block) })]
    case 'image':
      return [
        compact({
          type: 'image',
          source: source(block.source),
          cache_control: cacheControl(block),
        }),
      ]
    case 'document':
      return [
        compact({
          type: 'document',
          source: source(block.source),
          title: block.name,
          cache_control: cacheControl(block),
        }),
      ]
    case 'tool-call':
      return [
        compact({
          type: 'tool_use',
          id: block.id,
          name: block.name,
          input: block.input,
          cache_control: cacheControl(block),
        }),
      ]
    case 'tool-result':
      return [
        compact({
          type: 'tool_result',
          tool_use_id: block.id,
          content: block.content.flatMap(writeBlock),
          is_error: block.isError,
          cache_control: cacheControl(block),
        }),
      ]
    case 'thinking':
      // Without its signature the provider refuses it.
      return block.signature === undefined
        ? []
        : [{ type: 'thinking', thinking: block.text, signature: block.signature }]
  }
}

function writeTurn({ role, blocks }: Turn): JsonObject[] {
  const content = blocks.flatMap(writeBlock)
  return content.length === 0 ? [] : [{ role, content }]
}

function writeSystem({ system }: Chat): unknown {
  if (system.length === 0) return undefined
  return system.some(({ cache }) => cache === true)
    ? system.flatMap(writeBlock)
    : system.map(({ text }) => text).join('\n')
}

function writeTool(tool: Tool): JsonObject {
  return compact({
    name: tool.name,
    description: tool.description,
    input_schema: tool.schema,
    cache_control: cacheControl(tool),
  })
}

const choiceTypes = { auto: 'auto', required: 'any', none: 'none', tool: 'tool' } as const

function writeToolChoice({ toolChoice, parallelTools, tools }: Chat): JsonObject | undefined {
  const choice: ToolChoice | undefined =
    toolChoice ?? (parallelTools !== undefined && tools.length > 0 ? { type: 'auto' } : undefined)
  if (choice === undefined) return undefined
  return compact({
    type: choiceTypes[choice.type],
    name: choice.type === 'tool' ? choice.name : undefined,
    disable_parallel_tool_use:
      parallelTools === undefined || choice.type === 'none' ? undefined : !parallelTools,
  })
}

function writeThinking(
  reasoning: Reasoning | undefined,
  maxTokens: number,
): JsonObject | undefined {
  if (reasoning?.type === 'adaptive') return { type: 'adaptive' }
  if (reasoning?.type === 'off') return undefined
  const wanted = thinkingBudget(reasoning)
  if (wanted === undefined) return undefined
  const budget = Math.min(wanted, maxTokens - 1)
  return budget < leastBudget ? undefined : { type: 'enabled', budget_tokens: budget }
}

function writeOutputConfig({ output, reasoning }: Chat): JsonObject | undefined {
  const effort = reasoning?.type === 'adaptive' ? reasoning.effort : undefined
  const format = writeFormat(output)
  return effort === undefined && format === undefined ? undefined : compact({ effort, format })
}

function writeFormat(output: OutputFormat | undefined): JsonObject | undefined {
  if (output === undefined) return undefined
  const any = { type: 'object', additionalProperties: true }
  return { type: 'json_schema', schema: output.type === 'json' ? any : output.schema }
}

export function writeMessagesRequest(chat: Chat): JsonObject {
  const maxTokens = chat.maxTokens ?? defaultMaxTokens
  const thinking = writeThinking(chat.reasoning, maxTokens)
  // While it thinks, a model takes no sampling parameters.
  const samples = thinking === undefined
  return compact({
    model: chat.model,
    max_tokens: maxTokens,
    system: writeSystem(chat),
    messages: chat.turns.flatMap(writeTurn),
    temperature: samples ? chat.temperature : undefined,
    top_p: samples ? chat.topP : undefined,
    top_k: samples ? chat.topK : undefined,
    stop_sequences: chat.stop,
    tools: chat.tools.length === 0 ? undefined : chat.tools.map(writeTool),
    tool_choice: writeToolChoice(chat),
    thinking,
    output_config: writeOutputConfig(chat),
    metadata: chat.user === undefined ? undefined : { user_id: chat.user },
    stream: chat.stream ? true : undefined,
  })
}
