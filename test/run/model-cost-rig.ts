/** Answers of vendors with usage, whole and streamed. Streams report usage early, repeatedly, and at the end. */
import type { ServerResponse } from 'node:http'
import { json, openStream, sendEvent, type VendorCall } from '../support/vendors/vendor.ts'
import { chunk } from '../support/vendors/vendor-a.ts'
import { frame, openFrames } from '../support/vendors/vendor-f.ts'

const usageA = {
  prompt_tokens: 9,
  completion_tokens: 7,
  total_tokens: 16,
  prompt_tokens_details: { cached_tokens: 2, cache_write_tokens: 3 },
  completion_tokens_details: { reasoning_tokens: 2, rejected_prediction_tokens: 4 },
  // What some gateways report here is in a unit of their own.
  cost: 3_144_000,
}

interface AnswerA {
  readonly model?: string
  readonly service_tier?: string
  readonly usage?: object
}

/** Where servers put the usage of a stream. */
type Position = 'alone' | 'with choices' | 'in every chunk'

export const answersA =
  (more: AnswerA = {}, position: Position = 'alone') =>
  ({ body, path }: VendorCall, response: ServerResponse) => {
    if (path.includes('/responses')) return respondsA(body, response, more)
    const { usage = usageA, ...head } = more
    const text = { role: 'assistant', content: 'Hello' }
    if (body.stream !== true) {
      json(response, 200, {
        id: 'x',
        object: 'chat.completion',
        created: 1,
        model: 'm-1',
        ...head,
        choices: [{ index: 0, message: text, finish_reason: 'stop' }],
        usage,
      })
      return
    }
    openStream(response)
    const part = (delta: object, end?: string) => ({ ...chunk('m-1', delta, end), ...head })
    const early = { ...usageA, completion_tokens: 1, completion_tokens_details: {} }
    const inEvery = position === 'in every chunk'
    sendEvent(response, { ...part(text), usage: inEvery ? early : null })
    const withLast = position === 'alone' ? null : usage
    sendEvent(response, { ...part({}, 'stop'), usage: withLast })
    if (position === 'alone') sendEvent(response, { ...part({}), choices: [], usage })
    sendEvent(response, '[DONE]')
    response.end()
  }

function respondsA(body: VendorCall['body'], response: ServerResponse, more: AnswerA): void {
  const usage = {
    input_tokens: 9,
    input_tokens_details: { cached_tokens: 2, cache_write_tokens: 3 },
    output_tokens: 7,
    output_tokens_details: { reasoning_tokens: 2 },
    total_tokens: 16,
  }
  const content = [{ type: 'output_text', text: 'Hello', annotations: [] }]
  const message = { type: 'message', id: 'm', role: 'assistant', status: 'completed', content }
  const search = { type: 'web_search_call', id: 'ws', status: 'completed' }
  const whole = {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    status: 'completed',
    model: 'm-1',
    output: body.tools === undefined ? [message] : [search, search, message],
    usage,
    ...more,
  }
  if (body.stream !== true) {
    json(response, 200, whole)
    return
  }
  openStream(response)
  const send = (type: string, at: number, now: object) =>
    sendEvent(response, { type, sequence_number: at, response: now }, type)
  send('response.created', 0, { ...whole, status: 'in_progress', output: [], usage: null })
  send('response.completed', 1, whole)
  response.end()
}

/** The usage of vendor C for the tokens of `usageA`, of which one is cached for an hour. */
export const usageC = {
  input_tokens: 4,
  cache_read_input_tokens: 2,
  cache_creation_input_tokens: 3,
  cache_creation: { ephemeral_5m_input_tokens: 2, ephemeral_1h_input_tokens: 1 },
  output_tokens: 7,
  output_tokens_details: { thinking_tokens: 2 },
}

export const answersC =
  (more: object = {}, model = 'm-1') =>
  ({ body, path }: VendorCall, response: ServerResponse) => {
    const usage = { ...usageC, ...more }
    const head = { id: 'msg_1', type: 'message', role: 'assistant', model }
    const content = [{ type: 'text', text: 'Hello' }]
    const stop = { stop_reason: 'end_turn', stop_sequence: null }
    if (body.stream !== true && !path.includes('stream')) {
      json(response, 200, { ...head, content, ...stop, usage })
      return
    }
    openStream(response)
    const send = (event: { readonly type: string; readonly [name: string]: unknown }) =>
      sendEvent(response, event, event.type)
    const first = { ...usage, output_tokens: 1, output_tokens_details: null, iterations: null }
    const none = { stop_reason: null, stop_sequence: null }
    send({ type: 'message_start', message: { ...head, content: [], ...none, usage: first } })
    send({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } })
    send({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } })
    send({ type: 'content_block_stop', index: 0 })
    const { cache_creation: _once, ...last } = usage
    send({ type: 'message_delta', delta: stop, usage: { ...last, input_tokens: null } })
    send({ type: 'message_stop' })
    response.end()
  }

export function answersD({ path }: VendorCall, response: ServerResponse): void {
  const usage = {
    promptTokenCount: 5,
    toolUsePromptTokenCount: 2,
    cachedContentTokenCount: 2,
    candidatesTokenCount: 5,
    thoughtsTokenCount: 2,
    totalTokenCount: 14,
  }
  const head = { modelVersion: 'gemini-sim', responseId: 'r' }
  const content = { role: 'model', parts: [{ text: 'Hello' }] }
  const whole = { candidates: [{ content, finishReason: 'STOP', index: 0 }], ...head }
  if (!path.includes('stream')) {
    json(response, 200, { ...whole, usageMetadata: usage })
    return
  }
  openStream(response)
  const early = { ...usage, candidatesTokenCount: 1, thoughtsTokenCount: undefined }
  sendEvent(response, { ...whole, candidates: [{ content, index: 0 }], usageMetadata: early })
  sendEvent(response, { ...whole, usageMetadata: usage })
  response.end()
}

export function answersF({ path }: VendorCall, response: ServerResponse): void {
  const usage = {
    inputTokens: 4,
    outputTokens: 7,
    totalTokens: 16,
    cacheReadInputTokens: 2,
    cacheWriteInputTokens: 3,
    cacheDetails: [
      { ttl: '5m', inputTokens: 2 },
      { ttl: '1h', inputTokens: 1 },
    ],
  }
  const content = [{ text: 'Hello' }]
  const output = { message: { role: 'assistant', content } }
  if (!path.includes('stream')) {
    json(response, 200, { output, stopReason: 'end_turn', usage, metrics: { latencyMs: 1 } })
    return
  }
  openFrames(response)
  response.write(frame('messageStart', { role: 'assistant' }))
  response.write(frame('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'Hello' } }))
  response.write(frame('contentBlockStop', { contentBlockIndex: 0 }))
  response.write(frame('messageStop', { stopReason: 'end_turn' }))
  response.end(frame('metadata', { usage, metrics: { latencyMs: 1 } }))
}
