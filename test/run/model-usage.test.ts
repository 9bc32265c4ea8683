/** What streams report of tokens, to clients and to the access log, when vendors count as they go. */
import type { ServerResponse } from 'node:http'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { beforeEach, describe, expect, it } from 'vitest'
import { policy } from '../support/manifests.ts'
import { reached, useFleet } from '../support/vendors/fleet.ts'
import { openStream, sendEvent, type VendorCall } from '../support/vendors/vendor.ts'
import { chunk } from '../support/vendors/vendor-a.ts'
import { frame, openFrames } from '../support/vendors/vendor-f.ts'
import { waitFor } from '../support/wait-for.ts'

const names = ['a', 'c', 'd', 'e', 'f'] as const
const models = { a: 'm-1', c: 'm-1', d: 'gemini-sim', e: 'gemini-sim', f: 'amazon.nova-pro-v1:0' }

const fleet = useFleet(
  ({ at, region }) => [
    reached('a', { vendorA: {}, ...at('a') }),
    reached('c', { vendorC: {}, ...at('c') }),
    reached('d', { vendorD: {}, ...at('d') }, { auth: { key: 'AIzaKey' } }),
    reached('e', { vendorE: { projectId: 'my-project', region: 'us-central1' }, ...at('e') }),
    reached('f', { vendorF: { region }, ...at('f') }),
    reached('limited', { vendorD: {}, ...at('d') }, { auth: { key: 'AIzaKey' } }),
    [
      policy('limited', 'HTTPRoute/limited', {
        traffic: { rateLimit: { local: [{ tokens: 45, unit: 'Hours' }] } },
      }),
    ],
  ],
  { LOG_FORMAT: 'json' },
)
beforeEach(() => {
  fleet.forget()
  fleet.vendors.a.answer = ({ path }, response) =>
    path.startsWith('/v1/responses') ? respondsA(response) : streamsA(response)
  fleet.vendors.c.answer = (_, response) => streamsC(response)
  fleet.vendors.d.answer = (_, response) => streamsD(response)
  fleet.vendors.e.answer = (_, response) => streamsD(response)
  fleet.vendors.f.answer = (_, response) => streamsF(response)
})

/** Every stream below ends with these counts, whatever it reported before. */
const final = { input: 30, output: 12 }

/** What was sent arrives before the connection closes. */
function breakOff(response: ServerResponse): void {
  response.write(': \n\n', () => response.destroy())
}

function streamsA(response: ServerResponse, isCut = false): void {
  const usage = (output: number) => ({
    prompt_tokens: 30,
    completion_tokens: output,
    total_tokens: 30 + output,
    prompt_tokens_details: { cached_tokens: 6 },
    completion_tokens_details: { reasoning_tokens: Math.min(output, 4) },
  })
  openStream(response)
  sendEvent(response, { ...chunk('m-1', { role: 'assistant', content: 'Hel' }), usage: usage(1) })
  sendEvent(response, { ...chunk('m-1', { content: 'lo' }), usage: usage(isCut ? 12 : 5) })
  if (isCut) {
    breakOff(response)
    return
  }
  sendEvent(response, { ...chunk('m-1', {}, 'stop'), usage: usage(5) })
  sendEvent(response, { ...chunk('m-1', {}), choices: [], usage: usage(12) })
  sendEvent(response, '[DONE]')
  response.end()
}

function respondsA(response: ServerResponse): void {
  openStream(response)
  const usage = {
    input_tokens: 30,
    input_tokens_details: { cached_tokens: 6 },
    output_tokens: 12,
    output_tokens_details: { reasoning_tokens: 4 },
    total_tokens: 42,
  }
  const base = { id: 'resp_1', object: 'response', created_at: 1, model: 'm-1', output: [] }
  const send = (type: string, at: number, more: object) =>
    sendEvent(
      response,
      { type, sequence_number: at, response: { ...base, status: 'completed', ...more } },
      type,
    )
  send('response.created', 0, { usage: null })
  send('response.completed', 1, { usage })
  response.end()
}

function streamsC(response: ServerResponse, isCut = false): void {
  const send = (event: { type: string; [name: string]: unknown }) =>
    sendEvent(response, event, event.type)
  openStream(response)
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm-1', content: [] }
  const usage = { input_tokens: 24, cache_read_input_tokens: 6, output_tokens: 1 }
  send({ type: 'message_start', message: { ...message, stop_reason: null, usage } })
  send({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } })
  send({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } })
  const counted = (output_tokens: number) => ({
    input_tokens: null,
    cache_read_input_tokens: null,
    output_tokens,
  })
  const delta = { stop_reason: null, stop_sequence: null }
  send({ type: 'message_delta', delta, usage: counted(isCut ? 12 : 5) })
  if (isCut) {
    breakOff(response)
    return
  }
  send({ type: 'content_block_stop', index: 0 })
  const stop = { stop_reason: 'end_turn', stop_sequence: null }
  send({ type: 'message_delta', delta: stop, usage: counted(7) })
  send({ type: 'message_delta', delta: stop, usage: counted(12) })
  send({ type: 'message_stop' })
  response.end()
}

function streamsD(response: ServerResponse, isCut = false): void {
  const send = (text: string, usageMetadata: object, finishReason?: string) => {
    const content = { role: 'model', parts: text === '' ? [] : [{ text }] }
    const candidates = [{ content, index: 0, ...(finishReason && { finishReason }) }]
    const head = { modelVersion: 'gemini-sim', responseId: 'r-1' }
    sendEvent(response, { candidates, usageMetadata, ...head })
  }
  openStream(response)
  send('Hel', { promptTokenCount: 30, cachedContentTokenCount: 6, thoughtsTokenCount: 4 })
  send('lo', { promptTokenCount: 30, candidatesTokenCount: isCut ? 8 : 2, totalTokenCount: 36 })
  if (isCut) {
    breakOff(response)
    return
  }
  send('', { promptTokenCount: 30, candidatesTokenCount: 3, totalTokenCount: 37 }, 'STOP')
  sendEvent(response, { usageMetadata: { promptTokenCount: 30, candidatesTokenCount: 8 } })
  response.end()
}

function streamsF(response: ServerResponse): void {
  openFrames(response)
  response.write(frame('messageStart', { role: 'assistant' }))
  response.write(frame('contentBlockDelta', { contentBlockIndex: 0, delta: { text: 'Hello' } }))
  response.write(frame('contentBlockStop', { contentBlockIndex: 0 }))
  response.write(frame('messageStop', { stopReason: 'end_turn' }))
  const usage = { inputTokens: 24, outputTokens: 12, cacheReadInputTokens: 6, totalTokens: 42 }
  response.end(frame('metadata', { usage, metrics: { latencyMs: 5 } }))
}

const openai = (name: string) =>
  new OpenAI({ baseURL: `${fleet.base(name)}/v1`, apiKey: 'client-key', maxRetries: 0 })
const anthropic = (name: string) =>
  new Anthropic({ baseURL: fleet.base(name), apiKey: 'client-key', maxRetries: 0 })
const messages = [{ role: 'user' as const, content: 'Hello' }]

/** What the official SDK of each format has put together when the stream is over: input and output. */
const clients = {
  async Completions(name: string, model: string) {
    const stream = await openai(name).chat.completions.create({
      model,
      messages,
      stream: true,
      stream_options: { include_usage: true },
    })
    const usages: OpenAI.CompletionUsage[] = []
    for await (const { usage } of stream) if (usage) usages.push(usage)
    const last = usages.at(-1)
    return { count: usages.length, input: last?.prompt_tokens, output: last?.completion_tokens }
  },
  async Messages(name: string, model: string) {
    const stream = anthropic(name).messages.stream({ model, messages, max_tokens: 100 })
    const { usage, stop_reason } = await stream.finalMessage()
    expect(stop_reason).toBe('end_turn')
    const input = usage.input_tokens + (usage.cache_read_input_tokens ?? 0)
    return { input, output: usage.output_tokens }
  },
  async Responses(name: string, model: string) {
    const { usage } = await openai(name).responses.stream({ model, input: 'Hello' }).finalResponse()
    return { input: usage?.input_tokens, output: usage?.output_tokens }
  },
}
type Client = keyof typeof clients
const pairs = (Object.keys(clients) as Client[]).flatMap((client) =>
  names.map((name) => [client, name] as const),
)

/** The line of the access log that is written for a request, which may fail. */
async function lineOf(send: () => Promise<unknown>): Promise<Record<string, unknown>> {
  const from = fleet.running.stdout.length
  await send().catch(() => undefined)
  const text = await waitFor('the line', () => {
    const lines = fleet.running.stdout.slice(from).split('\n').slice(0, -1)
    return lines.find((line) => line.includes('"scope":"request"'))
  })
  return JSON.parse(text) as Record<string, unknown>
}

describe('a stream whose vendor reports usage repeatedly', () => {
  it.each(pairs)(
    'reports the last usage to a %s client of vendor %s and to the log',
    async (client, name) => {
      let seen:
        | { count?: number; input: number | undefined; output: number | undefined }
        | undefined
      const line = await lineOf(async () => {
        seen = await clients[client](name, models[name])
      })
      expect(seen).toMatchObject(final)
      // A native stream keeps the reports that the vendor sends.
      if (client === 'Completions' && name !== 'a') expect(seen?.count).toBe(1)
      expect(line).toMatchObject({
        'gen_ai.usage.input_tokens': final.input,
        'gen_ai.usage.output_tokens': final.output,
        'gen_ai.usage.cache_read.input_tokens': 6,
      })
      const reasons = name !== 'c' && name !== 'f'
      expect(line['gen_ai.usage.reasoning_tokens']).toBe(reasons ? 4 : undefined)
    },
  )

  const cuts = {
    a: (_: VendorCall, response: ServerResponse) => streamsA(response, true),
    c: (_: VendorCall, response: ServerResponse) => streamsC(response, true),
    d: (_: VendorCall, response: ServerResponse) => streamsD(response, true),
  }
  it.each(
    pairs.filter(([client, name]) => name in cuts && !(client === 'Responses' && name === 'a')),
  )(
    'logs the usage reported so far if it breaks off (%s client of vendor %s)',
    async (client, name) => {
      fleet.vendors[name].answer = cuts[name as keyof typeof cuts]
      const line = await lineOf(() => clients[client](name, models[name]))
      expect(line).toMatchObject({
        'gen_ai.usage.input_tokens': final.input,
        'gen_ai.usage.output_tokens': final.output,
      })
    },
  )

  it('sends the usage reported so far to the client if it breaks off', async () => {
    fleet.vendors.d.answer = cuts.d
    const post = async (path: string, body: object) => {
      const answer = await fetch(`${fleet.base('d')}${path}`, {
        method: 'POST',
        body: JSON.stringify({ model: 'gemini-sim', stream: true, ...body }),
      })
      return answer.text()
    }
    const asked = { messages, stream_options: { include_usage: true } }
    expect(await post('/v1/chat/completions', asked)).toMatch(/"completion_tokens":12.*"error"/s)
    const message = await post('/v1/messages', { messages, max_tokens: 9 })
    expect(message).toMatch(/"stop_reason":null.*"output_tokens":12.*event: error/s)
    expect(await post('/v1/responses', { input: 'x' })).toMatch(
      /response\.failed.*"output_tokens":12/s,
    )
  })

  it('is charged to a token limit by its last usage', async () => {
    await clients.Messages('limited', models.d)
    // 42 of 45 tokens are used: the next request passes, and the one behind it does not.
    await clients.Messages('limited', models.d)
    await waitFor('the limit', () =>
      clients.Messages('limited', models.d).then(
        () => false,
        (error: unknown) => error instanceof Anthropic.RateLimitError,
      ),
    )
    expect(fleet.vendors.d.calls.length).toBeGreaterThanOrEqual(2)
  })
})
