/** One answer in pieces of different kinds, as each vendor would word it: whole, or as a stream. */
import type { ServerResponse } from 'node:http'
import { json, openStream, sendEvent, type VendorCall } from './vendor.ts'
import { chunkOf, frame, openFrames, placeOf } from './vendor-f.ts'

/** A block of an answer; a stream sends its pieces one by one. */
export interface Segment {
  readonly kind: 'text' | 'thinking' | 'tool'
  readonly pieces: readonly string[]
  /** The page in the web that a text is from. */
  readonly source?: string
}

/** Why an answer ends, and how many tokens of the prompt came from a cache. */
export interface Ending {
  readonly reason?: 'length' | 'filter'
  readonly cached?: number
}

export type SegmentAnswer = (call: VendorCall, response: ServerResponse) => void

export const wholeOf = ({ pieces }: Segment): string => pieces.join('')
const textOf = (segments: readonly Segment[], kind: Segment['kind']): string =>
  segments
    .filter((segment) => segment.kind === kind)
    .map(wholeOf)
    .join('')
export const nameOf = (at: number): string => `tool_${at}`

/** Chat completions: one text, one reasoning, and the calls, mixed as they come. */
export function completesSegments(
  choices: readonly (readonly Segment[])[],
  { reason, cached }: Ending = {},
): SegmentAnswer {
  const finish = reason === 'filter' ? 'content_filter' : (reason ?? 'stop')
  return ({ body }, response) => {
    const head = { id: 'chatcmpl-1', created: 1, model: String(body.model) }
    const details = cached && { prompt_tokens_details: { cached_tokens: cached } }
    const usage = { ...chatUsage(1 + (cached ?? 0)), ...details }
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
          ...annotationsOf(segments),
        }
        return { index, message, logprobs: null, finish_reason: finish }
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
    for (const index of choices.keys()) send(index, {}, finish)
    sendEvent(response, { ...head, object: 'chat.completion.chunk', choices: [], usage })
    sendEvent(response, '[DONE]')
    response.end()
  }
}

const chatUsage = (prompt: number) => ({
  prompt_tokens: prompt,
  completion_tokens: 1,
  total_tokens: prompt + 1,
})

/** The annotations of a message, if one of its texts is from the web. */
function annotationsOf(segments: readonly Segment[]): object {
  const annotations = segments.flatMap(({ source: url, pieces }) => {
    const end_index = pieces.join('').length
    return url
      ? [
          {
            type: 'url_citation',
            url_citation: { url, title: 'A page', start_index: 0, end_index },
          },
        ]
      : []
  })
  return annotations.length > 0 ? { annotations } : {}
}

const callOf = (at: number, args: string) => ({
  id: `call_${at}`,
  type: 'function',
  function: { name: nameOf(at), arguments: args },
})

function deltasOf(segments: readonly Segment[]): object[] {
  let calls = 0
  return segments.flatMap((segment, at): object[] => {
    if (segment.kind === 'text') {
      const cited = segment.source === undefined ? [] : [annotationsOf([segment])]
      return [...segment.pieces.map((content) => ({ content })), ...cited]
    }
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

type Event = { readonly type: string }

interface SaidMessage {
  readonly whole: object
  /** What a stream has in its place. */
  readonly events: readonly Event[]
}

/** A message of vendor C: each segment is a block. */
function messageOf(segments: readonly Segment[], ending: Ending, model: string): SaidMessage {
  const stop_reason = stopsOfMessages[ending.reason ?? 'end']
  const head = {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model,
    stop_sequence: null,
    usage: { input_tokens: 1, output_tokens: 1, cache_read_input_tokens: ending.cached ?? 0 },
  }
  const events: Event[] = []
  const add = (type: string, fields: object) => void events.push({ type, ...fields })
  add('message_start', { message: { ...head, content: [], stop_reason: null } })
  for (const [index, segment] of segments.entries()) {
    add('content_block_start', { index, content_block: blockOf(segment, index, '') })
    const deltas: object[] = segment.pieces.map((piece) => deltaOf(segment, piece))
    for (const citation of citationsOf(segment).citations ?? []) {
      deltas.push({ type: 'citations_delta', citation })
    }
    if (segment.kind === 'thinking') deltas.push({ type: 'signature_delta', signature: 'c2ln' })
    for (const delta of deltas) add('content_block_delta', { index, delta })
    add('content_block_stop', { index })
  }
  const delta = { stop_reason, stop_sequence: null }
  add('message_delta', { delta, usage: { output_tokens: 1 } })
  add('message_stop', {})
  const content = segments.map((segment, at) => blockOf(segment, at, wholeOf(segment)))
  return { whole: { ...head, content, stop_reason }, events }
}

/** Messages, whole or as server-sent events. */
export function saysSegments(segments: readonly Segment[], ending: Ending = {}): SegmentAnswer {
  return ({ body }, response) => {
    const { whole, events } = messageOf(segments, ending, String(body.model ?? 'm'))
    if (body.stream !== true) {
      json(response, 200, whole)
      return
    }
    openStream(response)
    for (const event of events) sendEvent(response, event, event.type)
    response.end()
  }
}

/** InvokeModel with the messages of vendor C, whole or in chunks. */
export function invokesSegments(segments: readonly Segment[], ending: Ending = {}): SegmentAnswer {
  return ({ path }, response) => {
    const { model = '', verb } = placeOf(path) ?? {}
    const { whole, events } = messageOf(segments, ending, model)
    if (verb === 'invoke') {
      json(response, 200, whole)
      return
    }
    openFrames(response)
    response.end(Buffer.concat(events.map(chunkOf)))
  }
}

const stopsOfMessages = { end: 'end_turn', length: 'max_tokens', filter: 'refusal' } as const

function citationsOf({ source: url }: Segment): { readonly citations?: readonly object[] } {
  const place = { type: 'web_search_result_location', cited_text: 'So.', encrypted_index: 'eA==' }
  return url === undefined ? {} : { citations: [{ ...place, url, title: 'A page' }] }
}

function blockOf(segment: Segment, at: number, text: string): object {
  const { kind } = segment
  if (kind === 'text') return { type: 'text', text, ...(text !== '' && citationsOf(segment)) }
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
export function generatesSegments(
  segments: readonly Segment[],
  ending: Ending = {},
): SegmentAnswer {
  const { cached } = ending
  const finishReason = { end: 'STOP', length: 'MAX_TOKENS', filter: 'SAFETY' }[
    ending.reason ?? 'end'
  ]
  const usageMetadata = {
    promptTokenCount: 1 + (cached ?? 0),
    candidatesTokenCount: 1,
    ...(cached && { cachedContentTokenCount: cached }),
  }
  const source = segments.find((segment) => segment.source !== undefined)
  const groundingMetadata = source && {
    groundingChunks: [{ web: { uri: source.source, title: 'A page' } }],
    groundingSupports: [
      {
        segment: { startIndex: 0, endIndex: Buffer.byteLength(wholeOf(source)) },
        groundingChunkIndices: [0],
      },
    ],
  }
  return ({ path }, response) => {
    const parts = segments.flatMap((segment, at): object[] => {
      if (segment.kind !== 'tool') {
        const thought = segment.kind === 'thinking' ? { thought: true } : {}
        return segment.pieces.map((text) => ({ text, ...thought }))
      }
      const args = JSON.parse(wholeOf(segment)) as object
      // The first call is signed.
      const isFirst = segments.findIndex(({ kind }) => kind === 'tool') === at
      const signature = isFirst ? { thoughtSignature: 'ZC1zaWc=' } : {}
      return [{ functionCall: { id: `call_${at}`, name: nameOf(at), args }, ...signature }]
    })
    const answer = (some: object[], isLast: boolean) => ({
      candidates: [
        {
          content: { role: 'model', parts: some },
          index: 0,
          ...(isLast && { finishReason, ...(groundingMetadata && { groundingMetadata }) }),
        },
      ],
      usageMetadata,
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
export function conversesSegments(
  segments: readonly Segment[],
  ending: Ending = {},
): SegmentAnswer {
  const { cached = 0 } = ending
  const stopReason = stopsOfConverse[ending.reason ?? 'end']
  return ({ path }, response) => {
    const counts = { inputTokens: 1, outputTokens: 1, cacheReadInputTokens: cached }
    const usage = { ...counts, totalTokens: 2 + cached }
    const toolOf = (at: number) => ({ toolUseId: `call_${at}`, name: nameOf(at) })
    if (!path.endsWith('/converse-stream')) {
      const content = segments.map((segment, at) => {
        const text = wholeOf(segment)
        if (segment.kind === 'text') {
          const citations = webCitations(segment)
          return citations.length > 0
            ? { citationsContent: { content: [{ text }], citations } }
            : { text }
        }
        if (segment.kind === 'thinking') {
          return { reasoningContent: { reasoningText: { text, signature: 'c2ln' } } }
        }
        return { toolUse: { ...toolOf(at), input: JSON.parse(text) as object } }
      })
      const output = { message: { role: 'assistant', content } }
      json(response, 200, { output, stopReason, usage, metrics: { latencyMs: 1 } })
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
      deltas.push(...webCitations(segment).map((citation) => ({ citation })))
      for (const delta of deltas) send('contentBlockDelta', { contentBlockIndex, delta })
      send('contentBlockStop', { contentBlockIndex })
    }
    send('messageStop', { stopReason })
    response.end(frame('metadata', { usage, metrics: { latencyMs: 1 } }))
  }
}

const stopsOfConverse = {
  end: 'end_turn',
  length: 'max_tokens',
  filter: 'content_filtered',
} as const

const webCitations = ({ source: url }: Segment): object[] =>
  url === undefined ? [] : [{ title: 'A page', location: { web: { url } }, sourceContent: [] }]
