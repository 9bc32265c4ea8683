/** A simulator of vendorC: messages and token counts. */
import type { ServerResponse } from 'node:http'
import { checkConversation } from './messages-rules.ts'
import { refusalOfMessages } from './model-rules.ts'
import { refusalOfMessagesSchemas } from './schema-rules.ts'
import { json, openStream, sendEvent, startVendor, type Vendor, type VendorCall } from './vendor.ts'
import type { ToolCall } from './vendor-a.ts'

export const usageC = { input_tokens: 9, output_tokens: 5, cache_read_input_tokens: 4 }

function check({ method, path, headers, body }: VendorCall): string | undefined {
  if (method !== 'POST') return `method ${method}`
  const [only = ''] = path.split('?')
  if (only !== '/v1/messages' && only !== '/v1/messages/count_tokens') return `path ${path}`
  if (headers['anthropic-version'] !== '2023-06-01') return 'anthropic-version: header is required'
  if (headers.authorization !== undefined && headers['x-api-key'] !== undefined) {
    return 'two credentials'
  }
  if (headers['content-type'] !== 'application/json') return 'content-type'
  const betas = Object.keys(betaFields).filter((name) =>
    headers['anthropic-beta']?.includes(betaFields[name] ?? ''),
  )
  return checkMessages(body, only === '/v1/messages', [...fields, ...betas])
}

/** Fields of betas, which must be named in a header. */
const betaFields: Readonly<Record<string, string>> = {
  context_management: 'context-management-2025-06-27',
}

export const fields = [
  'model',
  'messages',
  'max_tokens',
  'system',
  'stream',
  'stop_sequences',
  'temperature',
  'top_p',
  'top_k',
  'tools',
  'tool_choice',
  'metadata',
  'thinking',
  'output_config',
  'service_tier',
  'cache_control',
]

/** Models that accept messages of the system between others. */
const systemInPlace = /claude-(opus-4-8|(opus|sonnet|haiku|fable)-5)/

export function checkMessages(
  body: Record<string, unknown>,
  isMessage: boolean,
  known = fields,
  model = String(body.model),
): string | undefined {
  const unknown = Object.keys(body).find((name) => !known.includes(name))
  if (unknown !== undefined) return `${unknown}: Extra inputs are not permitted`
  if (typeof body.model !== 'string') return 'model: Field required'
  if (isMessage && !Number.isInteger(body.max_tokens)) return 'max_tokens: Field required'
  const { messages } = body
  if (!Array.isArray(messages) || messages.length === 0) return 'messages: at least one message'
  for (const { role, content } of messages as Record<string, unknown>[]) {
    if (role === 'system' && systemInPlace.test(model)) continue
    if (role !== 'user' && role !== 'assistant') return `messages: role ${String(role)}`
    if (content === '' || (Array.isArray(content) && content.length === 0)) {
      return 'messages: text content blocks must be non-empty'
    }
  }
  const refusal = refusalOfMessages(model, body) ?? refusalOfMessagesSchemas(body)
  return refusal ?? checkConversation(body)
}

/** The blocks in front of a call: a signed thought and an encrypted one. */
export const thoughtsC = [
  { type: 'thinking', thinking: 'Hm, so.', signature: 'c2ln' },
  { type: 'redacted_thinking', data: 'cmVkYWN0ZWQ=' },
] as const

/** Asks for a call of a tool, whole or in pieces, as the request asks; thinks first if it may. */
export function callsC({ id, name, input }: ToolCall) {
  return ({ body, path }: VendorCall, response: ServerResponse): void => {
    const model = String(body.model ?? path)
    const usage = { stop_reason: 'tool_use', stop_sequence: null }
    const thoughts = body.thinking === undefined ? [] : thoughtsC
    const call = { type: 'tool_use', id, name, input }
    if (body.stream !== true) {
      json(response, 200, { ...message(model, ''), ...usage, content: [...thoughts, call] })
      return
    }
    openStream(response)
    const send = (fields: { readonly type: string }) => sendEvent(response, fields, fields.type)
    send({ type: 'message_start', message: message(model, '') } as { type: string })
    for (const [index, block] of [...thoughts, call].entries()) {
      for (const event of eventsOf(block)) send({ ...event, index } as { type: string })
    }
    send({ type: 'message_delta', delta: usage, usage: { output_tokens: 5 } } as { type: string })
    send({ type: 'message_stop' })
    response.end()
  }
}

/** The events of one block, its content in two pieces. */
function eventsOf(block: (typeof thoughtsC)[number] | object): { readonly type: string }[] {
  const start = (content_block: object) => ({ type: 'content_block_start', content_block })
  const delta = (fields: object) => ({ type: 'content_block_delta', delta: fields })
  const stop = { type: 'content_block_stop' }
  if ('thinking' in block) {
    const { thinking, signature } = block
    return [
      start({ type: 'thinking', thinking: '', signature: '' }),
      delta({ type: 'thinking_delta', thinking: thinking.slice(0, 3) }),
      delta({ type: 'thinking_delta', thinking: thinking.slice(3) }),
      delta({ type: 'signature_delta', signature }),
      stop,
    ]
  }
  if (!('input' in block)) return [start(block), stop]
  const text = JSON.stringify(block.input)
  return [
    start({ ...block, input: {} }),
    delta({ type: 'input_json_delta', partial_json: text.slice(0, 3) }),
    delta({ type: 'input_json_delta', partial_json: text.slice(3) }),
    stop,
  ]
}

export function says(...pieces: readonly string[]) {
  return ({ body, path }: VendorCall, response: ServerResponse): void => {
    if (path.startsWith('/v1/messages/count_tokens')) json(response, 200, { input_tokens: 42 })
    else if (body.stream === true) stream(String(body.model), pieces, response)
    else json(response, 200, message(String(body.model), pieces.join('')))
  }
}

function message(model: string, text: string): object {
  return {
    id: 'msg_sim',
    type: 'message',
    role: 'assistant',
    model,
    content: text === '' ? [] : [{ type: 'text', text }],
    stop_reason: text === '' ? null : 'end_turn',
    stop_sequence: null,
    usage: usageC,
  }
}

export function startMessage(model: string, response: ServerResponse): void {
  openStream(response)
  const started = { type: 'message_start', message: message(model, '') }
  sendEvent(response, started, 'message_start')
  const start = { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }
  sendEvent(response, start, 'content_block_start')
}

export function sayPiece(text: string, response: ServerResponse): void {
  const delta = { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } }
  sendEvent(response, delta, 'content_block_delta')
}

function stream(model: string, pieces: readonly string[], response: ServerResponse): void {
  startMessage(model, response)
  sendEvent(response, { type: 'ping' }, 'ping')
  for (const text of pieces) sayPiece(text, response)
  sendEvent(response, { type: 'content_block_stop', index: 0 }, 'content_block_stop')
  const delta = { stop_reason: 'end_turn', stop_sequence: null }
  const end = { type: 'message_delta', delta, usage: { output_tokens: 5 } }
  sendEvent(response, end, 'message_delta')
  sendEvent(response, { type: 'message_stop' }, 'message_stop')
  response.end()
}

export function failsC(status: number, type: string, text: string) {
  return (_: VendorCall, response: ServerResponse): void =>
    json(response, status, { type: 'error', error: { type, message: text } })
}

const refused = (text: string) => ({
  type: 'error',
  error: { type: 'invalid_request_error', message: text },
})

export const startVendorC = (port?: number): Promise<Vendor> =>
  startVendor(check, says('Hello ', 'from C'), refused, port)
