// What the mock vendors answer, in the format of each path. A format has its paths, and makes the body of an answer
// and the events of a stream from the text of the answer.
import { crc32 } from 'node:zlib'

/** About what a tokenizer would say: four characters make a token. */
const tokens = (value) =>
  Math.ceil((typeof value === 'string' ? value : JSON.stringify(value)).length / 4)

/** The texts of a content, in any format. */
const textOf = (content) =>
  typeof content === 'string'
    ? content
    : [content ?? []]
        .flat()
        .map((part) => (typeof part === 'string' ? part : (part.text ?? textOf(part.content))))
        .join(' ')

/** What the client said last, in any format. */
function lastText({ messages, input, contents }) {
  if (typeof input === 'string') return input
  const last = [messages ?? input ?? contents ?? []].flat().at(-1) ?? {}
  return textOf(last.content ?? last.parts)
}

/** Splits the text in the middle of an address, which is the hardest case for a mask. */
const pieces = (text) => text.match(/.{1,7}/gs) ?? []

const seconds = () => Math.floor(Date.now() / 1000)
const event = (type, data) => `event: ${type}\ndata: ${JSON.stringify({ type, ...data })}\n\n`
const line = (data) => `data: ${JSON.stringify(data)}\n\n`

const count = (call) => ({ input: tokens(call.body), output: tokens(call.text) })

function completionsUsage(call) {
  const { input, output } = count(call)
  return { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
}

const completions = {
  path: /\/chat\/completions$/,
  isStream: ({ body }) => body.stream === true,
  answer: (call) => ({
    id: 'chatcmpl-mock',
    object: 'chat.completion',
    created: seconds(),
    model: call.model,
    choices: [
      { index: 0, message: { role: 'assistant', content: call.text }, finish_reason: 'stop' },
    ],
    usage: completionsUsage(call),
  }),
  *events(call) {
    const base = {
      id: 'chatcmpl-mock',
      object: 'chat.completion.chunk',
      created: seconds(),
      model: call.model,
    }
    const delta = (delta, finish_reason = null) =>
      line({ ...base, choices: [{ index: 0, delta, finish_reason }] })
    yield delta({ role: 'assistant', content: '' })
    for (const content of pieces(call.text)) yield delta({ content })
    yield delta({}, 'stop')
    if (call.body.stream_options?.include_usage) {
      yield line({ ...base, choices: [], usage: completionsUsage(call) })
    }
    yield 'data: [DONE]\n\n'
  },
}

const outputMessage = (text, status) => ({
  id: 'msg_mock',
  type: 'message',
  role: 'assistant',
  status,
  content: status === 'completed' ? [{ type: 'output_text', text, annotations: [] }] : [],
})

function response(call, status) {
  const { input, output } = count(call)
  const usage = {
    input_tokens: input,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + output,
  }
  const isDone = status === 'completed'
  return {
    id: 'resp_mock',
    object: 'response',
    created_at: seconds(),
    status,
    model: call.model,
    output: isDone ? [outputMessage(call.text, status)] : [],
    usage: isDone ? usage : null,
    error: null,
    incomplete_details: null,
    instructions: call.body.instructions ?? null,
    metadata: {},
    parallel_tool_calls: true,
    tool_choice: 'auto',
    tools: [],
  }
}

const responses = {
  path: /\/responses$/,
  isStream: ({ body }) => body.stream === true,
  answer: (call) => response(call, 'completed'),
  *events(call) {
    let sequence_number = 0
    const next = (type, data) => event(type, { sequence_number: sequence_number++, ...data })
    const part = (text) => ({ type: 'output_text', text, annotations: [] })
    const at = { item_id: 'msg_mock', output_index: 0, content_index: 0 }
    yield next('response.created', { response: response(call, 'in_progress') })
    yield next('response.output_item.added', {
      output_index: 0,
      item: outputMessage('', 'in_progress'),
    })
    yield next('response.content_part.added', { ...at, part: part('') })
    for (const delta of pieces(call.text)) {
      yield next('response.output_text.delta', { ...at, delta, logprobs: [] })
    }
    yield next('response.output_text.done', { ...at, text: call.text, logprobs: [] })
    yield next('response.content_part.done', { ...at, part: part(call.text) })
    yield next('response.output_item.done', {
      output_index: 0,
      item: outputMessage(call.text, 'completed'),
    })
    yield next('response.completed', { response: response(call, 'completed') })
  },
}

const message = (call, content, usage) => ({
  id: 'msg_mock',
  type: 'message',
  role: 'assistant',
  model: call.model,
  content,
  stop_reason: content.length === 0 ? null : 'end_turn',
  stop_sequence: null,
  usage,
})

const messages = {
  path: /\/messages$/,
  isStream: ({ body }) => body.stream === true,
  answer(call) {
    const { input, output } = count(call)
    const usage = { input_tokens: input, output_tokens: output }
    return message(call, [{ type: 'text', text: call.text }], usage)
  },
  *events(call) {
    const { input, output } = count(call)
    const usage = { input_tokens: input, output_tokens: 1 }
    yield event('message_start', { message: message(call, [], usage) })
    yield event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })
    for (const text of pieces(call.text)) {
      yield event('content_block_delta', { index: 0, delta: { type: 'text_delta', text } })
    }
    yield event('content_block_stop', { index: 0 })
    const delta = { stop_reason: 'end_turn', stop_sequence: null }
    yield event('message_delta', { delta, usage: { output_tokens: output } })
    yield event('message_stop', {})
  },
}

function generated(call, text, isLast) {
  const { input, output } = count(call)
  return {
    candidates: [
      {
        index: 0,
        content: { role: 'model', parts: [{ text }] },
        ...(isLast && { finishReason: 'STOP' }),
      },
    ],
    usageMetadata: {
      promptTokenCount: input,
      candidatesTokenCount: output,
      totalTokenCount: input + output,
    },
    modelVersion: call.model,
    responseId: 'mock',
  }
}

const generateContent = {
  path: /\/models\/(?<model>[^/:]+):(?<verb>generateContent|streamGenerateContent)$/,
  isStream: ({ verb, query }) => verb === 'streamGenerateContent' && query.get('alt') === 'sse',
  answer: (call) =>
    call.verb === 'generateContent'
      ? generated(call, call.text, true)
      : pieces(call.text).map((text, at, all) => generated(call, text, at === all.length - 1)),
  *events(call) {
    const all = pieces(call.text)
    for (const [at, text] of all.entries()) yield line(generated(call, text, at === all.length - 1))
  },
}

function converseUsage(call) {
  const { input, output } = count(call)
  return { inputTokens: input, outputTokens: output, totalTokens: input + output }
}

/** A message of an event stream of AWS: lengths, a checksum of them, headers, JSON, and a checksum of everything. */
function frame(type, data) {
  const header = (name, value) =>
    Buffer.concat([
      Buffer.from([name.length]),
      Buffer.from(name),
      Buffer.from([7, value.length >> 8, value.length & 255]),
      Buffer.from(value),
    ])
  const headers = Buffer.concat([
    header(':message-type', 'event'),
    header(':event-type', type),
    header(':content-type', 'application/json'),
  ])
  const payload = Buffer.from(JSON.stringify(data))
  const bytes = Buffer.alloc(12 + headers.length + payload.length + 4)
  bytes.writeUInt32BE(bytes.length, 0)
  bytes.writeUInt32BE(headers.length, 4)
  bytes.writeUInt32BE(crc32(bytes.subarray(0, 8)), 8)
  headers.copy(bytes, 12)
  payload.copy(bytes, 12 + headers.length)
  bytes.writeUInt32BE(crc32(bytes.subarray(0, -4)), bytes.length - 4)
  return bytes
}

const converse = {
  path: /\/model\/(?<model>[^/]+)\/(?<verb>converse|converse-stream)$/,
  streamType: 'application/vnd.amazon.eventstream',
  isStream: ({ verb }) => verb === 'converse-stream',
  answer: (call) => ({
    output: { message: { role: 'assistant', content: [{ text: call.text }] } },
    stopReason: 'end_turn',
    usage: converseUsage(call),
    metrics: { latencyMs: 1 },
  }),
  *events(call) {
    yield frame('messageStart', { role: 'assistant' })
    for (const text of pieces(call.text)) {
      yield frame('contentBlockDelta', { contentBlockIndex: 0, delta: { text } })
    }
    yield frame('contentBlockStop', { contentBlockIndex: 0 })
    yield frame('messageStop', { stopReason: 'end_turn' })
    yield frame('metadata', { usage: converseUsage(call), metrics: { latencyMs: 1 } })
  },
}

/** A vector that depends on the text only. */
const vector = (text, size = 8) =>
  Array.from({ length: size }, (_, at) => (crc32(`${at} ${text}`) / 2 ** 31 - 1) / Math.sqrt(size))

const embeddings = {
  path: /\/embeddings$/,
  answer({ body, model }) {
    const texts = [body.input].flat()
    const shown = (numbers) =>
      body.encoding_format === 'base64'
        ? Buffer.from(new Float32Array(numbers).buffer).toString('base64')
        : numbers
    const used = tokens(texts)
    return {
      object: 'list',
      model,
      data: texts.map((text, index) => ({
        object: 'embedding',
        index,
        embedding: shown(vector(textOf(text), body.dimensions)),
      })),
      usage: { prompt_tokens: used, total_tokens: used },
    }
  },
}

const embedContent = {
  path: /\/models\/(?<model>[^/:]+):(?<verb>embedContent|batchEmbedContents)$/,
  answer({ body, verb }) {
    const embed = ({ content, outputDimensionality }) => ({
      values: vector(textOf(content?.parts), outputDimensionality),
    })
    if (verb === 'embedContent') return { embedding: embed(body) }
    return { embeddings: (body.requests ?? []).map(embed) }
  },
}

const messagesCount = {
  path: /\/messages\/count_tokens$/,
  answer: ({ body }) => ({ input_tokens: tokens(body) }),
}

const responsesCount = {
  path: /\/responses\/input_tokens$/,
  answer: ({ body }) => ({ object: 'response.input_tokens', input_tokens: tokens(body) }),
}

const contentsCount = {
  path: /\/models\/(?<model>[^/:]+):(?<verb>countTokens)$/,
  answer: ({ body }) => ({ totalTokens: tokens(body) }),
}

const converseCount = {
  path: /\/model\/(?<model>[^/]+)\/(?<verb>count-tokens)$/,
  answer: ({ body }) => ({ inputTokens: tokens(body) }),
}

export const formats = {
  completions,
  responses,
  messages,
  generateContent,
  converse,
  embeddings,
  embedContent,
  messagesCount,
  responsesCount,
  contentsCount,
  converseCount,
}

/** The text of the answer: what the client said last, so that you can see what the gateway sent. */
export const answerTo = (body) =>
  `You said "${lastText(body)}". Write to support@example.com for more.`
