/** Services and servers that speak formats of vendors A and C: their paths, and what is translated for them. */
import { describe, expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { aiBackend, gateway, routeByPath } from '../support/manifests.ts'
import { startUpstream } from '../support/upstream.ts'
import { eventually } from '../support/wait-for.ts'

const answers: Readonly<Record<string, object>> = {
  messages: {
    type: 'message',
    role: 'assistant',
    content: [],
    model: 'm',
    stop_reason: 'end_turn',
  },
  responses: { object: 'response', output: [], model: 'm', status: 'completed' },
  embeddings: { object: 'list', data: [], model: 'm' },
  completions: {
    choices: [{ index: 0, message: { role: 'assistant', content: 'x' } }],
    model: 'm',
  },
  models: { object: 'list', data: [] },
}

const server = useFixture(() =>
  startUpstream('server', (request, response) => {
    const name = request.path.split('/').at(-1) ?? ''
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(answers[name] ?? {}))
  }),
)
const port = await freePort()
const presets = ['groq', 'mistral', 'deepseek', 'openrouter', 'fireworks', 'cohere', 'ollama']
const running = useGateway(() => {
  const at = { host: '127.0.0.1', port: server.port }
  const reached = (name: string, provider: object) => [
    aiBackend(name, { provider: { ...provider, ...at } }, { auth: { key: 'gateway-key' } }),
    routeByPath(name),
  ]
  const formats = [{ type: 'Messages', path: '/claude/messages' }, { type: 'Embeddings' }]
  return {
    manifests: [
      gateway(port),
      ...presets.flatMap((name) => reached(name, { [name]: {} })),
      ...reached('pinned', { xai: { model: 'grok-9' } }),
      ...reached('custom', { custom: { formats } }),
      ...reached('responses-only', { custom: { formats: [{ type: 'Responses' }] } }),
      ...reached('prefix-a', { vendorA: {}, pathPrefix: '/openai/v1' }),
      ...reached('prefix-c', { vendorC: {}, pathPrefix: '/anthropic/v1/' }),
      ...reached('azure', {
        azure: { resourceName: 'res', resourceType: 'Foundry', projectName: 'my project' },
      }),
    ],
  }
})

const bodies: Readonly<Record<string, object>> = {
  '/v1/chat/completions': { model: 'm', messages: [{ role: 'user', content: 'x' }] },
  '/v1/messages': { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'x' }] },
  '/v1/responses': { model: 'm', input: 'x' },
  '/v1/embeddings': { model: 'm', input: 'x' },
}
async function ask(name: string, path: string) {
  const body = bodies[path]
  const before = server.received.length
  const answer = await fetch(`http://127.0.0.1:${port}/${name}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    ...(body && { body: JSON.stringify(body) }),
  })
  return { status: answer.status, text: await answer.text(), sent: server.received[before] }
}

describe('a request to a service with a name of its own', () => {
  it.each([
    ['groq', '/v1/chat/completions', '/openai/v1/chat/completions'],
    ['groq', '/v1/responses', '/openai/v1/responses'],
    ['groq', '/v1/messages', '/openai/v1/chat/completions'],
    ['groq', '/v1/models', '/openai/v1/models'],
    ['mistral', '/v1/responses', '/v1/chat/completions'],
    ['mistral', '/v1/embeddings', '/v1/embeddings'],
    ['deepseek', '/v1/messages', '/anthropic/v1/messages'],
    ['deepseek', '/v1/responses', '/v1/chat/completions'],
    ['openrouter', '/v1/messages', '/api/v1/messages'],
    ['fireworks', '/v1/chat/completions', '/inference/v1/chat/completions'],
    ['cohere', '/v1/embeddings', '/compatibility/v1/embeddings'],
    ['ollama', '/v1/responses', '/v1/responses'],
    ['custom', '/v1/messages', '/claude/messages'],
    ['custom', '/v1/chat/completions', '/claude/messages'],
    ['custom', '/v1/responses', '/claude/messages'],
    ['custom', '/v1/embeddings', '/v1/embeddings'],
    ['responses-only', '/v1/chat/completions', '/v1/responses'],
    ['responses-only', '/v1/messages', '/v1/responses'],
    ['prefix-a', '/v1/chat/completions', '/openai/v1/chat/completions'],
    ['prefix-a', '/v1/models', '/openai/v1/models'],
    ['prefix-c', '/v1/messages', '/anthropic/v1/messages'],
    ['azure', '/v1/responses', '/api/projects/my%20project/openai/v1/responses'],
  ])('of %s at %s goes to %s', async (name, path, expected) => {
    const { status, sent } = await ask(name, path)
    expect([status, sent?.path]).toEqual([200, expected])
    const { authorization, 'x-api-key': key } = sent?.headers ?? {}
    expect(authorization ?? `Bearer ${key}`).toBe('Bearer gateway-key')
  })

  it('has the pinned model, and the name of the service in the access log', async () => {
    const { sent } = await ask('pinned', '/v1/chat/completions')
    expect(sent?.body).toContain('"model":"grok-9"')
    await eventually(() =>
      expect(running.stdout).toMatch(/gen_ai\.provider\.name=x_ai.*request\.model=grok-9/),
    )
  })

  it('is refused if the server has no such format and none to translate to', async () => {
    for (const [name, path] of [
      ['groq', '/v1/embeddings'],
      ['responses-only', '/v1/embeddings'],
    ] as const) {
      const { status, text, sent } = await ask(name, path)
      expect([status, sent]).toEqual([400, undefined])
      expect(text).toMatch(/not supported by|groq|custom/)
    }
  })
})
