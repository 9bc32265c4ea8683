/** The filter in a real Envoy: requests, answers and streams of models. */
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { beforeEach, expect, it } from 'vitest'
import { compileGuards } from '../../src/engines/core/index.ts'
import { hasUnreadable, Random } from '../core/texts/messages.ts'
import { sse, streamOf } from '../core/texts/streams.ts'
import { type Envoy, startEnvoy } from '../support/envoy.ts'
import { useFixture } from '../support/fixture.ts'
import { describeWithParts } from '../support/parts.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { eventually } from '../support/wait-for.ts'
import { manifestsFor } from './manifests.ts'

const promptGuard = {
  request: [
    { regex: { builtins: ['Email'], matches: ['sécret-[0-9]+'] } },
    {
      regex: { matches: ['forbidden'], action: 'Reject' },
      response: { message: 'not here', statusCode: 422 },
    },
  ],
  response: [{ regex: { builtins: ['Email', 'CreditCard'], matches: ['sécret-[0-9]+'] } }],
}

interface Reply {
  readonly status?: number
  readonly type?: string
  readonly coding?: string
  /** Written one by one, so that Envoy gets them in pieces. */
  readonly pieces: readonly (string | Uint8Array)[]
}

const completion = (content: string): Reply => ({
  pieces: [
    JSON.stringify({
      model: 'm-1',
      choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 },
    }),
  ],
})

let reply: Reply = completion('hello')

function startVendor(): Promise<Upstream> {
  return startUpstream('vendor', async (_, response) => {
    const { status = 200, type = 'application/json', coding, pieces } = reply
    response.writeHead(status, {
      'content-type': type,
      ...(coding !== undefined && { 'content-encoding': coding }),
    })
    for (const piece of pieces) {
      await new Promise((resolve) => response.write(piece, resolve))
      await new Promise((resolve) => setImmediate(resolve))
    }
    response.end()
  })
}

beforeEach(() => {
  reply = completion('hello')
})

const stream = (pieces: Reply['pieces']): Reply => ({ type: 'text/event-stream', pieces })

function cut(text: string, size: number): Buffer[] {
  const bytes = Buffer.from(text)
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
    bytes.subarray(at * size, (at + 1) * size),
  )
}

async function send(envoy: Envoy, path: string, body: string, headers: object = {}) {
  const answer = await fetch(`${envoy.base}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body,
  })
  return { status: answer.status, headers: answer.headers, text: await answer.text() }
}

const ask = (envoy: Envoy, content: string) =>
  send(
    envoy,
    '/v1/chat/completions',
    JSON.stringify({ model: 'm', messages: [{ role: 'user', content }] }),
  )

describeWithParts(['envoy'], 'the filter in Envoy', () => {
  const vendor = useFixture(startVendor)
  const envoy = useFixture(() =>
    startEnvoy({
      manifests: manifestsFor({ ai: { promptGuard } }),
      upstream: vendor.port,
      concurrency: 2,
    }),
  )
  const lastBody = () => vendor.received.at(-1)?.body ?? ''

  it('masks the texts of a request, over escapes, and sends the upstream its length', async () => {
    const body = '{"messages":[{"role":"user","content":"hi bob@\\u0065xample.com"}],"n":1.50}'
    expect((await send(envoy, '/v1/chat/completions', body)).status).toBe(200)
    expect(lastBody()).toBe(
      '{"messages":[{"role":"user","content":"hi <EMAIL_ADDRESS>"}],"n":1.50}',
    )
    expect(vendor.received.at(-1)?.headers['content-length']).toBe(`${lastBody().length}`)
  })

  it('rejects a request with the status and message of its guard', async () => {
    const before = vendor.received.length
    const { status, text } = await ask(envoy, 'this is \\forbidden')
    expect([status, text]).toEqual([422, 'not here'])
    expect(vendor.received.length).toBe(before)
  })

  it.each([
    ['is malformed', '/v1/chat/completions', '{"messages":', 400, 'invalid_request_error'],
    ['hides a text', '/v1/messages', '{"messages":[],"Messages":[]}', 400, 'invalid_request_error'],
    ['has token numbers', '/v1/embeddings', '{"input":[1,2]}', 400, 'invalid_request_error'],
    ['has a path with dots', '/v1/x/..%2f..%2fraw', '{}', 400, 'dot segments'],
  ])(
    'answers a request that %s with an error of the format',
    async (_, path, body, status, part) => {
      const answer = await send(envoy, path, body)
      expect(answer.status, answer.text).toBe(status)
      expect(JSON.parse(answer.text).error).toBeDefined()
      expect(answer.text).toContain(part)
    },
  )

  it('refuses a request that it cannot read because of its coding', async () => {
    const { status } = await send(envoy, '/v1/chat/completions', 'x', {
      'content-encoding': 'gzip',
    })
    expect(status).toBe(415)
  })

  it('passes what no guard reads', async () => {
    expect((await send(envoy, '/v1/raw', 'bob@example.com')).status).toBe(200)
    expect(lastBody()).toBe('bob@example.com')
  })

  it('masks an answer and asks the upstream for no compression', async () => {
    reply = completion('mail bob@example.com')
    const { text, headers } = await ask(envoy, 'hello')
    expect(JSON.parse(text).choices[0].message.content).toBe('mail <EMAIL_ADDRESS>')
    expect(headers.get('content-length')).toBe(`${text.length}`)
    expect(vendor.received.at(-1)?.headers['accept-encoding']).toBeUndefined()
  })

  it.each([
    ['is not JSON', { pieces: ['{"choices":'] }],
    ['is compressed', { pieces: ['bob@example.com'], coding: 'gzip' }],
    ['is empty', { pieces: [''] }],
    ['is larger than the limit', { pieces: ['x'.repeat(17 << 20)] }],
  ])('answers 500 if the answer %s', async (_, given) => {
    reply = given
    const answer = await fetch(`${envoy.base}/v1/chat/completions`, {
      method: 'POST',
      body: '{"messages":[]}',
    })
    // The client must not see the bytes, in whatever coding.
    expect(answer.status).toBe(500)
    expect(await answer.text()).toContain('cannot judge the answer')
  })

  it.each(['Completions', 'Messages', 'Responses'] as const)(
    'masks a %s stream as the core does, wherever the upstream cuts it',
    async (format) => {
      const path = {
        Completions: '/v1/chat/completions',
        Messages: '/v1/messages',
        Responses: '/v1/responses',
      }[format]
      const [guard] = promptGuard.response
      const outcome = compileGuards([
        {
          rules: [
            ...(guard?.regex.matches ?? []).map((pattern) => ({
              pattern,
              replacement: '<masked>',
            })),
            { builtin: 'Email', replacement: '<EMAIL_ADDRESS>' },
            { builtin: 'CreditCard', replacement: '<CREDIT_CARD>' },
          ],
        },
      ])
      if (!outcome.ok) throw new Error(outcome.message)
      for (let seed = 1; seed <= 16; seed++) {
        const random = new Random(seed)
        const events = streamOf(format, random)
        const text = sse(events, random)
        // Guards refuse documents that they cannot read.
        if (events.some(({ data }) => data !== '[DONE]' && hasUnreadable(JSON.parse(data))))
          continue
        const rewriter = outcome.guards.rewriter({ format, message: 'stream', limit: 1 << 20 })
        const expected = Buffer.from(rewriter.end(Buffer.from(text))).toString()
        rewriter.dispose()
        reply = stream(cut(text, [7, 1 + random.below(40), 4096][seed % 3] ?? 7))
        const request = format === 'Responses' ? '{"input":"x"}' : '{"messages":[]}'
        const answer = await send(envoy, path, request)
        expect(answer.text, `seed ${seed}`).toBe(expected)
      }
      outcome.guards.dispose()
    },
  )

  it('ends a stream that it cannot judge with the error event of the format', async () => {
    reply = stream(['data: {"type":"ping"}\n\nda', 'ta: bob@example.com\n\n', 'data: {}\n\n'])
    const { text } = await send(envoy, '/v1/messages', '{"messages":[]}')
    expect(text).toBe(
      'data: {"type":"ping"}\n\nevent: error\ndata: {"type":"error","error":{"type":"api_error","message":"the guards cannot judge the answer"}}\n\n',
    )
  })

  it('lets the SDK of vendor A read masked answers and streams', async () => {
    const client = new OpenAI({ baseURL: `${envoy.base}/v1`, apiKey: 'k', maxRetries: 0 })
    const messages = [{ role: 'user' as const, content: 'I am bob@example.com' }]
    reply = completion('to bob@example.com')
    const whole = await client.chat.completions.create({ model: 'm', messages })
    expect(whole.choices[0]?.message.content).toBe('to <EMAIL_ADDRESS>')
    expect(lastBody()).toContain('I am <EMAIL_ADDRESS>')
    const chunks = ['to bob@exa', 'mple.com', ' now'].map(
      (content) =>
        `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`,
    )
    reply = stream([...chunks, 'data: [DONE]\n\n'])
    const events = await client.chat.completions.create({ model: 'm', messages, stream: true })
    let text = ''
    for await (const { choices } of events) text += choices[0]?.delta.content ?? ''
    expect(text).toBe('to <EMAIL_ADDRESS> now')
  })

  it('lets the SDK of vendor C read masked streams', async () => {
    const client = new Anthropic({ baseURL: envoy.base, apiKey: 'k', maxRetries: 0 })
    const event = (body: { type: string }) =>
      `event: ${body.type}\ndata: ${JSON.stringify(body)}\n\n`
    const delta = (text: string) =>
      event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } } as {
        type: string
      })
    const message = {
      id: 'a',
      type: 'message',
      role: 'assistant',
      content: [],
      model: 'm',
      usage: { input_tokens: 1, output_tokens: 1 },
    }
    reply = stream([
      event({ type: 'message_start', message } as { type: string }),
      event({
        type: 'content_block_start',
        index: 0,
        content_block: { type: 'text', text: '' },
      } as { type: string }),
      delta('to bob@exa'),
      delta('mple.com'),
      event({ type: 'content_block_stop', index: 0 } as { type: string }),
      event({
        type: 'message_delta',
        delta: { stop_reason: 'end_turn' },
        usage: { output_tokens: 9 },
      } as { type: string }),
      event({ type: 'message_stop' }),
    ])
    const messages = [{ role: 'user' as const, content: 'I am bob@example.com' }]
    const answer = await client.messages
      .stream({ model: 'm', max_tokens: 9, messages })
      .finalMessage()
    expect(answer.content).toEqual([{ type: 'text', text: 'to <EMAIL_ADDRESS>' }])
    expect(answer.usage.output_tokens).toBe(9)
    expect(lastBody()).toContain('I am <EMAIL_ADDRESS>')
  })

  it('masks a request and an answer of 10 MB', async () => {
    const content = `${'word '.repeat(2_100_000)}bob@example.com`
    reply = completion(content)
    const { text } = await ask(envoy, content)
    const masked = content.replace('bob@example.com', '<EMAIL_ADDRESS>')
    expect(JSON.parse(text).choices[0].message.content).toBe(masked)
    expect(JSON.parse(lastBody()).messages[0].content).toBe(masked)
  })

  it('refuses a request above its limit with 413', async () => {
    expect((await ask(envoy, 'x'.repeat(17 << 20))).status).toBe(413)
  })

  it('gives access logs and metrics the models, tokens and guards', async () => {
    const before = await envoy.counters()
    reply = completion('to bob@example.com')
    await ask(envoy, 'hello')
    const line = 'status=200 details=via_upstream model=m-1 input=11 output=7 guard=Mask'
    await eventually(() => expect(envoy.lastLines(3)).toContain(line))
    const after = await envoy.counters()
    const grown = (name: string) => (after[name] ?? 0) - (before[name] ?? 0)
    expect(grown('sluice_input_tokens_total')).toBe(11)
    expect(grown('sluice_output_tokens_total')).toBe(7)
    expect(grown('sluice_masked_total')).toBe(1)
  })

  it('keeps no memory of many requests', { timeout: 120_000 }, async () => {
    const round = () =>
      Promise.all(Array.from({ length: 20 }, () => ask(envoy, 'hi bob@example.com')))
    for (let at = 0; at < 40; at++) await round()
    const before = envoy.residentBytes()
    for (let at = 0; at < 100; at++) await round()
    expect(envoy.residentBytes() - before).toBeLessThan(8 << 20)
  })
})

describeWithParts(['envoy'], 'the filter in an Envoy that sends headers first', () => {
  const vendor = useFixture(startVendor)
  const envoy = useFixture(() =>
    startEnvoy({
      manifests: manifestsFor({ ai: { promptGuard } }),
      upstream: vendor.port,
      passesHeaders: true,
    }),
  )

  it('masks requests and answers', async () => {
    reply = completion('to bob@example.com')
    const { status, text } = await ask(envoy, 'I am bob@example.com')
    expect([status, JSON.parse(text).choices[0].message.content]).toEqual([
      200,
      'to <EMAIL_ADDRESS>',
    ])
    expect(vendor.received.at(-1)?.body).toContain('I am <EMAIL_ADDRESS>')
  })

  it('sends no byte of a request that a guard rejects', async () => {
    const bodies = vendor.received.length
    expect((await ask(envoy, 'forbidden')).status).toBe(422)
    expect(vendor.received.length).toBe(bodies)
  })

  it('sends an error in place of an answer that cannot be judged', async () => {
    reply = { pieces: ['{"secret":"bob@example.com"'] }
    const { text } = await ask(envoy, 'hello')
    expect(text).toContain('cannot judge the answer')
    expect(text).not.toContain('bob@')
  })
})
