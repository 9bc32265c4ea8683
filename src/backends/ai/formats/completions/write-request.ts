/** The common form -> a request for a chat completion. */
import type {
  AudioBlock,
  Block,
  Chat,
  DocumentBlock,
  OutputFormat,
  Reasoning,
  Tool,
  ToolCallBlock,
  ToolChoice,
  Turn,
  WebSearch,
} from '../../chat.ts'
import { compact, type JsonObject } from '../../json.ts'
import { writeArguments } from '../arguments.ts'
import {
  documentAsText,
  fileNameOf,
  searchResultAsText,
  textOfDocument,
  urlOfSource,
} from '../media.ts'
import type { ToolLabels } from '../tool-labels.ts'
import { unsupportedPart } from '../unsupported-part.ts'

/** Parts that a user may send; calls, results and thinking are none. */
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
 * Results come first: each is a message of its own, right after the calls that it answers. They can
 * only be text; what else is in them follows in a message of the user.
 */
function userMessages(blocks: readonly Block[], labels: ToolLabels): JsonObject[] {
  const results: JsonObject[] = []
  const more: JsonObject[] = []
  for (const block of blocks) {
    if (block.type !== 'tool-result') continue
    const id = labels.resultId(block.id)
    const parts = block.content.flatMap(userPart)
    const texts = parts.filter(isText).map(({ text }) => text)
    results.push({ role: 'tool', tool_call_id: id, content: texts.join('\n') })
    const others = parts.filter((part) => !isText(part))
    if (others.length === 0) continue
    more.push({ type: 'text', text: `Content of the result of call ${id}:` }, ...others)
  }
  more.push(...blocks.flatMap(userPart))
  return more.length === 0 ? results : [...results, { role: 'user', content: more }]
}

/** What an assistant has said can only be text. */
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

/** One block is plain text; several keep their borders. */
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

/** Domains cannot be told apart there; to search all of them would not be what the client wants. */
function writeWebSearch(search: WebSearch | undefined): JsonObject | undefined {
  if (search === undefined) return undefined
  const { path, allowedDomains, blockedDomains, location, contextSize } = search
  if (allowedDomains !== undefined || blockedDomains !== undefined) {
    throw unsupportedPart(path, 'web searches of some domains only')
  }
  const user_location = location && { type: 'approximate', approximate: location }
  return compact({ user_location, search_context_size: contextSize })
}

/** Models of this family refuse effort together with tools, but for the first ones. */
function refusesEffortWithTools(model: string): boolean {
  if (!model.startsWith('gpt-5.')) return false
  return !/^gpt-5\.[12](?!\d)/.test(model)
}

function writeReasoning(reasoning: Reasoning | undefined, chat: Chat): string | undefined {
  const effort = effortOf(reasoning)
  if (effort === undefined) return undefined
  return chat.tools.length > 0 && refusesEffortWithTools(chat.model) ? 'none' : effort
}

function effortOf(reasoning: Reasoning | undefined): string | undefined {
  switch (reasoning?.type) {
    case 'effort':
      return reasoning.effort
    case 'adaptive':
      return reasoning.effort ?? 'high'
    default:
      return undefined
  }
}

function writeOutput(output: OutputFormat | undefined): unknown {
  if (output === undefined) return undefined
  if (output.type === 'json') return { type: 'json_object' }
  const { name = 'structured_output', description, schema } = output
  return { type: 'json_schema', json_schema: compact({ name, description, schema }) }
}

/** Usage is always asked for: limits and logs need it. */
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
    reasoning_effort: writeReasoning(chat.reasoning, chat),
    response_format: writeOutput(chat.output),
    user: chat.user,
    stream: chat.stream ? true : undefined,
    stream_options: chat.stream ? { include_usage: true } : undefined,
  })
}
