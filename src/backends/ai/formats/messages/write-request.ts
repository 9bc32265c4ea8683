/** The common form -> a request in the messages format. */
import {
  type Block,
  type Chat,
  type DocumentBlock,
  hasToolBlocks,
  type MediaSource,
  type OutputFormat,
  type Tool,
  type ToolChoice,
  type Turn,
  unavailableTool,
  type WebSearch,
} from '../../chat.ts'
import { compact, type JsonObject } from '../../json.ts'
import { argumentsObject } from '../arguments.ts'
import { textOfDocument } from '../media.ts'
import type { ToolLabels } from '../tool-labels.ts'
import { unsupportedPart } from '../unsupported-part.ts'
import { settleThinking } from './thinking.ts'

/** The format demands a limit; this one holds where the client names none. */
export const defaultMaxTokens = 4096

const cacheControl = (block: { readonly cache?: boolean }) =>
  block.cache === true ? { type: 'ephemeral' } : undefined

function source(media: MediaSource): JsonObject {
  return media.type === 'url'
    ? { type: 'url', url: media.url }
    : { type: 'base64', media_type: media.mediaType, data: media.data }
}

function documentSource(block: DocumentBlock): JsonObject {
  const data = textOfDocument(block)
  if (data !== undefined) return { type: 'text', media_type: 'text/plain', data }
  if (block.source.type === 'data' && block.source.mediaType !== 'application/pdf') {
    throw unsupportedPart(block.path, `documents of type ${block.source.mediaType}`)
  }
  return source(block.source)
}

function writeBlock(block: Block, labels: ToolLabels): JsonObject[] {
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
          source: documentSource(block),
          title: block.name,
          context: block.context,
          cache_control: cacheControl(block),
        }),
      ]
    case 'audio':
      throw unsupportedPart(block.path, 'audio parts')
    case 'search-result':
      return [
        compact({
          type: 'search_result',
          source: block.source,
          title: block.title,
          content: block.texts.map((text) => ({ type: 'text', text })),
          cache_control: cacheControl(block),
        }),
      ]
    case 'tool-call':
      return [
        compact({
          type: 'tool_use',
          id: labels.callId(block.id),
          name: labels.name(block.name),
          input: argumentsObject(block.input),
          cache_control: cacheControl(block),
        }),
      ]
    case 'tool-result':
      return [
        compact({
          type: 'tool_result',
          tool_use_id: labels.resultId(block.id),
          content: block.content.flatMap((part) => writeBlock(part, labels)),
          is_error: block.isError,
          cache_control: cacheControl(block),
        }),
      ]
    case 'thinking':
      // Without its signature the provider refuses it.
      return block.signature
        ? [{ type: 'thinking', thinking: block.text, signature: block.signature }]
        : []
    case 'redacted-thinking':
      return [{ type: 'redacted_thinking', data: block.data }]
  }
}

function writeTurn({ role, blocks }: Turn, labels: ToolLabels): JsonObject[] {
  const content = blocks.flatMap((block) => writeBlock(block, labels))
  return content.length === 0 ? [] : [{ role, content }]
}

function writeSystem({ system }: Chat, labels: ToolLabels): unknown {
  if (system.length === 0) return undefined
  return system.some(({ cache }) => cache === true)
    ? system.flatMap((block) => writeBlock(block, labels))
    : system.map(({ text }) => text).join('\n')
}

function writeTool(tool: Tool, labels: ToolLabels): JsonObject {
  return compact({
    name: labels.name(tool.name),
    description: tool.description,
    input_schema: tool.schema,
    cache_control: cacheControl(tool),
  })
}

function writeWebSearch(search: WebSearch): JsonObject {
  return compact({
    type: 'web_search_20250305',
    name: 'web_search',
    max_uses: search.maxUses,
    allowed_domains: search.allowedDomains,
    blocked_domains: search.blockedDomains,
    user_location: search.location && { type: 'approximate', ...search.location },
  })
}

function writeTools(chat: Chat, labels: ToolLabels): JsonObject[] | undefined {
  const written = chat.tools.map((tool) => writeTool(tool, labels))
  if (chat.webSearch !== undefined) written.push(writeWebSearch(chat.webSearch))
  // A history with calls needs at least one tool, whatever it is.
  if (written.length === 0 && hasToolBlocks(chat)) {
    return [{ name: unavailableTool, input_schema: { type: 'object' } }]
  }
  return written.length === 0 ? undefined : written
}

const choiceTypes = { auto: 'auto', required: 'any', none: 'none', tool: 'tool' } as const

function writeToolChoice(chat: Chat, labels: ToolLabels): JsonObject | undefined {
  const { toolChoice, parallelTools, tools } = chat
  const choice: ToolChoice | undefined =
    toolChoice ?? (parallelTools !== undefined && tools.length > 0 ? { type: 'auto' } : undefined)
  if (choice === undefined) return undefined
  return compact({
    type: choiceTypes[choice.type],
    name: choice.type === 'tool' ? labels.name(choice.name) : undefined,
    disable_parallel_tool_use:
      parallelTools === undefined || choice.type === 'none' ? undefined : !parallelTools,
  })
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

export function writeMessagesRequest(chat: Chat, labels: ToolLabels): JsonObject {
  if (chat.images === true) throw unsupportedPart('modalities', 'images in answers')
  const maxTokens = chat.maxTokens ?? defaultMaxTokens
  const { field: thinking, turns } = settleThinking(chat, maxTokens)
  // While it thinks, a model takes no sampling parameters.
  const samples = thinking === undefined
  return compact({
    model: chat.model,
    max_tokens: maxTokens,
    system: writeSystem(chat, labels),
    messages: turns.flatMap((turn) => writeTurn(turn, labels)),
    temperature: samples ? chat.temperature : undefined,
    top_p: samples ? chat.topP : undefined,
    top_k: samples ? chat.topK : undefined,
    stop_sequences: chat.stop,
    tools: writeTools(chat, labels),
    tool_choice: writeToolChoice(chat, labels),
    thinking,
    output_config: writeOutputConfig(chat),
    metadata: chat.user === undefined ? undefined : { user_id: chat.user },
    stream: chat.stream ? true : undefined,
  })
}
