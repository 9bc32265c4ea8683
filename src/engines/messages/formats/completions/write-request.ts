/** Converts the common form to a chat completion request. */
import type {
  AudioBlock,
  Block,
  Chat,
  DocumentBlock,
  OutputFormat,
  Tool,
  ToolCallBlock,
  ToolChoice,
  Turn,
  WebSearch,
} from '../../chat.ts'
import { writeArguments } from '../../common/arguments.ts'
import {
  documentAsText,
  fileNameOf,
  searchResultAsText,
  textOfDocument,
  urlOfSource,
} from '../../common/media.ts'
import type { ToolLabels } from '../../common/tool-labels.ts'
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
    userParts.push(
      { type: 'text', text: `Content of tool result ${results.length}:` },
      ...otherParts,
    )
  }
  userParts.push(...blocks.flatMap(userPart))
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

function assistantMessage(blocks: readonly Block[], labels: ToolLabels): JsonObject[] {
  const texts = blocks.flatMap(assistantPart)
  const calls = blocks.flatMap((block) =>
    block.type === 'tool-call' ? [writeToolCall(block, labels)] : [],
  )
  if (texts.length === 0 && calls.length === 0) return []
  const content = texts.length === 0 ? null : texts
  return [{ role: 'assistant', content, ...(calls.length > 0 && { tool_calls: calls }) }]
}

function messagesOf({ role, blocks }: Turn, labels: ToolLabels): JsonObject[] {
  return role === 'user' ? userMessages(blocks, labels) : assistantMessage(blocks, labels)
}

/** A single block becomes a string; several blocks become a list of parts. */
function systemMessage({ system }: Chat): JsonObject[] {
  const [only, ...more] = system
  if (only === undefined) return []
  const content = more.length === 0 ? only.text : system.map(({ text }) => ({ type: 'text', text }))
  return [{ role: 'system', content }]
}

function writeTool({ name, description, schema }: Tool, labels: ToolLabels): JsonObject {
  const made = compact({ name: labels.name(name), description, parameters: schema })
  return { type: 'function', function: made }
}

function writeToolChoice(choice: ToolChoice | undefined, labels: ToolLabels): unknown {
  if (choice === undefined) return undefined
  if (choice.type !== 'tool') return choice.type
  return { type: 'function', function: { name: labels.name(choice.name) } }
}

/** Rejects searches that are limited to domains, because the format has no such limit. */
function writeWebSearch(search: WebSearch | undefined): JsonObject | undefined {
  if (search === undefined) return undefined
  const { path, allowedDomains, blockedDomains, location, contextSize } = search
  if (allowedDomains !== undefined || blockedDomains !== undefined) {
    throw unsupportedPart(path, 'web searches of some domains only')
  }
  const user_location = location && { type: 'approximate', approximate: location }
  return compact({ user_location, search_context_size: contextSize })
}

/** Models of this family later than 5.2 reject a reasoning effort in requests with tools. */
const refusesEffortWithTools = /^gpt-5\.(?![12](?!\d))/

function writeEffort({ reasoning, tools, model }: Chat): string | undefined {
  if (reasoning?.type !== 'effort' && reasoning?.type !== 'adaptive') return undefined
  if (tools.length > 0 && refusesEffortWithTools.test(model)) return 'none'
  return reasoning.effort ?? 'high'
}

function writeOutput(output: OutputFormat | undefined): unknown {
  if (output === undefined) return undefined
  if (output.type === 'json') return { type: 'json_object' }
  const { name = 'structured_output', description, schema } = output
  return { type: 'json_schema', json_schema: compact({ name, description, schema }) }
}

/** Requests for streams always ask for the usage, because limits and logs need it. */
export function writeCompletionsRequest(chat: Chat, labels: ToolLabels): JsonObject {
  return compact({
    model: chat.model,
    messages: [...systemMessage(chat), ...chat.turns.flatMap((turn) => messagesOf(turn, labels))],
    max_completion_tokens: chat.maxTokens,
    temperature: chat.temperature,
    top_p: chat.topP,
    stop: chat.stop,
    seed: chat.seed,
    frequency_penalty: chat.frequencyPenalty,
    presence_penalty: chat.presencePenalty,
    n: chat.choices,
    tools: chat.tools.length === 0 ? undefined : chat.tools.map((tool) => writeTool(tool, labels)),
    web_search_options: writeWebSearch(chat.webSearch),
    tool_choice: writeToolChoice(chat.toolChoice, labels),
    parallel_tool_calls: chat.parallelTools,
    reasoning_effort: writeEffort(chat),
    response_format: writeOutput(chat.output),
    user: chat.user,
    stream: chat.stream ? true : undefined,
    stream_options: chat.stream ? { include_usage: true } : undefined,
  })
}
