/** A simulator of vendorA: chat completions, responses, embeddings. */
import type { ServerResponse } from 'node:http'
import { checkChat } from './completions-rules.ts'
import { checkResponses } from './responses-rules.ts'
import { json, openStream, sendEvent, startVendor, type Vendor, type VendorCall } from './vendor.ts'

export const answerId = 'chatcmpl-sim'
export const usageA = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 }

/** Header with which an endpoint picker names the server. */
const picked = 'x-gateway-destination-endpoint'
const countPath = '/v1/responses/input_tokens'
const known = ['/v1/chat/completions', '/v1/responses', '/v1/embeddings', countPath]

/** What the documentation of token counts lists. */
const countMembers = [
  'model',
  'input',
  'instructions',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'reasoning',
  'text',
  'conversation',
  'previous_response_id',
  'truncation',
]

/** Members that other requests need, by their paths; compatible servers have reranks, too. */
const needed: Readonly<Record<string, readonly string[]>> = {
  '/v1/completions': ['model', 'prompt'],
  '/v1/images/generations': ['prompt'],
  '/v1/audio/speech': ['model', 'input', 'voice'],
  '/v1/moderations': ['input'],
  '/v1/rerank': ['model', 'query', 'documents'],
  '/v1/responses/input_tokens': ['model', 'input'],
  '/v1/responses/compact': ['model'],
}

/** Paths of multipart bodies, and their fields, of which each is needed once. */
const forms: Readonly<Record<string, readonly string[]>> = {
  '/v1/audio/transcriptions': ['file', 'model'],
  '/v1/audio/translations': ['file', 'model'],
  '/v1/images/edits': ['prompt'],
  '/v1/images/variations': ['image'],
}

/** Reads a multipart body by the rules of WHATWG Fetch. */
export const formOf = ({ bytes, headers }: VendorCall): Promise<FormData> =>
  new Response(new Uint8Array(bytes), {
    headers: { 'content-type': headers['content-type'] ?? '' },
  }).formData()

async function checkForm(call: VendorCall, needed: readonly string[]): Promise<string | undefined> {
  const form = await formOf(call).catch(() => undefined)
  if (form === undefined) return 'could not parse multipart form'
  const lacking = needed.find((name) => form.getAll(name).length !== 1)
  return lacking && `Missing required parameter: '${lacking}'`
}

/** What the documentation of vendorA refuses. */
function check(call: VendorCall): string | undefined | Promise<string | undefined> {
  const { method, path, headers, body, text } = call
  if (method !== 'POST') return `method ${method}`
  const [only = ''] = path.split('?')
  const fields = forms[only]
  if (fields !== undefined) return checkForm(call, fields)
  const lacking = needed[only]?.find((name) => body[name] === undefined)
  if (lacking !== undefined) return `Missing required parameter: '${lacking}'`
  if (needed[only] !== undefined) return undefined
  if (!known.includes(only)) return `unknown path ${path}`
  if (headers['content-type'] !== 'application/json') return 'content-type'
  // Only endpoint pickers return bodies whose length is not known before.
  const isFromPicker = headers['transfer-encoding'] === 'chunked' && headers[picked] !== undefined
  const length = isFromPicker ? undefined : Number(headers['content-length'])
  if (length !== undefined && length !== Buffer.byteLength(text)) return 'content-length'
  if (headers['content-encoding'] !== undefined) return 'content-encoding'
  if (typeof body.model !== 'string') return 'you must provide a model parameter'
  if (only === countPath) {
    const other = Object.keys(body).find((name) => !countMembers.includes(name))
    return other === undefined ? undefined : `Unknown parameter: '${other}'.`
  }
  if (only === '/v1/responses') return checkResponses(body)
  return only === '/v1/chat/completions' ? checkChat(body) : undefined
}

/** Answers with a text, whole or in pieces, as the request asks. */
export function completes(...pieces: readonly string[]) {
  return ({ body, path }: VendorCall, response: ServerResponse): void => {
    if (path.startsWith(countPath)) {
      json(response, 200, { object: 'response.input_tokens', input_tokens: 17 })
    } else if (path.startsWith('/v1/embeddings')) {
      json(response, 200, embeddings(body))
    } else if (path.startsWith('/v1/responses')) respond(body, pieces, response)
    else if (body.stream === true) streamChunks(body, pieces, response)
    else json(response, 200, completion(String(body.model), pieces.join('')))
  }
}

export function completion(model: string, content: string): object {
  return {
    id: answerId,
    object: 'chat.completion',
    created: 1,
    model,
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content, refusal: null },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: usageA,
    service_tier: 'default',
  }
}

export function chunk(model: string, delta: object, finish: string | null = null): object {
  const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }]
  return { id: answerId, object: 'chat.completion.chunk', created: 1, model, choices }
}

/** What a vendor of the format says when it wants a tool to be called. */
export interface ToolCall {
  readonly id: string
  readonly name: string
  readonly input: object
}

/** Asks for a call of a tool, whole or in pieces, as the request asks. */
export function calls({ id, name, input }: ToolCall) {
  return ({ body, path }: VendorCall, response: ServerResponse): void => {
    const model = String(body.model)
    const text = JSON.stringify(input)
    if (path.startsWith('/v1/responses')) {
      const call = { type: 'function_call', id: 'fc_sim', call_id: id, name, arguments: text }
      respondWithCall(body, call, response)
      return
    }
    if (body.stream !== true) {
      const [choice] = (completion(model, '') as { choices: { message: object }[] }).choices
      const tool_calls = [{ id, type: 'function', function: { name, arguments: text } }]
      const message = { ...choice?.message, content: null, tool_calls }
      const choices = [{ ...choice, message, finish_reason: 'tool_calls' }]
      json(response, 200, { ...completion(model, ''), choices })
      return
    }
    const piece = (fields: object) => ({ tool_calls: [{ index: 0, ...fields }] })
    openStream(response)
    const first = { id, type: 'function', function: { name, arguments: '' } }
    sendEvent(response, chunk(model, { role: 'assistant', content: null, ...piece(first) }))
    for (const part of [text.slice(0, 3), text.slice(3)]) {
      sendEvent(response, chunk(model, piece({ function: { arguments: part } })))
    }
    sendEvent(response, chunk(model, {}, 'tool_calls'))
    sendEvent(response, { ...chunk(model, {}), choices: [], usage: usageA })
    sendEvent(response, '[DONE]')
    response.end()
  }
}

function streamChunks(
  { model, stream_options: options }: Record<string, unknown>,
  pieces: readonly string[],
  response: ServerResponse,
): void {
  const name = String(model)
  const hasUsage = (options as { include_usage?: boolean } | undefined)?.include_usage === true
  const usage = hasUsage ? { usage: null } : {}
  openStream(response)
  sendEvent(response, { ...chunk(name, { role: 'assistant', content: '' }), ...usage })
  for (const content of pieces) sendEvent(response, { ...chunk(name, { content }), ...usage })
  sendEvent(response, { ...chunk(name, {}, 'stop'), ...usage })
  if (hasUsage) sendEvent(response, { ...chunk(name, {}), choices: [], usage: usageA })
  sendEvent(response, '[DONE]')
  response.end()
}

function embeddings({ model, input }: Record<string, unknown>): object {
  const texts = Array.isArray(input) ? input : [input]
  const data = texts.map((_, index) => ({ object: 'embedding', index, embedding: [0.5, index] }))
  const usage = { prompt_tokens: 4, total_tokens: 4 }
  return { object: 'list', data, model, usage }
}

const usageOfResponse = {
  input_tokens: 11,
  input_tokens_details: { cached_tokens: 3 },
  output_tokens: 7,
  output_tokens_details: { reasoning_tokens: 2 },
  total_tokens: 18,
}

function responseOf(model: string, text: string, status: string): object {
  const content = [{ type: 'output_text', text, annotations: [] }]
  const message = { type: 'message', id: 'msg_sim', role: 'assistant', status, content }
  return {
    id: 'resp_sim',
    object: 'response',
    created_at: 1,
    status,
    model,
    output: [message],
    usage: usageOfResponse,
  }
}

function respond(
  { model, stream }: Record<string, unknown>,
  pieces: readonly string[],
  response: ServerResponse,
): void {
  const whole = pieces.join('')
  const name = String(model)
  if (stream !== true) {
    json(response, 200, responseOf(name, whole, 'completed'))
    return
  }
  let number = 0
  const send = (type: string, fields: object) =>
    sendEvent(response, { type, sequence_number: number++, ...fields }, type)
  const at = { item_id: 'msg_sim', output_index: 0, content_index: 0 }
  const part = (text: string) => ({ type: 'output_text', text, annotations: [] })
  const item = (status: string, content: object[]) => ({
    id: 'msg_sim',
    type: 'message',
    role: 'assistant',
    status,
    content,
  })
  openStream(response)
  const begun = { ...responseOf(name, '', 'in_progress'), output: [], usage: null }
  send('response.created', { response: begun })
  send('response.in_progress', { response: begun })
  send('response.output_item.added', { output_index: 0, item: item('in_progress', []) })
  send('response.content_part.added', { ...at, part: part('') })
  for (const delta of pieces) send('response.output_text.delta', { ...at, delta })
  send('response.output_text.done', { ...at, text: whole })
  send('response.content_part.done', { ...at, part: part(whole) })
  send('response.output_item.done', { output_index: 0, item: item('completed', [part(whole)]) })
  send('response.completed', { response: responseOf(name, whole, 'completed') })
  response.end()
}

/** Asks for a call of a tool in the responses format. */
function respondWithCall(
  { model, stream }: Record<string, unknown>,
  call: { readonly arguments: string },
  response: ServerResponse,
): void {
  const item = (status: string, fields: object = {}) => ({ ...call, ...fields, status })
  const done = { ...responseOf(String(model), '', 'completed'), output: [item('completed')] }
  if (stream !== true) {
    json(response, 200, done)
    return
  }
  let number = 0
  const send = (type: string, fields: object) =>
    sendEvent(response, { type, sequence_number: number++, output_index: 0, ...fields }, type)
  openStream(response)
  const begun = { ...responseOf(String(model), '', 'in_progress'), output: [], usage: null }
  send('response.created', { response: begun })
  send('response.output_item.added', { item: item('in_progress', { arguments: '' }) })
  const { arguments: text } = call
  send('response.function_call_arguments.delta', { item_id: 'fc_sim', delta: text })
  send('response.function_call_arguments.done', { item_id: 'fc_sim', arguments: text })
  send('response.output_item.done', { item: item('completed') })
  send('response.completed', { response: done })
  response.end()
}

/** An error as vendorA words it. */
export function failsA(status: number, message: string, headers: Record<string, string> = {}) {
  return (_: VendorCall, response: ServerResponse): void => {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
    json(response, status, errorA(message))
  }
}

export const errorA = (message: string) => ({
  error: { message, type: 'invalid_request_error', param: null, code: null },
})

export const startVendorA = (port?: number): Promise<Vendor> =>
  startVendor(check, completes('Hello ', 'from A'), errorA, port)
