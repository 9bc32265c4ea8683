/** What chat completions refuse of a conversation. */
import { refusalOfChat } from './model-rules.ts'
import { refusalOfChatSchemas } from './schema-rules.ts'

type Fields = Record<string, unknown>

const roles = ['system', 'developer', 'user', 'assistant', 'tool', 'function']

/** Characters that an id of a call may have. */
const longestId = 40

/** Kinds of parts that each role may have. */
const parts: Readonly<Record<string, readonly string[]>> = {
  system: ['text'],
  developer: ['text'],
  user: ['text', 'image_url', 'input_audio', 'file'],
  assistant: ['text', 'refusal'],
  tool: ['text'],
}

const listOf = (value: unknown): Fields[] => (Array.isArray(value) ? (value as Fields[]) : [])

function checkMessage(message: Fields, where: string): string | undefined {
  const { role, content, tool_calls: calls } = message
  if (!roles.includes(String(role))) return `${where}: role ${String(role)}`
  for (const { type } of listOf(content)) {
    if (!parts[String(role)]?.includes(String(type)))
      return `${where}: part of type ${String(type)}`
  }
  if (content == null && role === 'assistant' && listOf(calls).length === 0) {
    return `${where}: content is required`
  }
  for (const call of listOf(calls)) {
    const { name, arguments: text } = (call.function ?? {}) as Fields
    if (String(call.id).length > longestId) return `${where}.tool_calls.id: string too long`
    if (!/^[a-zA-Z0-9_-]{1,64}$/.test(String(name))) return `${where}.tool_calls.function.name`
    if (typeof text !== 'string') return `${where}.tool_calls.function.arguments`
  }
  return undefined
}

/** Each call has its message, right behind the message that asked for it. */
function checkPairs(messages: readonly Fields[]): string | undefined {
  let open = new Set<unknown>()
  for (const { role, tool_call_id: id, tool_calls: calls } of messages) {
    if (role === 'tool') {
      if (!open.delete(id)) return `messages: tool_call_id ${String(id)} is not known`
      continue
    }
    if (open.size > 0) return 'messages: tool_calls must be followed by tool messages'
    open = new Set(listOf(calls).map((call) => call.id))
  }
  return open.size > 0 ? 'messages: tool_calls must be followed by tool messages' : undefined
}

function checkTools(tools: unknown): string | undefined {
  for (const { type, function: made } of listOf(tools)) {
    if (type === 'custom') continue
    const { name, parameters } = (made ?? {}) as Fields
    if (!/^[a-zA-Z0-9_-]{1,64}$/.test(String(name))) return `tools.function.name: ${String(name)}`
    const { type: kind } = (parameters ?? { type: 'object' }) as Fields
    if (kind !== 'object')
      return `Invalid schema for function ${String(name)}: type ${String(kind)}`
  }
  return undefined
}

/** What is wrong with the request; undefined if nothing is. */
export function checkChat(body: Fields): string | undefined {
  const messages = listOf(body.messages)
  if (messages.length === 0) return 'messages: a non-empty array'
  for (const [at, message] of messages.entries()) {
    const problem = checkMessage(message, `messages.${at}`)
    if (problem !== undefined) return problem
  }
  if (body.stream_options !== undefined && body.stream !== true) {
    return 'stream_options only with stream'
  }
  const refusal = refusalOfChat(String(body.model), body) ?? refusalOfChatSchemas(body)
  return refusal ?? checkPairs(messages) ?? checkTools(body.tools)
}
