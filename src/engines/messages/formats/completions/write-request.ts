/** Converts the common form to a chat completion request. */
import { appendAll } from '../../../../ground/base/append-all.ts'
import type { Effort, ModelFacts } from '../../catalog/facts.ts'
import type {
  AudioBlock,
  Block,
  Chat,
  DocumentBlock,
  OutputFormat,
  TextBlock,
  Tool,
  ToolCallBlock,
  ToolChoice,
  Turn,
} from '../../chat.ts'
import { writeArguments } from '../../common/arguments.ts'
import { strictness } from '../../common/closed-schema.ts'
import { effortOf, nearestEffort } from '../../common/effort.ts'
import {
  documentAsText,
  fileNameOf,
  searchResultAsText,
  textOfDocument,
  urlOfSource,
} from '../../common/media.ts'
import { serviceFor } from '../../common/service.ts'
import type { ToolLabels } from '../../common/tool-labels.ts'
import type { WriteOptions } from '../../format.ts'
import { compact, type JsonObject } from '../../json/json.ts'
import { unsupportedPart } from '../../llm-error.ts'

/** Returns the parts of a user message for a block; none for tool calls, tool results and thinking. */
function userPart(block: Block): JsonObject[] {
  switch (block.type) {
    case 'text':
      return [{ type: 'text', text: block.text }]
    case 'image':
      return [{ type: 'image_url', image_url: { url: urlOfSource(block.source) } }]
    case 'document':
      return [documentPart(block)]
    case 'audio':
      return [audioPart(block)]
    case 'search-result':
      return [{ type: 'text', text: searchResultAsText(block) }]
    default:
      return []
  }
}

function documentPart(block: DocumentBlock): JsonObject {
  const text = textOfDocument(block)
  if (text !== undefined) return { type: 'text', text: documentAsText(block, text) }
  if (block.source.type === 'url') throw unsupportedPart(block.path, 'documents by URL')
  const file = { filename: fileNameOf(block), file_data: urlOfSource(block.source) }
  return { type: 'file', file }
}

const audioFormats: ReadonlySet<string> = new Set(['wav', 'mp3'])

function audioPart({ data, format, path }: AudioBlock): JsonObject {
  if (!audioFormats.has(format)) throw unsupportedPart(path, `audio parts of format ${format}`)
  return { type: 'input_audio', input_audio: { data, format } }
}

const isText = ({ type }: JsonObject): boolean => type === 'text'

/**
 * Writes tool results first, each as a message, because they must follow their calls. A tool message can
 * only contain text, so other parts of the results follow in a user message.
 */
function userMessages(blocks: readonly Block[], labels: ToolLabels): JsonObject[] {
  const results: JsonObject[] = []
  const userParts: JsonObject[] = []
  for (const block of blocks) {
    if (block.type !== 'tool-result') continue
    const id = labels.resultId(block.id)
    const parts = block.content.flatMap(userPart)
    const texts = parts.filter(isText).map(({ text }) => text)
    results.push({ role: 'tool', tool_call_id: id, content: texts.join('\n') })
    const otherParts = parts.filter((part) => !isText(part))
    if (otherParts.length === 0) continue
    // Ids are no texts, and guards do not read them.
    userParts.push({ type: 'text', text: `Content of tool result ${results.length}:` })
    appendAll(userParts, otherParts)
  }
  appendAll(userParts, blocks.flatMap(userPart))
  return userParts.length === 0 ? results : [...results, { role: 'user', content: userParts }]
}

/** Returns the parts of an assistant message for a block. Assistant messages can only contain text. */
function assistantPart(block: Block): JsonObject[] {
  if (block.type === 'image' || block.type === 'document' || block.type === 'audio') {
    throw unsupportedPart(block.path, 'parts of the assistant other than text')
  }
  return userPart(block)
}

function writeToolCall({ id, name, input }: ToolCallBlock, labels: ToolLabels): JsonObject {
  const called = { name: labels.name(name), arguments: writeArguments(input) }
  return { id: labels.callId(id), type: 'function', function: called }
}

/** Some servers refuse calls without the thinking that led to them. */
function reasoningOf(
  blocks: readonly Block[],
  { reasoningHistory }: ModelFacts,
): string | undefined {
  if (reasoningHistory !== true) return undefined
  const texts = blocks.flatMap((block) => (block.type === 'thinking' ? [block.text] : []))
  return texts.join('') || undefined
}

function assistantMessage(
  blocks: readonly Block[],
  labels: ToolLabels,
  facts: ModelFacts,
): JsonObject[] {
  const texts = blocks.flatMap(assistantPart)
  const calls = blocks.flatMap((block) =>
    block.type === 'tool-call' ? [writeToolCall(block, labels)] : [],
  )
  if (texts.length === 0 && calls.length === 0) return []
  const content = texts.length === 0 ? null : texts
  const tool_calls = calls.length === 0 ? undefined : calls
  const reasoning_content = reasoningOf(blocks, facts)
  return [compact({ role: 'assistant', content, reasoning_content, tool_calls })]
}

function messagesOf({ role, blocks }: Turn, labels: ToolLabels, facts: ModelFacts): JsonObject[] {
  if (role === 'system') return [{ role, content: contentOf(blocks.filter(isTextBlock)) }]
  return role === 'user' ? userMessages(blocks, labels) : assistantMessage(blocks, labels, facts)
}

/** A single block becomes a string; several blocks become a list of parts. */
function contentOf(blocks: readonly TextBlock[]): unknown {
  const [only, ...more] = blocks
  const hasOne = only !== undefined && more.length === 0
  return hasOne ? only.text : blocks.map(({ text }) => ({ type: 'text', text }))
}

function systemMessage({ system }: Chat): JsonObject[] {
  return system.length === 0 ? [] : [{ role: 'system', content: contentOf(system) }]
}

const isTextBlock = (block: Block): block is TextBlock => block.type === 'text'

function writeTool({ name, description, schema, strict }: Tool, labels: ToolLabels): JsonObject {
  const made = compact({
    name: labels.name(name),
    description,
    parameters: schema,
    strict: strictness(strict, schema),
  })
  return { type: 'function', function: made }
}

function writeToolChoice(choice: ToolChoice | undefined, labels: ToolLabels): unknown {
  // A model that searches always searches, and a choice is refused without tools.
  if (choice === undefined || choice.type === 'search') return undefined
  if (choice.type !== 'tool') return choice.type
  return { type: 'function', function: { name: labels.name(choice.name) } }
}

/** Models that search the web; others refuse requests for a search. */
const searches = /search/

/** Rejects searches that are limited to domains, because the format has no such limit. */
function writeWebSearch({ webSearch: search, model }: Chat): JsonObject | undefined {
  if (search === undefined) return undefined
  const { path, isOptional, allowedDomains, blockedDomains, location, contextSize } = search
  if (isOptional === true && !searches.test(model)) return undefined
  if (allowedDomains !== undefined || blockedDomains !== undefined) {
    throw unsupportedPart(path, 'web searches of some domains only')
  }
  const user_location = location && { type: 'approximate', approximate: location }
  return compact({ user_location, search_context_size: contextSize })
}

/** Other efforts are names of single vendors, which servers of unknown models refuse. */
const usualEfforts: readonly Effort[] = ['none', 'minimal', 'low', 'medium', 'high']

function writeEffort(
  { reasoning, tools }: Chat,
  { thinking, effortWithTools }: ModelFacts,
): Effort | undefined {
  if (reasoning === undefined || thinking === false) return undefined
  // An unknown model might refuse `none`.
  if (reasoning.type === 'off' && thinking === undefined) return undefined
  const accepted = thinking?.efforts
  if (tools.length > 0 && effortWithTools === false) {
    return accepted?.includes('none') === false ? undefined : 'none'
  }
  return nearestEffort(effortOf(reasoning), thinking === undefined ? usualEfforts : accepted)
}

function writeOutput(output: OutputFormat | undefined): unknown {
  if (output === undefined) return undefined
  if (output.type === 'json') return { type: 'json_object' }
  const { name = 'structured_output', description, schema } = output
  const strict = strictness(output.strict, schema)
  return { type: 'json_schema', json_schema: compact({ name, description, schema, strict }) }
}

/** Requests for streams always ask for the usage, because limits and logs need it. */
export function writeCompletionsRequest(
  chat: Chat,
  labels: ToolLabels,
  { facts }: WriteOptions,
): JsonObject {
  return compact({
    model: chat.model,
    messages: [
      ...systemMessage(chat),
      ...chat.turns.flatMap((turn) => messagesOf(turn, labels, facts)),
    ],
    [facts.limitField ?? 'max_tokens']: chat.maxTokens,
    temperature: chat.temperature,
    top_p: chat.topP,
    stop: chat.stop,
    seed: chat.seed,
    frequency_penalty: chat.frequencyPenalty,
    presence_penalty: chat.presencePenalty,
    n: chat.choices,
    tools: chat.tools.length === 0 ? undefined : chat.tools.map((tool) => writeTool(tool, labels)),
    web_search_options: writeWebSearch(chat),
    // The vendor refuses both without tools.
    tool_choice: chat.tools.length === 0 ? undefined : writeToolChoice(chat.toolChoice, labels),
    parallel_tool_calls: chat.tools.length === 0 ? undefined : chat.parallelTools,
    reasoning_effort: writeEffort(chat, facts),
    // Servers of other models refuse members that they do not know.
    verbosity: facts.verbosity === true ? chat.verbosity : undefined,
    response_format: writeOutput(chat.output),
    user: chat.user,
    service_tier: serviceFor(chat, facts),
    stream: chat.stream ? true : undefined,
    stream_options: chat.stream ? { include_usage: true } : undefined,
  })
}
