/** Guards with a scope: each sees exactly the texts that its scope names, whole, streamed and after conversion. */
import { createServer } from 'node:http'
import { beforeEach, expect, it } from 'vitest'
import { useFixture, useGateway, useListening } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { aiBackend, gateway, routeByPath, staticBackend, toBackend } from '../support/manifests.ts'
import { startWebhook } from '../support/vendors/guard-services.ts'

const canaries = { Messages: 'canary-alpha', ToolInput: 'canary-beta', Reasoning: 'canary-gamma' }
type Place = keyof typeof canaries
const places = Object.keys(canaries) as Place[]
let isSigned = false

/** The answer of a model, cut inside of its canaries. */
const blocks = () => [
  ...[['thinking', 'thinking_delta', 'thinking', ['I think canary-', 'gamma. ']] as const],
  ...[['text', 'text_delta', 'text', ['I say canary-', 'alpha. ']] as const],
  ...[['tool_use', 'input_json_delta', 'partial_json', ['{"a":"canary-', 'beta"}']] as const],
]
const begun: Record<string, object> = {
  thinking: { thinking: '' },
  text: { text: '' },
  tool_use: { id: 'call_1', name: 'f', input: {} },
}
function* events() {
  const usage = { input_tokens: 1, output_tokens: 1 }
  const message = { id: 'a', type: 'message', role: 'assistant', model: 'm', content: [], usage }
  yield { type: 'message_start', message }
  for (const [index, [type, delta, field, pieces]] of blocks().entries()) {
    yield { type: 'content_block_start', index, content_block: { type, ...begun[type] } }
    for (const piece of pieces) {
      yield { type: 'content_block_delta', index, delta: { type: delta, [field]: piece } }
    }
    if (type === 'thinking' && isSigned) {
      const signature = { type: 'signature_delta', signature: 'c2ln' }
      yield { type: 'content_block_delta', index, delta: signature }
    }
    yield { type: 'content_block_stop', index }
  }
  yield { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage }
  yield { type: 'message_stop' }
}
const whole = () => ({
  ...{ id: 'a', type: 'message', role: 'assistant', model: 'm', stop_reason: 'tool_use' },
  usage: { input_tokens: 1, output_tokens: 1 },
  content: blocks().map(([type, , field, pieces]) => {
    const text = pieces.join('')
    if (type === 'tool_use') return { type, ...begun[type], input: JSON.parse(text) as unknown }
    return { type, [field]: text, ...(type === 'thinking' && isSigned && { signature: 'c2ln' }) }
  }),
})

const vendor = useListening(
  createServer((request, response) => {
    let body = ''
    request.on('data', (piece) => (body += piece))
    request.on('end', () => {
      const { stream } = JSON.parse(body) as { stream?: boolean }
      response.setHeader('content-type', stream ? 'text/event-stream' : 'application/json')
      const lines = [...events()].map(
        (one) => `event: ${one.type}\ndata: ${JSON.stringify(one)}\n\n`,
      )
      response.end(stream ? lines.join('') : JSON.stringify(whole()))
    })
  }),
)
const hook = useFixture(startWebhook)
const port = await freePort()
const regex = { matches: ['canary-[a-z]+'] }
useGateway(() => ({
  manifests: [
    gateway(port),
    staticBackend('hook', hook.port),
    ...places.flatMap((place) => [
      aiBackend(
        `only-${place.toLowerCase()}`,
        { provider: { vendorC: {}, host: '127.0.0.1', port: vendor.port } },
        {
          ai: {
            promptGuard: {
              request: [{ regex, scope: [place] }],
              response: [{ regex, scope: [place] }],
            },
          },
        },
      ),
      routeByPath(`only-${place.toLowerCase()}`),
      aiBackend(
        `ask-${place.toLowerCase()}`,
        { provider: { vendorC: {}, host: '127.0.0.1', port: vendor.port } },
        {
          ai: {
            promptGuard: {
              request: [{ webhook: { backendRef: toBackend('hook') }, scope: [place] }],
              response: [{ webhook: { backendRef: toBackend('hook') }, scope: [place] }],
            },
          },
        },
      ),
      routeByPath(`ask-${place.toLowerCase()}`),
    ]),
  ],
}))

const chat = (stream: boolean) => ({
  model: 'm',
  max_tokens: 9,
  stream,
  messages: [{ role: 'user', content: 'hello' }],
})
const requests: Record<string, (stream: boolean) => readonly [path: string, body: object]> = {
  Completions: (stream) => ['/v1/chat/completions', chat(stream)],
  Messages: (stream) => ['/v1/messages', chat(stream)],
  Responses: (stream) => ['/v1/responses', { model: 'm', stream, input: 'hello' }],
  GenerateContent: (stream) => [
    `/v1beta/models/m:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    { contents: [{ role: 'user', parts: [{ text: 'hello' }] }] },
  ],
  Converse: (stream) => [
    `/model/m/${stream ? 'converse-stream' : 'converse'}`,
    { messages: [{ role: 'user', content: [{ text: 'hello' }] }] },
  ],
}

async function send(name: string, path: string, body: object) {
  const response = await fetch(`http://127.0.0.1:${port}/${name}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'anthropic-version': '2023-06-01' },
    body: JSON.stringify(body),
  })
  return { status: response.status, text: await response.text() }
}

beforeEach(() => {
  isSigned = false
})

it.each(Object.keys(requests))(
  'masks and asks about exactly the texts in scope of answers for clients of %s',
  async (format) => {
    for (const place of places) {
      for (const stream of [false, true]) {
        const [path, body] = requests[format]?.(stream) ?? ['', {}]
        const { status, text } = await send(`only-${place.toLowerCase()}`, path, body)
        const label = `${place}, ${stream ? 'streamed' : 'whole'}`
        expect(status, label).toBe(200)
        expect(text, label).toContain('<masked>')
        expect(text, label).not.toContain(canaries[place].split('-')[1] ?? '')
        hook.calls.length = 0
        const asked = await send(`ask-${place.toLowerCase()}`, path, body)
        expect(asked.status, label).toBe(200)
        const questions = JSON.stringify(hook.calls.map(({ body: shown }) => shown))
        for (const [other, canary] of Object.entries(canaries)) {
          expect(questions.includes(canary), `${label} shows ${other}`).toBe(other === place)
        }
      }
    }
  },
)

it('refuses to mask signed reasoning, which the provider would not accept again', async () => {
  isSigned = true
  const [path, body] = requests.Messages?.(false) ?? ['', {}]
  const { status, text } = await send('only-reasoning', path, body)
  expect({ status, text }).toEqual({
    status: 502,
    text: expect.stringContaining('signed reasoning has a match'),
  })
  const streamed = await send('only-reasoning', ...(requests.Messages?.(true) ?? ['', {}]))
  expect(streamed.text).not.toContain('gamma')
})
