/** Converts the common form to a request in the messages format. */
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
import { argumentsObject } from '../../common/arguments.ts'
import { textOfDocument } from '../../common/media.ts'
import type { ToolLabels } from '../../common/tool-labels.ts'
import { compact, type JsonObject } from '../../json/json.ts'
import { unsupportedPart } from '../../llm-error.ts'
import { settleThinking } from './thinking.ts'

/** Default of `max_tokens`, which the format requires. */
export const defaultMaxTokens = 4096

/** Adds `cache_control` to a block or a tool if the client asks for a cache point there. */
const cacheable = (item: { readonly cache?: boolean }, fields: JsonObject): JsonObject =>
  compact({ ...fields, cache_control: item.cache === true ? { type: 'ephemeral' } : undefined })

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
      return [cacheable(block, { type: 'text', text: block.text })]
    case 'image':
      return [cacheable(block, { type: 'image', source: source(block.source) })]
    case 'document': {
      const { name: title, context, isCited } = block
      const source = documentSource(block)
      const citations = isCited === true ? { enabled: true } : undefined
      return [cacheable(block, { type: 'document', source, title, context, citations })]
    }
    case 'audio':
      throw unsupportedPart(block.path, 'audio parts')
    case 'search-result': {
      const content = block.texts.map((text) => ({ type: 'text', text }))
      const { source, title } = block
      return [cacheable(block, { type: 'search_result', source, title, content })]
    }
    case 'tool-call': {
      const id = labels.callId(block.id)
      const name = labels.name(block.name)
      const input = argumentsObject(block.input)
      return [cacheable(block, { type: 'tool_use', id, name, input })]
    }
    case 'tool-result': {
      const tool_use_id = labels.resultId(block.id)
      const content = block.content.flatMap((part) => writeBlock(part, labels))
      const fields = { type: 'tool_result', tool_use_id, content, is_error: block.isError }
      return [cacheable(block, fields)]
    }
    case 'thinking':
      // The provider rejects thinking without a signature, so it is dropped.
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
  const { description, schema } = tool
  return cacheable(tool, { name: labels.name(tool.name), description, input_schema: schema })
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
  // The provider requires a tool if the history has tool calls.
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
  const format = output && { type: 'json_schema', schema: schemaOf(output) }
  return effort === undefined && format === undefined ? undefined : compact({ effort, format })
}

/** Returns the schema of an output format; if the client only asks for JSON, it allows any object. */
export const schemaOf = (output: OutputFormat): unknown =>
  output.type === 'json' ? { type: 'object', additionalProperties: true } : output.schema

export function writeMessagesRequest(chat: Chat, labels: ToolLabels): JsonObject {
  if (chat.images === true) throw unsupportedPart('modalities', 'images in responses')
  const maxTokens = chat.maxTokens ?? defaultMaxTokens
  const { field: thinking, turns } = settleThinking(chat, maxTokens)
  // The provider rejects sampling parameters together with thinking.
  const allowsSampling = thinking === undefined
  return compact({
    model: chat.model,
    max_tokens: maxTokens,
    system: writeSystem(chat, labels),
    messages: turns.flatMap((turn) => writeTurn(turn, labels)),
    temperature: allowsSampling ? chat.temperature : undefined,
    top_p: allowsSampling ? chat.topP : undefined,
    top_k: allowsSampling ? chat.topK : undefined,
    stop_sequences: chat.stop,
    tools: writeTools(chat, labels),
    tool_choice: writeToolChoice(chat, labels),
    thinking,
    output_config: writeOutputConfig(chat),
    metadata: chat.user === undefined ? undefined : { user_id: chat.user },
    stream: chat.stream ? true : undefined,
  })
}
