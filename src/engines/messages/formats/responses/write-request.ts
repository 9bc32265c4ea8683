/** Converts the common form to a request in the responses format. The provider stores nothing of it. */
import type { ModelFacts } from '../../catalog/facts.ts'
import type {
  Block,
  Chat,
  DocumentBlock,
  OutputFormat,
  ResultPart,
  ThinkingBlock,
  Tool,
  ToolChoice,
  Turn,
  WebSearch,
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
import { openReasoning } from '../../common/thought-signature.ts'
import type { ToolLabels } from '../../common/tool-labels.ts'
import type { WriteOptions } from '../../format.ts'
import { compact, type JsonObject } from '../../json/json.ts'
import { unsupportedPart } from '../../llm-error.ts'
import { summaryPart } from './reasoning.ts'

/** Returns the parts of a user message or of a tool result for a block; none for calls, results and thinking. */
function inputParts(block: Block | ResultPart): JsonObject[] {
  switch (block.type) {
    case 'text':
      return [{ type: 'input_text', text: block.text }]
    case 'image':
      return [{ type: 'input_image', image_url: urlOfSource(block.source), detail: 'auto' }]
    case 'document':
      return [documentPart(block)]
    case 'search-result':
      return [{ type: 'input_text', text: searchResultAsText(block) }]
    case 'audio':
      throw unsupportedPart(block.path, 'audio parts')
    default:
      return []
  }
}

function documentPart(block: DocumentBlock): JsonObject {
  const text = textOfDocument(block)
  if (text !== undefined) return { type: 'input_text', text: documentAsText(block, text) }
  return block.source.type === 'url'
    ? { type: 'input_file', file_url: block.source.url }
    : { type: 'input_file', filename: fileNameOf(block), file_data: urlOfSource(block.source) }
}

/** Texts of results are one text; other parts need a list. */
function outputOf(content: readonly ResultPart[]): unknown {
  const parts = content.flatMap(inputParts)
  const isText = parts.every(({ type }) => type === 'input_text')
  return isText ? parts.map(({ text }) => text).join('\n') : parts
}

function userItems(blocks: readonly Block[], labels: ToolLabels): JsonObject[] {
  const results = blocks.flatMap((block) =>
    block.type === 'tool-result'
      ? [
          {
            type: 'function_call_output',
            call_id: labels.resultId(block.id),
            output: outputOf(block.content),
          },
        ]
      : [],
  )
  const content = blocks.flatMap(inputParts)
  return content.length === 0 ? results : [...results, { type: 'message', role: 'user', content }]
}

/** Reasoning of other providers cannot be verified, so it is dropped. */
function reasoningItems({ text, signature }: ThinkingBlock): JsonObject[] {
  const opened = signature === undefined ? undefined : openReasoning(signature)
  if (opened === undefined) return []
  const summary = text === '' ? [] : [summaryPart(text)]
  return [{ type: 'reasoning', id: opened.id, summary, encrypted_content: opened.encrypted }]
}

function assistantItems(blocks: readonly Block[], labels: ToolLabels): JsonObject[] {
  return blocks.flatMap((block): JsonObject[] => {
    switch (block.type) {
      case 'text': {
        const content = [{ type: 'output_text', text: block.text, annotations: [] }]
        return [{ type: 'message', role: 'assistant', content }]
      }
      case 'thinking':
        return reasoningItems(block)
      case 'tool-call': {
        const name = labels.name(block.name)
        const args = writeArguments(block.input)
        const call_id = labels.callId(block.id)
        return [{ type: 'function_call', call_id, name, arguments: args }]
      }
      case 'image':
      case 'document':
      case 'audio':
        throw unsupportedPart(block.path, 'parts of the assistant other than text')
      default:
        return []
    }
  })
}

function itemsOf({ role, blocks }: Turn, labels: ToolLabels): JsonObject[] {
  if (role === 'assistant') return assistantItems(blocks, labels)
  if (role === 'user') return userItems(blocks, labels)
  return [{ type: 'message', role: 'system', content: blocks.flatMap(inputParts) }]
}

function writeTool({ name, description, schema, strict }: Tool, labels: ToolLabels): JsonObject {
  return compact({
    type: 'function',
    name: labels.name(name),
    description,
    parameters: schema,
    // The default of the vendor is to enforce schemas.
    strict: strictness(strict, schema) ?? false,
  })
}

function writeWebSearch(search: WebSearch): JsonObject {
  const { path, allowedDomains, blockedDomains, location, contextSize } = search
  if (blockedDomains !== undefined) throw unsupportedPart(path, 'web searches without some domains')
  return compact({
    type: 'web_search',
    filters: allowedDomains && { allowed_domains: allowedDomains },
    user_location: location && { type: 'approximate', ...location },
    search_context_size: contextSize,
  })
}

function toolFields({ tools, webSearch, toolChoice, parallelTools }: Chat, labels: ToolLabels) {
  const written = tools.map((tool) => writeTool(tool, labels))
  if (webSearch !== undefined) written.push(writeWebSearch(webSearch))
  if (written.length === 0) return {}
  const tool_choice = toolChoice && writeChoice(toolChoice, labels)
  return { tools: written, tool_choice, parallel_tool_calls: parallelTools }
}

function writeChoice(choice: ToolChoice, labels: ToolLabels): unknown {
  if (choice.type === 'tool') return { type: 'function', name: labels.name(choice.name) }
  return choice.type === 'search' ? { type: 'web_search' } : choice.type
}

function writeFormat(output: OutputFormat | undefined): JsonObject | undefined {
  if (output === undefined) return undefined
  if (output.type === 'json') return { format: { type: 'json_object' } }
  const { name = 'structured_output', description, schema } = output
  const strict = strictness(output.strict, schema)
  return { format: compact({ type: 'json_schema', name, description, schema, strict }) }
}

function writeText({ output, verbosity }: Chat, facts: ModelFacts): JsonObject | undefined {
  const format = writeFormat(output)
  return verbosity === undefined || facts.verbosity === false ? format : { ...format, verbosity }
}

function writeReasoning(
  { reasoning, showsThinking }: Chat,
  { thinking }: ModelFacts,
): JsonObject | undefined {
  if (thinking === false || reasoning === undefined) return undefined
  const effort = nearestEffort(effortOf(reasoning), thinking?.efforts)
  const summary = showsThinking === false || effort === 'none' ? undefined : 'auto'
  return compact({ effort, summary })
}

/** @throws LlmError 400 for features that the provider does not have. */
export function writeResponsesRequest(
  chat: Chat,
  labels: ToolLabels,
  { facts }: WriteOptions,
): JsonObject {
  if (chat.images === true) throw unsupportedPart('modalities', 'images in responses')
  const instructions = chat.system.map(({ text }) => text).join('\n')
  return compact({
    model: chat.model,
    instructions: instructions === '' ? undefined : instructions,
    input: chat.turns.flatMap((turn) => itemsOf(turn, labels)),
    max_output_tokens: chat.maxTokens,
    temperature: chat.temperature,
    top_p: chat.topP,
    ...toolFields(chat, labels),
    reasoning: writeReasoning(chat, facts),
    text: writeText(chat, facts),
    user: chat.user,
    service_tier: serviceFor(chat, facts),
    store: false,
    include: ['reasoning.encrypted_content'],
    stream: chat.stream ? true : undefined,
  })
}
