import { join } from 'node:path'
import OpenAI from 'openai'
import { beforeEach } from 'vitest'
import { useFixture, useFolder, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import {
  aiBackend,
  budget,
  gateway,
  policy,
  routeByPath,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { acts, startWebhook } from '../support/vendors/guard-services.ts'
import { completes, startVendorA } from '../support/vendors/vendor-a.ts'
import { says, startVendorC } from '../support/vendors/vendor-c.ts'
import { waitFor } from '../support/wait-for.ts'

const routes = {
  '/v1/chat/completions': 'Completions',
  '/v1/messages': 'Messages',
  '/v1/responses': 'Responses',
  '/v1/embeddings': 'Embeddings',
}

export const a = useFixture(startVendorA)
export const c = useFixture(startVendorC)
export const hook = useFixture(startWebhook)
const port = await freePort()
export const admin = `127.0.0.1:${await freePort()}`
export const records = join(useFolder('sluice-cache-'), 'records')
const stats = `127.0.0.1:${await freePort()}`
export const metrics = async () => (await fetch(`http://${stats}/metrics`)).text()

const mask = (pattern: string) => ({
  request: [{ regex: { builtins: ['Email'] } }],
  response: [{ regex: { matches: [pattern] } }],
})

/** A backend whose answers are stored, and its route, below a path of its name, for clients with API keys. */
function stored(name: string, vendor: 'a' | 'c', ai: object = {}, auth: object = { key: 'k' }) {
  const at = { host: '127.0.0.1', port: vendor === 'a' ? a.port : c.port }
  const provider = vendor === 'a' ? { vendorA: {} } : { vendorC: {} }
  return [
    aiBackend(
      name,
      { provider: { ...provider, ...at } },
      {
        ai: { routes, cache: {}, ...ai },
        auth,
      },
    ),
    routeByPath(name),
    ...(name === 'passed' ? [] : [keysFor(name)]),
  ]
}

const keysFor = (name: string) =>
  policy(`keys-${name}`, `HTTPRoute/${name}`, {
    traffic: { apiKeyAuthentication: { secretRef: { name: 'keys' }, mode: 'Optional' } },
  })

export const manifests = (masked: string) => [
  gateway(port),
  secret('keys', { ann: 'key-of-ann', bob: 'key-of-bob' }),
  staticBackend('hook', hook.port),
  ...stored('own', 'a'),
  ...stored('translated', 'c'),
  ...stored('shared', 'a', { cache: { scope: 'Shared' } }),
  ...stored('short', 'a', { cache: { ttl: '300ms' } }),
  ...stored('passed', 'a', {}, { passthrough: {} }),
  ...stored('masked', 'a', { promptGuard: mask(masked) }),
  ...stored('judged', 'a', {
    promptGuard: { response: [{ webhook: { backendRef: toBackend('hook') } }] },
  }),
  ...stored('brief', 'a'),
  ...stored('limited', 'a'),
  policy('limited', 'HTTPRoute/limited', {
    traffic: { rateLimit: { local: [{ tokens: 20, unit: 'Hours' }] } },
  }),
  ...stored('retried', 'a'),
  policy('retried', 'HTTPRoute/retried', {
    traffic: { retry: { codes: [500], attempts: 1, backoff: '1ms' } },
  }),
  budget('retried', 'HTTPRoute/retried', {
    limit: { unit: 'Tokens', amount: '3000' },
    window: { unit: 'Month' },
  }),
  ...stored('relimited', 'a'),
  policy('relimited', 'HTTPRoute/relimited', {
    traffic: {
      retry: { codes: [500], attempts: 1, backoff: '1ms' },
      rateLimit: { local: [{ tokens: 1, unit: 'Hours', key: 'llm.requestModel' }] },
    },
  }),
]

export const running = useGateway(() => ({
  manifests: manifests('token-\\d{4}'),
  args: [
    ...['--access-log', 'json', '--workers', '2', '--stats-address', stats],
    ...['--admin-address', admin, '--record', 'all', '--record-dir', records],
  ],
}))

beforeEach(() => {
  for (const vendor of [a, c, hook]) {
    vendor.calls.length = 0
    vendor.next.length = 0
  }
  a.answer = completes('Hello ', 'from A')
  c.answer = says('Hello ', 'from C')
  hook.answer = acts({ reason: 'fine' })
})

export const base = (name: string) => `http://127.0.0.1:${port}/${name}`
export const openai = (name: string, key = 'key-of-ann') =>
  new OpenAI({ baseURL: `${base(name)}/v1`, apiKey: key, maxRetries: 0 })

let count = 0
/** A request that no other test has sent. */
export const newAsk = (more: object = {}) => ({
  model: 'gpt-4o',
  messages: [{ role: 'user' as const, content: `Question ${++count}` }],
  ...more,
})

export interface Answer {
  readonly status: number
  readonly text: string
  readonly cache: string
  readonly headers: Headers
}

/** Sends a request, and returns the end of Cache-Status, such as `hit`. */
export async function post(
  name: string,
  body: object,
  headers: Readonly<Record<string, string>> = {},
  path = '/v1/chat/completions',
): Promise<Answer> {
  const response = await fetch(`${base(name)}${path}`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: 'Bearer key-of-ann',
      ...headers,
    },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  const status = response.headers.get('cache-status') ?? ''
  const cache = /^sluice; (?:fwd=)?(\w+)/.exec(status)?.[1] ?? 'none'
  return { status: response.status, text, cache, headers: response.headers }
}

/** Sends a request until an answer to it is served, and returns that. Workers share answers within moments. */
export const hit = (...request: Parameters<typeof post>): Promise<Answer> =>
  waitFor('a hit', async () => {
    const answer = await post(...request)
    return answer.cache === 'hit' ? answer : undefined
  })

/** The access log of the last request to a path below the route. */
export const lines = (): Record<string, unknown>[] =>
  running.stdout
    .split('\n')
    .filter((line) => line.includes('"scope":"request"'))
    .map((line) => JSON.parse(line) as Record<string, unknown>)
