/** One answer in pieces of different kinds, as each vendor would word it: whole, or as a stream. */
import type { ServerResponse } from 'node:http'
import { json, openStream, sendEvent, type VendorCall } from './vendor.ts'
import { frame, openFrames } from './vendor-f.ts'

/** A block of an answer; a stream sends its pieces one by one. */
export interface Segment {
  readonly kind: 'text' | 'thinking' | 'tool'
  readonly pieces: readonly string[]
}

type Answer = (call: VendorCall, response: ServerResponse) => void

const wholeOf = ({ pieces }: Segment): string => pieces.join('')
const textOf = (segments: readonly Segment[], kind: Segment['kind']): string =>
  segments
    .filter((segment) => segment.kind === kind)
    .map(wholeOf)
    .join('')
const nameOf = (at: number): string => `tool_${at}`

/** Chat completions: one text, one reasoning, and the calls, mixed as they come. */
export function completesSegments(choices: readonly (readonly Segment[])[]): Answer {
  return ({ body }, response) => {
    const head = { id: 'chatcmpl-1', created: 1, model: String(body.model) }
    const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 }
    if (body.stream !== true) {
      const whole = choices.map((segments, index) => {
        const calls = segments.flatMap((segment, at) =>
          segment.kind === 'tool' ? [callOf(at, wholeOf(segment))] : [],
        )
        const message = {
          role: 'assistant',
          content: textOf(segments, 'text'),
          refusal: null,
          ...(textOf(segments, 'thinking') && { reasoning_content: textOf(segments, 'thinking') }),
          ...(calls.length > 0 && { tool_calls: calls }),
        }
        return { index, message, logprobs: null, finish_reason: 'stop' }
      })
      json(response, 200, { ...head, object: 'chat.completion', choices: whole, usage })
      return
    }
    openStream(response)
    const send = (index: number, delta: object, finish_reason: string | null = null) =>
      sendEvent(response, {
        ...head,
        object: 'chat.completion.chunk',
        choices: [{ index, delta, logprobs: null, finish_reason }],
      })
    const queues = choices.map((segments) => deltasOf(segments))
    for (const index of choices.keys()) send(index, { role: 'assistant', content: '' })
    // Pieces of the choices take turns.
    for (let at = 0; queues.some((queue) => at < queue.length); at++) {
      for (const [index, queue] of queues.entries()) {
        const delta = queue[at]
        if (delta !== undefined) send(index, delta)
      }
    }
    for (const index of choices.keys()) send(index, {}, 'stop')
    sendEvent(response, { ...head, object: 'chat.completion.chunk', choices: [], usage })
    sendEvent(response, '[DONE]')
    response.end()
  }
}

const callOf = (at: number, args: string) => ({
  id: `call_${at}`,
  type: 'function',
  function: { name: nameOf(at), arguments: args },
})

function deltasOf(segments: readonly Segment[]): object[] {
  let calls = 0
  return segments.flatMap((segment, at): object[] => {
    if (segment.kind === 'text') return segment.pieces.map((content) => ({ content }))
    if (segment.kind === 'thinking') {
      return segment.pieces.map((reasoning_content) => ({ reasoning_content }))
    }
    const index = calls++
    return [
      { tool_calls: [{ index, ...callOf(at, '') }] },
      ...segment.pieces.map((piece) => ({
        tool_calls: [{ index, function: { arguments: piece } }],
      })),
    ]
  })
}

/** Messages: each segment is a block. */
export function saysSegments(segments: readonly Segment[]): Answer {
  return ({ body }, response) => {
    const head = {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: String(body.model ?? 'm'),
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    }
    if (body.stream !== true) {
      const content = segments.map((segment, at) => blockOf(segment, at, wholeOf(segment)))
      json(response, 200, { ...head, content, stop_reason: 'end_turn' })
      return
    }
    const send = (type: string, fields: object) => sendEvent(response, { type, ...fields }, type)
    openStream(response)
    send('message_start', { message: { ...head, content: [], stop_reason: null } })
    for (const [index, segment] of segments.entries()) {
      send('content_block_start', { index, content_block: blockOf(segment, index, '') })
      for (const piece of segment.pieces) {
        send('content_block_delta', { index, delta: deltaOf(segment, piece) })
      }
      if (segment.kind === 'thinking') {
        const delta = { type: 'signature_delta', signature: 'c2ln' }
        send('content_block_delta', { index, delta })
      }
      send('content_block_stop', { index })
    }
    const delta = { stop_reason: 'end_turn', stop_sequence: null }
    send('message_delta', { delta, usage: { output_tokens: 1 } })
    send('message_stop', {})
    response.end()
  }
}

function blockOf({ kind }: Segment, at: number, text: string): object {
  if (kind === 'text') return { type: 'text', text }
  if (kind === 'thinking') {
    return { type: 'thinking', thinking: text, signature: text === '' ? '' : 'c2ln' }
  }
  const input = text === '' ? {} : (JSON.parse(text) as object)
  return { type: 'tool_use', id: `call_${at}`, name: nameOf(at), input }
}

function deltaOf({ kind }: Segment, piece: string): object {
  if (kind === 'text') return { type: 'text_delta', text: piece }
  if (kind === 'thinking') return { type: 'thinking_delta', thinking: piece }
  return { type: 'input_json_delta', partial_json: piece }
}

/** generateContent: each piece is a part; calls come whole. */
export function generatesSegments(segments: readonly Segment[]): Answer {
  return ({ path }, response) => {
    const parts = segments.flatMap((segment, at): object[] => {
      if (segment.kind !== 'tool') {
        const thought = segment.kind === 'thinking' ? { thought: true } : {}
        return segment.pieces.map((text) => ({ text, ...thought }))
      }
      const args = JSON.parse(wholeOf(segment)) as object
      return [{ functionCall: { id: `call_${at}`, name: nameOf(at), args } }]
    })
    const answer = (some: object[], isLast: boolean) => ({
      candidates: [
        {
          content: { role: 'model', parts: some },
          index: 0,
          ...(isLast && { finishReason: 'STOP' }),
        },
      ],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1 },
      modelVersion: 'gemini-sim',
      responseId: 'r-1',
    })
    if (!path.includes(':streamGenerateContent')) {
      json(response, 200, answer(parts, true))
      return
    }
    openStream(response)
    // Some events have one part, some two.
    for (let at = 0; at < parts.length; ) {
      const count = 1 + (at % 2)
      sendEvent(response, answer(parts.slice(at, at + count), at + count >= parts.length))
      at += count
    }
    response.end()
  }
}

/** Converse: each segment is a block. */
export function conversesSegments(segments: readonly Segment[]): Answer {
  return ({ path }, response) => {
    const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 }
    const toolOf = (at: number) => ({ toolUseId: `call_${at}`, name: nameOf(at) })
    if (!path.endsWith('/converse-stream')) {
      const content = segments.map((segment, at) => {
        const text = wholeOf(segment)
        if (segment.kind === 'text') return { text }
        if (segment.kind === 'thinking') {
          return { reasoningContent: { reasoningText: { text, signature: 'c2ln' } } }
        }
        return { toolUse: { ...toolOf(at), input: JSON.parse(text) as object } }
      })
      const output = { message: { role: 'assistant', content } }
      json(response, 200, { output, stopReason: 'end_turn', usage, metrics: { latencyMs: 1 } })
      return
    }
    openFrames(response)
    const send = (type: string, payload: object) => response.write(frame(type, payload))
    send('messageStart', { role: 'assistant' })
    for (const [contentBlockIndex, segment] of segments.entries()) {
      if (segment.kind === 'tool') {
        const start = { toolUse: toolOf(contentBlockIndex) }
        send('contentBlockStart', { contentBlockIndex, start })
      }
      const deltas: object[] = segment.pieces.map((piece) => {
        if (segment.kind === 'text') return { text: piece }
        if (segment.kind === 'thinking') return { reasoningContent: { text: piece } }
        return { toolUse: { input: piece } }
      })
      if (segment.kind === 'thinking') deltas.push({ reasoningContent: { signature: 'c2ln' } })
      for (const delta of deltas) send('contentBlockDelta', { contentBlockIndex, delta })
      send('contentBlockStop', { contentBlockIndex })
    }
    send('messageStop', { stopReason: 'end_turn' })
    response.end(frame('metadata', { usage, metrics: { latencyMs: 1 } }))
  }
}

/** Responses: texts are parts of a message, which a segment of another kind ends. */
export function respondsSegments(segments: readonly Segment[]): Answer {
  return ({ body }, response) => {
    const items = itemsOf(segments)
    const head = {
      id: 'resp_1',
      object: 'response',
      created_at: 1,
      model: String(body.model),
      parallel_tool_calls: true,
      tool_choice: 'auto',
      tools: [],
      error: null,
      incomplete_details: null,
      usage: null,
    }
    const whole = {
      ...head,
      status: 'completed',
      output: items.map((item, at) => itemOf(item, at, true)),
    }
    if (body.stream !== true) {
      json(response, 200, whole)
      return
    }
    let sequence_number = 0
    const send = (type: string, fields: object) =>
      sendEvent(response, { type, sequence_number: sequence_number++, ...fields }, type)
    openStream(response)
    send('response.created', { response: { ...head, status: 'in_progress', output: [] } })
    for (const [output_index, item] of items.entries()) {
      send('response.output_item.added', { output_index, item: itemOf(item, output_index, false) })
      streamItem(item, output_index, send)
      send('response.output_item.done', { output_index, item: itemOf(item, output_index, true) })
    }
    send('response.completed', { response: whole })
    response.end()
  }
}

type Item = readonly Segment[]

function itemsOf(segments: readonly Segment[]): Item[] {
  const items: Segment[][] = []
  for (const segment of segments) {
    const last = items.at(-1)
    // Every third part begins a message of its own.
    const goesOn = segment.kind === 'text' && last?.[0]?.kind === 'text' && last.length < 3
    if (goesOn) last.push(segment)
    else items.push([segment])
  }
  return items
}

const partOf = (text: string) => ({ type: 'output_text', text, annotations: [], logprobs: [] })

function itemOf(item: Item, at: number, isDone: boolean): object {
  const [first] = item
  const text = isDone ? item.map(wholeOf).join('') : ''
  const status = isDone ? 'completed' : 'in_progress'
  if (first?.kind === 'text') {
    const content = isDone ? item.map((segment) => partOf(wholeOf(segment))) : []
    return { id: `item_${at}`, type: 'message', role: 'assistant', status, content }
  }
  if (first?.kind === 'thinking') {
    const summary = isDone ? [{ type: 'summary_text', text }] : []
    return { id: `item_${at}`, type: 'reasoning', status, summary }
  }
  const call = { call_id: `call_${at}`, name: nameOf(at), arguments: text }
  return { id: `item_${at}`, type: 'function_call', status, ...call }
}

function streamItem(
  item: Item,
  output_index: number,
  send: (type: string, fields: object) => void,
): void {
  for (const [content_index, segment] of item.entries()) {
    const place = { item_id: `item_${output_index}`, output_index }
    const text = wholeOf(segment)
    if (segment.kind === 'text') {
      const at = { ...place, content_index }
      send('response.content_part.added', { ...at, part: partOf('') })
      for (const delta of segment.pieces) {
        send('response.output_text.delta', { ...at, delta, logprobs: [] })
      }
      send('response.output_text.done', { ...at, text, logprobs: [] })
      send('response.content_part.done', { ...at, part: partOf(text) })
    } else if (segment.kind === 'tool') {
      for (const delta of segment.pieces) {
        send('response.function_call_arguments.delta', { ...place, delta })
      }
      const call = { arguments: text, name: nameOf(output_index) }
      send('response.function_call_arguments.done', { ...place, ...call })
    }
  }
}
