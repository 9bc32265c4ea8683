/** Converts the common form to a request in the messages format. */
import { appendAll } from '../../../../ground/base/append-all.ts'
import type { Effort, ModelFacts } from '../../catalog/facts.ts'
import {
  type Block,
  type Cacheable,
  type Chat,
  type DocumentBlock,
  hasToolBlocks,
  type MediaSource,
  type OutputFormat,
  type TextBlock,
  type Tool,
  type ToolChoice,
  type Turn,
  unavailableTool,
  type WebSearch,
  withSystemFirst,
} from '../../chat.ts'
import { argumentsObject } from '../../common/arguments.ts'
import { closedSchema } from '../../common/closed-schema.ts'
import { textOfDocument } from '../../common/media.ts'
import type { ToolLabels } from '../../common/tool-labels.ts'
import type { WriteOptions } from '../../format.ts'
import { compact, type JsonObject } from '../../json/json.ts'
import { unsupportedPart } from '../../llm-error.ts'
import { ownSignature, settleThinking } from './thinking.ts'

/** Maximum number of tokens for clients that set no limit, which the format requires. */
const usualMaxTokens = 64_000
/** The same for models of which nothing is known. */
const cautiousMaxTokens = 4096

const maxTokensOf = ({ maxTokens }: Chat, { limits }: ModelFacts): number =>
  maxTokens ?? Math.min(limits?.output ?? cautiousMaxTokens, usualMaxTokens)

/** Adds `cache_control` to a block or a tool if the client asks for a cache point there. */
const cacheable = (item: Cacheable, fields: JsonObject): JsonObject =>
  compact({ ...fields, cache_control: cacheControl(item) })

/** Five minutes are the default. */
function cacheControl({ cache }: Cacheable): JsonObject | undefined {
  if (cache === undefined) return undefined
  return compact({ type: 'ephemeral', ttl: cache === '1h' ? cache : undefined })
}

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
    case 'thinking': {
      // The provider rejects thinking without its own signature, so it is dropped.
      const signature = ownSignature(block)
      return signature ? [{ type: 'thinking', thinking: block.text, signature }] : []
    }
    case 'redacted-thinking':
      return [{ type: 'redacted_thinking', data: block.data }]
  }
}

/**
 * Puts messages of the system where models accept them: after those of the user, and before the next one of the
 * assistant. Where each goes depends on its neighbors alone, so that caches of the conversation stay valid.
 */
function placeSystem(turns: readonly Turn[]): Turn[] {
  const placed: Turn[] = []
  let waiting: Block[] = []
  const place = () => {
    if (waiting.length === 0) return
    const role = placed.at(-1)?.role === 'user' ? 'system' : 'user'
    placed.push({ role, blocks: waiting })
    waiting = []
  }
  for (const turn of turns) {
    if (turn.role === 'system') {
      appendAll(waiting, turn.blocks)
      continue
    }
    if (turn.role === 'assistant') place()
    placed.push(turn)
  }
  place()
  return placed
}

function writeTurn({ role, blocks }: Turn, labels: ToolLabels): JsonObject[] {
  const content = blocks.flatMap((block) => writeBlock(block, labels))
  return content.length === 0 ? [] : [{ role, content }]
}

function writeSystem(chat: Chat, labels: ToolLabels): unknown {
  const system = systemOf(chat)
  if (system.length === 0) return undefined
  return system.some(({ cache }) => cache !== undefined)
    ? system.flatMap((block) => writeBlock(block, labels))
    : system.map(({ text }) => text).join('\n')
}

function writeTool(tool: Tool, labels: ToolLabels, { strictTools }: ModelFacts): JsonObject {
  const { description, schema } = tool
  const strict = tool.strict === true && strictTools === true ? true : undefined
  const input_schema = strict === true ? closedSchema(schema) : schema
  return cacheable(tool, { name: labels.name(tool.name), description, input_schema, strict })
}

function writeWebSearch(search: WebSearch): JsonObject {
  return compact({
    type: 'web_search_20250305',
    name: searchName,
    max_uses: search.maxUses,
    allowed_domains: search.allowedDomains,
    blocked_domains: search.blockedDomains,
    user_location: search.location && { type: 'approximate', ...search.location },
  })
}

function writeTools(chat: Chat, labels: ToolLabels, facts: ModelFacts): JsonObject[] | undefined {
  const written = chat.tools.map((tool) => writeTool(tool, labels, facts))
  if (chat.webSearch !== undefined) written.push(writeWebSearch(chat.webSearch))
  // The provider requires a tool if the history has tool calls.
  if (written.length === 0 && hasToolBlocks(chat)) {
    return [{ name: unavailableTool, input_schema: { type: 'object' } }]
  }
  return written.length === 0 ? undefined : written
}

const choiceTypes = {
  auto: 'auto',
  required: 'any',
  none: 'none',
  tool: 'tool',
  search: 'tool',
} as const

const searchName = 'web_search'

function chosenName(choice: ToolChoice, labels: ToolLabels): string | undefined {
  if (choice.type === 'search') return searchName
  return choice.type === 'tool' ? labels.name(choice.name) : undefined
}

function writeToolChoice(chat: Chat, labels: ToolLabels): JsonObject | undefined {
  const { toolChoice, parallelTools, tools } = chat
  // The provider rejects a choice without tools.
  if (tools.length === 0 && chat.webSearch === undefined) return undefined
  const choice: ToolChoice | undefined =
    toolChoice ?? (parallelTools !== undefined && tools.length > 0 ? { type: 'auto' } : undefined)
  if (choice === undefined) return undefined
  return compact({
    type: choiceTypes[choice.type],
    name: chosenName(choice, labels),
    disable_parallel_tool_use:
      parallelTools === undefined || choice.type === 'none' ? undefined : !parallelTools,
  })
}

function writeOutputConfig(
  { output }: Chat,
  effort: Effort | undefined,
  facts: ModelFacts,
): JsonObject | undefined {
  const schema = enforcedSchema(output, facts)
  const format = schema === undefined ? undefined : { type: 'json_schema', schema }
  return effort === undefined && format === undefined ? undefined : compact({ effort, format })
}

/**
 * Returns the schema of an output that the provider enforces; undefined without one.
 * @throws LlmError 400 if the model cannot be made to follow a schema.
 */
export function enforcedSchema(output: OutputFormat | undefined, facts: ModelFacts): unknown {
  if (output?.type !== 'schema') return undefined
  if (facts.structuredOutput === false)
    throw unsupportedPart(output.path, 'schemas of outputs of this model')
  return closedSchema(output.schema)
}

const jsonOnly: TextBlock = {
  type: 'text',
  text: 'Answer with one JSON object only, without any other text and without a code block.',
}

/** Returns the system texts; providers that enforce only closed schemas have no other way to ask for any JSON. */
export const systemOf = ({ system, output }: Chat): readonly TextBlock[] =>
  output?.type === 'json' ? [...system, jsonOnly] : system

export function writeMessagesRequest(
  asked: Chat,
  labels: ToolLabels,
  { facts }: WriteOptions,
): JsonObject {
  const chat = facts.systemInPlace === true ? asked : withSystemFirst(asked)
  if (chat.images === true) throw unsupportedPart('modalities', 'images in responses')
  if ((chat.choices ?? 1) > 1) throw unsupportedPart('n', 'several choices')
  const maxTokens = maxTokensOf(chat, facts)
  const { field: thinking, effort, isOn, turns } = settleThinking(chat, facts, maxTokens)
  // The provider rejects sampling parameters together with thinking.
  const allowsSampling = !isOn
  return compact({
    model: chat.model,
    max_tokens: maxTokens,
    system: writeSystem(chat, labels),
    messages: placeSystem(turns).flatMap((turn) => writeTurn(turn, labels)),
    temperature: allowsSampling ? chat.temperature : undefined,
    top_p: allowsSampling ? chat.topP : undefined,
    top_k: allowsSampling ? chat.topK : undefined,
    stop_sequences: chat.stop,
    tools: writeTools(chat, labels, facts),
    tool_choice: writeToolChoice(chat, labels),
    thinking,
    output_config: writeOutputConfig(chat, effort, facts),
    cache_control: cacheControl(chat),
    metadata: chat.user === undefined ? undefined : { user_id: chat.user },
    stream: chat.stream ? true : undefined,
  })
}
