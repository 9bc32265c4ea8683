/** A simulator of vendorC: messages and token counts. */
import type { ServerResponse } from 'node:http'
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
  return checkMessages(body, only === '/v1/messages')
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
]

export function checkMessages(
  body: Record<string, unknown>,
  isMessage: boolean,
  known = fields,
): string | undefined {
  const unknown = Object.keys(body).find((name) => !known.includes(name))
  if (unknown !== undefined) return `${unknown}: Extra inputs are not permitted`
  if (typeof body.model !== 'string') return 'model: Field required'
  if (isMessage && !Number.isInteger(body.max_tokens)) return 'max_tokens: Field required'
  const { messages } = body
  if (!Array.isArray(messages) || messages.length === 0) return 'messages: at least one message'
  for (const { role, content } of messages as Record<string, unknown>[]) {
    if (role !== 'user' && role !== 'assistant') return `messages: role ${String(role)}`
    if (content === '' || (Array.isArray(content) && content.length === 0)) {
      return 'messages: text content blocks must be non-empty'
    }
  }
  return undefined
}

/** Asks for a call of a tool, whole or in pieces, as the request asks. */
export function callsC({ id, name, input }: ToolCall) {
  return ({ body, path }: VendorCall, response: ServerResponse): void => {
    const model = String(body.model ?? path)
    const usage = { stop_reason: 'tool_use', stop_sequence: null }
    if (body.stream !== true) {
      const content = [{ type: 'tool_use', id, name, input }]
      json(response, 200, { ...message(model, ''), ...usage, content })
      return
    }
    const block = { type: 'tool_use', id, name, input: {} }
    openStream(response)
    sendEvent(response, { type: 'message_start', message: message(model, '') }, 'message_start')
    sendEvent(
      response,
      { type: 'content_block_start', index: 0, content_block: block },
      'content_block_start',
    )
    const text = JSON.stringify(input)
    for (const partial_json of [text.slice(0, 3), text.slice(3)]) {
      const delta = { type: 'input_json_delta', partial_json }
      sendEvent(response, { type: 'content_block_delta', index: 0, delta }, 'content_block_delta')
    }
    sendEvent(response, { type: 'content_block_stop', index: 0 }, 'content_block_stop')
    const end = { type: 'message_delta', delta: usage, usage: { output_tokens: 5 } }
    sendEvent(response, end, 'message_delta')
    sendEvent(response, { type: 'message_stop' }, 'message_stop')
    response.end()
  }
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
