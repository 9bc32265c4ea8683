/** Batches of messages belong to the client that made them: their ids are sealed, and useless to every other client. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import Anthropic from '@anthropic-ai/sdk'
import { expect, it } from 'vitest'
import { useGateway, useListening } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { aiBackend, gateway, policy, routeByPath, secret } from '../support/manifests.ts'
import { json } from '../support/vendors/vendor.ts'

/** The id at the vendor, which no client may see or use. */
const own = 'msgbatch_own7'
const place = '/v1/messages/batches'
const seen: { path: string; headers: IncomingMessage['headers']; text: string }[] = []

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { method = '', url = '', headers } = request
  seen.push({ path: `${method} ${url}`, headers, text: await text(request) })
  const error = { type: 'not_found_error', message: 'no such batch' }
  const isKnown = url === place || new RegExp(`^${place}/${own}(/|$)`).test(url)
  if (!isKnown) return json(response, 404, { type: 'error', error })
  if (url.endsWith('/results')) {
    response.writeHead(200, { 'content-type': 'application/x-jsonl' })
    response.end(`${JSON.stringify({ custom_id: 'one', result: { type: 'canceled' } })}\n`)
    return
  }
  if (method === 'DELETE') return json(response, 200, { id: own, type: 'message_batch_deleted' })
  const isEnded = method === 'GET'
  json(response, 200, {
    id: own,
    type: 'message_batch',
    processing_status: isEnded ? 'ended' : 'in_progress',
    results_url: isEnded ? `https://api.anthropic.com${url}/results` : null,
  })
}

const vendor = useListening(createServer((request, response) => void answer(request, response)))
const port = await freePort()
const guards = { response: [{ regex: { builtins: ['Email'] } }] }
const provider = () => ({ vendorC: {}, host: '127.0.0.1', port: vendor.port })
const routed = (name: string, settings: object = {}) => [
  aiBackend(name, { provider: provider() }, { auth: { key: 'gateway-key' }, ...settings }),
  routeByPath(name),
  policy(name, `HTTPRoute/${name}`, {
    traffic: { apiKeyAuthentication: { secretRef: { name: 'keys' } } },
  }),
]
useGateway(() => ({
  manifests: [
    gateway(port),
    secret('keys', {
      ann: JSON.stringify({ key: 'key-of-ann' }),
      bob: JSON.stringify({ key: 'key-of-bob' }),
      limited: JSON.stringify({ key: 'key-of-limited', allowedModels: ['claude-*'] }),
    }),
    ...routed('plain'),
    ...routed('guarded', { ai: { promptGuard: guards } }),
    ...routed('unread', { ai: { routes: { '/v1/messages': 'Messages' } } }),
  ],
}))

const batches = (key = 'key-of-ann', name = 'plain') =>
  new Anthropic({ baseURL: `http://127.0.0.1:${port}/${name}`, apiKey: key, maxRetries: 0 })
    .messages.batches
const params = {
  model: 'claude-opus-4-8',
  max_tokens: 9,
  messages: [{ role: 'user' as const, content: 'Hello' }],
}
const requests = [{ custom_id: 'one', params }]

it('are made, read, cancelled and deleted by the client that made them', async () => {
  const made = await batches().create({ requests })
  expect(made.id).toMatch(/^msgbatch_/)
  expect(seen[0]).toMatchObject({ path: `POST ${place}`, text: JSON.stringify({ requests }) })
  expect(seen[0]?.headers['x-api-key']).toBe('gateway-key')
  const read = await batches().retrieve(made.id)
  expect([read.id, read.results_url]).toEqual([made.id, `${place}/${made.id}/results`])
  const results = await Array.fromAsync(await batches().results(made.id))
  expect(results).toEqual([{ custom_id: 'one', result: { type: 'canceled' } }])
  expect((await batches().cancel(made.id)).id).toBe(made.id)
  expect(await batches().delete(made.id)).toEqual({ id: made.id, type: 'message_batch_deleted' })
  expect(JSON.stringify([made, read])).not.toContain(own)
  const paths = ['', '/results', '/cancel', ''].map((part) => `${place}/${own}${part}`)
  const asked = new Set(seen.slice(1).map(({ path }) => path.split(' ')[1]))
  expect(asked).toEqual(new Set(paths))

  const before = seen.length
  for (const [refer, status, message] of [
    [() => batches('key-of-bob').retrieve(made.id), 404, 'no batch found with id'],
    [() => batches('key-of-bob').cancel(made.id), 404, 'no batch found with id'],
    [() => batches('key-of-bob').delete(made.id), 404, 'no batch found with id'],
    [() => batches().retrieve(own), 404, 'no batch found with id'],
    [() => batches('key-of-ann', 'guarded').retrieve(made.id), 404, 'no batch found with id'],
    [() => batches().list(), 400, 'lists of everything stored are not served'],
    [() => batches('key-of-ann', 'guarded').create({ requests }), 400, 'where guards apply'],
    [() => batches('key-of-limited').create({ requests }), 403, 'the API key'],
    [() => batches('key-of-ann', 'unread').create({ requests }), 400, 'is not mapped to a type'],
  ] as const) {
    const error = await refer().then(
      () => undefined,
      (thrown: unknown) => thrown,
    )
    expect(error).toMatchObject({
      status,
      error: { type: 'error', error: { message: expect.stringContaining(message) } },
    })
  }
  expect(seen).toHaveLength(before)
})
