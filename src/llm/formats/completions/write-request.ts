/** The common form -> a request for a chat completion. */
import {
  type Block,
  type Chat,
  type OutputFormat,
  type Reasoning,
  type Tool,
  type ToolCallBlock,
  type ToolChoice,
  type Turn,
  textOf,
} from '../../chat.ts'
import { compact, type JsonObject } from '../../json.ts'
import { writeArguments } from '../arguments.ts'
import { urlOfSource } from '../media.ts'
import type { ToolLabels } from '../tool-labels.ts'

function part(block: Block): JsonObject[] {
  if (block.type === 'text') return [{ type: 'text', text: block.text }]
  if (block.type !== 'image') return []
  return [{ type: 'image_url', image_url: { url: urlOfSource(block.source) } }]
}

/** Results come first: each is a message of its own, right after the calls that it answers. */
function userMessages(blocks: readonly Block[], labels: ToolLabels): JsonObject[] {
  const results = blocks.flatMap((block) =>
    block.type === 'tool-result'
      ? [
          {
            role: 'tool',
            tool_call_id: labels.resultId(block.id),
            content: textOf(block.content, '\n'),
          },
        ]
      : [],
  )
  const parts = blocks.flatMap(part)
  return parts.length === 0 ? results : [...results, { role: 'user', content: parts }]
}

function writeToolCall({ id, name, input }: ToolCallBlock, labels: ToolLabels): JsonObject {
  const called = { name: labels.name(name), arguments: writeArguments(input) }
  return { id: labels.callId(id), type: 'function', function: called }
}

function assistantMessage(blocks: readonly Block[], labels: ToolLabels): JsonObject[] {
  const texts = blocks.filter((block) => block.type === 'text').flatMap(part)
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
    tool_choice: writeToolChoice(chat.toolChoice, labels),
    parallel_tool_calls: chat.parallelTools,
    reasoning_effort: writeReasoning(chat.reasoning, chat),
    response_format: writeOutput(chat.output),
    user: chat.user,
    stream: chat.stream ? true : undefined,
    stream_options: chat.stream ? { include_usage: true } : undefined,
  })
}
