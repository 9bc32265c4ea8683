/** Clients, the log and token limits get the same counts, in every format, whole and streamed. */
import type { ServerResponse } from 'node:http'
import { beforeEach, describe, expect, it } from 'vitest'
import { policy } from '../support/manifests.ts'
import { reached, routes, useFleet } from '../support/vendors/fleet.ts'
import { json, openStream, sendEvent, type VendorCall } from '../support/vendors/vendor.ts'
import { chunk } from '../support/vendors/vendor-a.ts'
import { frame, openFrames } from '../support/vendors/vendor-f.ts'
import { waitFor } from '../support/wait-for.ts'

const claude = 'anthropic.claude-sonnet-4-v1:0'
const project = { projectId: 'my-project', region: 'us-central1' }
const fleet = useFleet(
  ({ at, region }) => [
    reached('a', { vendorA: {}, ...at('a') }),
    reached('c', { vendorC: {}, ...at('c') }),
    reached('d', { vendorD: {}, ...at('d') }),
    reached('e', { vendorE: project, ...at('e') }),
    reached('f', { vendorF: { region }, ...at('f') }),
    reached('limited', { vendorC: {}, ...at('c') }),
    reached('limited-a', { vendorA: {}, ...at('a') }),
    [
      policy('limited-a', 'HTTPRoute/limited-a', {
        traffic: { rateLimit: { local: [{ tokens: 500, unit: 'Hours' }] } },
      }),
    ],
    reached(
      'guarded',
      { vendorA: {}, ...at('a') },
      { ai: { routes, promptGuard: { response: [{ regex: { builtins: ['Ssn'] } }] } } },
    ),
    [
      policy('limited', 'HTTPRoute/limited', {
        traffic: { rateLimit: { local: [{ tokens: 500, unit: 'Hours' }] } },
      }),
    ],
  ],
  { LOG_FORMAT: 'json' },
)
beforeEach(() => fleet.forget())

type Name = 'a' | 'c' | 'd' | 'e' | 'f'
type Usage = Record<string, unknown>

/** An answer of a vendor with this usage, whole or streamed. */
const answers: Record<Name, (usage: Usage, isStream: boolean, response: ServerResponse) => void> = {
  a(usage, isStream, response) {
    if (!isStream) {
      const message = { role: 'assistant', content: 'Hi' }
      const choices = [{ index: 0, message, finish_reason: 'stop' }]
      json(response, 200, { id: 'c', object: 'chat.completion', model: 'm', choices, usage })
      return
    }
    openStream(response)
    sendEvent(response, chunk('m', { role: 'assistant', content: 'Hi' }, 'stop'))
    sendEvent(response, { ...chunk('m', {}), choices: [], usage })
    sendEvent(response, '[DONE]')
    response.end()
  },
  c: writeMessage,
  e: writeMessage,
  d(usageMetadata, isStream, response) {
    const content = { role: 'model', parts: [{ text: 'Hi' }] }
    const candidates = [{ content, index: 0, finishReason: 'STOP' }]
    const body = { candidates, usageMetadata, modelVersion: 'm', responseId: 'r' }
    if (!isStream) {
      json(response, 200, body)
      return
    }
    openStream(response)
    const { toolUsePromptTokenCount: _, ...first } = usageMetadata
    sendEvent(response, { ...body, candidates: [{ content, index: 0 }], usageMetadata: first })
    sendEvent(response, body)
    response.end()
  },
  f(usage, isStream, response) {
    if (!isStream) {
      const message = { role: 'assistant', content: [{ text: 'Hi' }] }
      json(response, 200, { output: { message }, stopReason: 'end_turn', usage })
      return
    }
    openFrames(response)
    response.write(frame('messageStart', { role: 'assistant' }))
    response.write(frame('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'Hi' } }))
    response.write(frame('contentBlockStop', { contentBlockIndex: 0 }))
    response.write(frame('messageStop', { stopReason: 'end_turn' }))
    response.end(frame('metadata', { usage, metrics: { latencyMs: 5 } }))
  },
}

function writeMessage(usage: Usage, isStream: boolean, response: ServerResponse): void {
  const head = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm' }
  if (!isStream) {
    const content = [{ type: 'text', text: 'Hi' }]
    json(response, 200, { ...head, content, stop_reason: 'end_turn', usage })
    return
  }
  const send = (type: string, more: object) => sendEvent(response, { type, ...more }, type)
  openStream(response)
  // The beginning has the input of the message, and the end the rest, without repeating the input.
  const { output_tokens, iterations, ...input } = usage
  send('message_start', {
    message: { ...head, content: [], stop_reason: null, usage: { ...input, output_tokens: 1 } },
  })
  send('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })
  send('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'Hi' } })
  send('content_block_stop', { index: 0 })
  const end = { output_tokens, ...(iterations !== undefined && { iterations }) }
  send('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: end })
  send('message_stop', {})
  response.end()
}

const compaction = { type: 'compaction', input_tokens: 180_000, output_tokens: 3_500 }
const messages = [{ role: 'user', content: 'Hello' }]

interface Case {
  readonly name: Name
  readonly model: string
  readonly usage: Usage
  readonly expected: { input: number; output: number; read?: number; written?: number }
}

const cached = {
  input_tokens: 10,
  cache_read_input_tokens: 1000,
  cache_creation_input_tokens: 200,
  output_tokens: 5,
}
const compacted = {
  input_tokens: 10,
  output_tokens: 10,
  iterations: [
    { type: 'message', input_tokens: 7, output_tokens: 3 },
    { ...compaction, cache_read_input_tokens: 40, cache_creation_input_tokens: 2 },
    { type: 'message', input_tokens: 10, output_tokens: 10 },
    { type: 'compaction', input_tokens: 5, output_tokens: 1 },
  ],
}
const all = { input: 1210, output: 5, read: 1000, written: 200 }
const sum = { input: 180_057, output: 3_511, read: 40, written: 2 }
const cases: Record<string, Case> = {
  'the caches of vendor c': { name: 'c', model: 'm', usage: cached, expected: all },
  'the caches of Claude at vendor e': {
    name: 'e',
    model: 'claude-opus-4-1',
    usage: cached,
    expected: all,
  },
  'the caches of Claude at vendor f': {
    name: 'f',
    model: claude,
    usage: {
      inputTokens: 10,
      outputTokens: 5,
      totalTokens: 1215,
      cacheReadInputTokens: 1000,
      cacheWriteInputTokens: 200,
    },
    expected: all,
  },
  'the caches of vendor a': {
    name: 'a',
    model: 'm',
    usage: {
      prompt_tokens: 1210,
      completion_tokens: 5,
      total_tokens: 1215,
      prompt_tokens_details: { cached_tokens: 1000, cache_write_tokens: 200 },
    },
    expected: all,
  },
  'compactions of vendor c': { name: 'c', model: 'm', usage: compacted, expected: sum },
  'compactions of Claude at vendor e': {
    name: 'e',
    model: 'claude-opus-4-1',
    usage: compacted,
    expected: sum,
  },
  'tools of vendor d': {
    name: 'd',
    model: 'gemini-2.5-flash',
    usage: {
      promptTokenCount: 10,
      cachedContentTokenCount: 4,
      toolUsePromptTokenCount: 5000,
      candidatesTokenCount: 5,
      totalTokenCount: 5015,
    },
    expected: { input: 5010, output: 5, read: 4 },
  },
}

const formats = {
  Completions: {
    path: '/v1/chat/completions',
    body: { messages, stream_options: { include_usage: true } },
    read: (usage: Usage) => ({
      input: usage.prompt_tokens,
      output: usage.completion_tokens,
      total: usage.total_tokens,
      details: usage.prompt_tokens_details,
    }),
  },
  Responses: {
    path: '/v1/responses',
    body: { input: 'Hello' },
    read: (usage: Usage) => ({
      input: usage.input_tokens,
      output: usage.output_tokens,
      total: usage.total_tokens,
      details: usage.input_tokens_details,
    }),
  },
  Messages: {
    path: '/v1/messages',
    body: { messages, max_tokens: 9 },
    read: (usage: Usage) => {
      const [read, written] = [usage.cache_read_input_tokens, usage.cache_creation_input_tokens]
      const input = Number(usage.input_tokens) + Number(read ?? 0) + Number(written ?? 0)
      return {
        input,
        output: usage.output_tokens,
        total: input + Number(usage.output_tokens),
        details: { cached_tokens: read, cache_write_tokens: written },
      }
    },
  },
} as const
type Format = keyof typeof formats

async function requestTo(name: string, model: string, format: Format, stream: boolean) {
  const { path, body } = formats[format]
  const { stream_options, ...rest } = body as { stream_options?: object }
  const asked = {
    model,
    ...rest,
    ...(stream && { stream, ...(stream_options && { stream_options }) }),
  }
  return fetch(`${fleet.base(name)}${path}`, { method: 'POST', body: JSON.stringify(asked) })
}

/** The last usage in an answer; events of Messages add to earlier ones. */
function usageIn(text: string, isStream: boolean): Usage {
  if (!isStream) return (JSON.parse(text) as { usage: Usage }).usage
  const events = text
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice(6)) as Record<string, { usage?: Usage } & Usage>)
  const found = events.map((one) => one.usage ?? one.message?.usage ?? one.response?.usage ?? {})
  return Object.assign({}, ...found) as Usage
}

async function lineSince(from: number): Promise<Usage> {
  const text = await waitFor('the line', () => {
    const lines = fleet.running.stdout.slice(from).split('\n').slice(0, -1)
    return lines.find((line) => line.includes('"scope":"request"'))
  })
  return JSON.parse(text) as Usage
}

describe.each(Object.entries(cases))('usage with %s', (what, { name, model, usage, expected }) => {
  const isNative = (format: Format) =>
    format === (name === 'a' ? 'Completions' : name === 'c' || name === 'e' ? 'Messages' : '')
  const ways = (Object.keys(formats) as Format[]).flatMap((format) =>
    [false, true].map((isStream) => [format, isStream ? 'streamed' : 'whole', isStream] as const),
  )

  it.each(ways)('is the same for a client of %s (%s) and the log', async (format, _, isStream) => {
    // Vendor a answers requests for Responses in that format.
    if (name === 'a' && format === 'Responses') return
    fleet.vendors[name].answer = (_call: VendorCall, response) =>
      answers[name](usage, isStream, response)
    const from = fleet.running.stdout.length
    const answer = await requestTo(name, model, format, isStream)
    const text = await answer.text()
    expect(answer.status, text).toBe(200)
    const { input, output, read, written } = expected
    // A native answer keeps the numbers of the vendor, which list compactions separately.
    if (!(isNative(format) && what.startsWith('compactions'))) {
      const details = {
        ...(read !== undefined && { cached_tokens: read }),
        ...(written !== undefined && { cache_write_tokens: written }),
      }
      expect(formats[format].read(usageIn(text, isStream))).toMatchObject({
        input,
        output,
        total: input + output,
        details,
      })
    }
    expect(await lineSince(from)).toMatchObject({
      'gen_ai.usage.input_tokens': input,
      'gen_ai.usage.output_tokens': output,
      ...(read !== undefined && { 'gen_ai.usage.cache_read.input_tokens': read }),
      ...(written !== undefined && { 'gen_ai.usage.cache_creation.input_tokens': written }),
    })
  })
})

it('a count that no message can have is not charged to a token limit', async () => {
  for (const cached_tokens of [1e9, -1e9, 1e300, 2.5]) {
    const details = { prompt_tokens_details: { cached_tokens } }
    const usage = { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4, ...details }
    fleet.vendors.a.answer = (_, response) => answers.a(usage, false, response)
    const from = fleet.running.stdout.length
    const answer = await requestTo('limited-a', 'm', 'Completions', false)
    await answer.text()
    expect(answer.status, `${cached_tokens}`).toBe(200)
    expect(await lineSince(from)).toMatchObject({ 'gen_ai.usage.input_tokens': 3 })
  }
})

it('a compaction is charged to a token limit', async () => {
  fleet.vendors.c.answer = (_, response) => answers.c(compacted, false, response)
  const first = await requestTo('limited', 'm', 'Messages', false)
  expect(first.status).toBe(200)
  await first.text()
  await waitFor('the limit', async () => {
    const next = await requestTo('limited', 'm', 'Messages', false)
    await next.text()
    return next.status === 429
  })
  // Without the compaction, 25 requests would fit into the limit.
  expect(fleet.vendors.c.calls.length).toBeLessThan(5)
})

it.each(['limited-a', 'guarded'])('a response in the background is refused (%s)', async (name) => {
  const body = JSON.stringify({ model: 'gpt-5', input: 'x', background: true })
  const send = (to: string) => fetch(`${fleet.base(to)}/v1/responses`, { method: 'POST', body })
  const answer = await send(name)
  expect(answer.status).toBe(400)
  expect(await answer.text()).toContain('background responses are not supported')
  expect(fleet.vendors.a.calls).toHaveLength(0)
  await (await send('a')).text()
  expect(fleet.lastCall('a')?.body.background).toBe(true)
})
