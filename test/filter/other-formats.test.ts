/** Messages of another format than expected, sent through the filter in a real Envoy. */
import { createServer, request as sendRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { describeFormatCases } from '../core/texts/other-formats.ts'
import { startEnvoy } from '../support/envoy.ts'
import { useFixture } from '../support/fixture.ts'
import { describeWithParts } from '../support/parts.ts'
import { startUpstream } from '../support/upstream.ts'
import { manifestsFor } from './manifests.ts'

const ssn = '123-45-6789'
const guards = [{ regex: { builtins: ['Ssn'] } }]

interface Reply {
  readonly status?: number
  readonly type?: string
  readonly body: string
}

const chat = '{"messages":[{"role":"user","content":"hi"}]}'
const completion = '{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"}}]}'

describeWithParts(['envoy'], 'the filter in Envoy', () => {
  let reply: Reply = { body: completion }
  const vendor = useFixture(() =>
    startUpstream('vendor', (_, response) => {
      response.writeHead(reply.status ?? 200, { 'content-type': reply.type ?? 'application/json' })
      response.end(reply.body)
    }),
  )
  const manifests = (ai: object) =>
    manifestsFor({ ai: { promptGuard: { request: guards, response: guards }, ...ai } })
  const mapped = useFixture(() => startEnvoy({ manifests: manifests({}), upstream: vendor.port }))
  const unmapped = useFixture(() =>
    startEnvoy({ manifests: manifests({ routes: undefined }), upstream: vendor.port }),
  )

  async function send(path: string, body: string, envoy = mapped) {
    const answer = await fetch(`${envoy.base}${path}`, { method: 'POST', body })
    return { status: answer.status, text: await answer.text() }
  }

  describeFormatCases({
    async request(path, body) {
      const before = vendor.received.length
      reply = { body: '{"error":{"message":"no"}}', status: 400 }
      const { status } = await send(path, body)
      return { status, sent: vendor.received[before]?.body }
    },
    answer(path, asked, body, type) {
      reply = { body, type }
      return send(path, asked)
    },
    isRelayed: true,
  })

  it.each([
    ['/v1/responses', '{"input":"is 123-45-6789"}'],
    ['/v1/messages', `{"system":"is 123-45-6789","messages":[]}`],
    ['/v1/messages/count_tokens', `{"system":"is 123-45-6789","messages":[]}`],
    ['/openai/v1/chat/completions', '{"messages":[{"role":"user","content":"is 123-45-6789"}]}'],
    ['/v1/embeddings', '{"input":["is 123-45-6789"]}'],
  ])('masks requests to %s without a map of types', async (path, body) => {
    reply = { body: '{"error":{"message":"no"}}', status: 400 }
    await send(path, body, unmapped)
    expect(vendor.received.at(-1)?.body).toBe(body.replace(ssn, '<SSN>'))
  })

  it.each([
    '/v1/completions',
    '/v1/audio/speech',
    '/v1/files',
    '/v1beta/models/g:generateContent',
    '/api/chat',
    '/',
  ])('refuses requests to %s if guards have no type for it', async (path) => {
    const before = vendor.received.length
    for (const envoy of [mapped, unmapped]) {
      const { status, text } = await send(path, '{"prompt":"is 123-45-6789"}', envoy)
      expect(status).toBe(400)
      expect(JSON.parse(text).error.message).toBe(
        `${path} is not mapped to a type that guards can read: set ai.routes`,
      )
    }
    expect(vendor.received.length).toBe(before)
  })

  it('refuses the answer of a token count that has a text in place of the count', async () => {
    reply = { body: '{"answer":"is 123-45-6789"}' }
    const { status, text } = await send('/v1/messages/count_tokens', chat)
    expect(status).toBe(500)
    expect(text).not.toContain(ssn)
    reply = { body: '{"input_tokens":7}' }
    expect(await send('/v1/messages/count_tokens', chat)).toEqual({
      status: 200,
      text: '{"input_tokens":7}',
    })
  })

  it.each([
    ['an object', '{"error":{"message":"is 123-45-6789","raw":["is 123-45-6789"]}}'],
    ['a list', '[{"error":{"message":"is 123-45-6789"}}]'],
    ['an object without known members', '{"reason":"is 123-45-6789"}'],
  ])('masks an error of the upstream that is %s, and keeps its status', async (_, body) => {
    reply = { status: 429, body }
    expect(await send('/v1/chat/completions', chat)).toEqual({
      status: 429,
      text: body.replaceAll(ssn, '<SSN>'),
    })
  })

  it('replaces an error of the upstream that is not JSON, and keeps its status', async () => {
    reply = { status: 503, type: 'text/html', body: '<p>is 123-45-6789' }
    const { status, text } = await send('/v1/chat/completions', chat)
    expect(status).toBe(503)
    expect(JSON.parse(text).error.message).toBe('the guards cannot judge the answer')
  })
})

/** An upstream that answers when it has the head of a request, and keeps what arrives. */
async function startEarly() {
  let received = ''
  const server = createServer((request, response) => {
    request.on('data', (chunk) => {
      received += chunk
    })
    request.on('error', () => undefined)
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(
      `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'hi' } }] })}\n\n`,
    )
    request.on('end', () => response.end())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    port,
    received: () => received,
    async close() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

describeWithParts(['envoy'], 'the filter in an Envoy that sends headers first', () => {
  const vendor = useFixture(startEarly)
  const envoy = useFixture(() => {
    const promptGuard = {
      request: [
        { regex: { builtins: ['Ssn'] } },
        { regex: { matches: ['SECRET[0-9]+'], action: 'Reject' } },
      ],
    }
    return startEnvoy({
      manifests: manifestsFor({ ai: { promptGuard } }),
      upstream: vendor.port,
      passesHeaders: true,
    })
  })

  /** Sends the body of a request in two pieces when the answer has begun. */
  function sendLate(content: string): Promise<void> {
    const body = JSON.stringify({ messages: [{ role: 'user', content }] })
    return new Promise((resolve) => {
      const request = sendRequest(`${envoy.base}/v1/chat/completions`, { method: 'POST' })
      request.on('error', () => resolve())
      request.on('response', (response) => {
        response.once('data', () =>
          request.write(body.slice(0, 20), () => request.end(body.slice(20))),
        )
        response.on('error', () => resolve())
        response.on('close', () => resolve())
      })
      request.flushHeaders()
    })
  }

  it('judges the body of a request that the upstream answers early', async () => {
    await sendLate('is 123-45-6789')
    expect(vendor.received()).toContain('is <SSN>')
    expect(vendor.received()).not.toContain(ssn)
    await sendLate('SECRET1')
    expect(vendor.received()).not.toContain('SECRET1')
  })
})
