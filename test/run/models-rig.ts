import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { beforeEach } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { aiBackend, gateway, policy, routeByPath } from '../support/manifests.ts'
import type { Vendor } from '../support/vendors/vendor.ts'
import { completes, startVendorA } from '../support/vendors/vendor-a.ts'
import { says, startVendorC } from '../support/vendors/vendor-c.ts'

const routes = {
  '/v1/chat/completions': 'Completions',
  '/v1/messages': 'Messages',
  '/v1/messages/count_tokens': 'VendorCTokenCount',
  '/v1/responses': 'Responses',
  '/v1/embeddings': 'Embeddings',
  '/v1/models': 'Models',
  '/raw': 'Passthrough',
}

/** A backend and the route to it, below a path of its name. */
const reached = (name: string, ai: object, settings: object = {}) => [
  aiBackend(name, ai as Record<string, unknown>, {
    ai: { routes, ...settings },
    auth: { key: 'gateway-key' },
  }),
  routeByPath(name),
]

const at = (vendor: Vendor) => ({ host: '127.0.0.1', port: vendor.port })
export const base = (name: string) => `http://127.0.0.1:${port}/${name}`
export const openai = (name: string) =>
  new OpenAI({ baseURL: `${base(name)}/v1`, apiKey: 'client-key', maxRetries: 0 })
export const anthropic = (name: string) =>
  new Anthropic({ baseURL: base(name), apiKey: 'client-key', maxRetries: 0 })

export const hello = [{ role: 'user' as const, content: 'Hello' }]
export const ask = { model: 'm-1', messages: hello }
export const askC = { model: 'm-1', max_tokens: 100, messages: hello }

const regexGuards = (action: string, response?: object) => ({
  promptGuard: {
    request: [
      {
        regex: { matches: ['secret-\\d+'], builtins: ['Email', 'Ssn', 'CreditCard'], action },
        ...(response && { response }),
      },
    ],
    response: [{ regex: { matches: ['token-\\d{4}'], builtins: ['Email'] } }],
  },
})

const port = await freePort()
export const a = useFixture(startVendorA)
export const c = useFixture(startVendorC)
useGateway(() => ({
  manifests: [
    gateway(port),
    ...reached('a', { provider: { vendorA: {}, ...at(a) } }),
    ...reached('c', { provider: { vendorC: {}, ...at(c) } }),
    ...reached('limited', { provider: { vendorA: {}, ...at(a) } }),
    policy('limited', 'HTTPRoute/limited', {
      traffic: { rateLimit: { local: [{ tokens: 20, unit: 'Hours' }] } },
    }),
    ...[28, 29].flatMap((tokens) => [
      ...reached(`left-at-${tokens}`, { provider: { vendorC: {}, ...at(c) } }),
      policy(`left-at-${tokens}`, `HTTPRoute/left-at-${tokens}`, {
        traffic: { rateLimit: { local: [{ tokens, unit: 'Hours' }] } },
      }),
    ]),
    ...reached('pinned', { provider: { vendorA: { model: 'pinned-model' }, ...at(a) } }),
    ...reached('fixed', { provider: { vendorA: {}, ...at(a), path: '/v1/chat/completions' } }),
    ...reached('masked-a', { provider: { vendorA: {}, ...at(a) } }, regexGuards('Mask')),
    ...reached('masked-c', { provider: { vendorC: {}, ...at(c) } }, regexGuards('Mask')),
    ...reached('refused', { provider: { vendorA: {}, ...at(a) } }, regexGuards('Reject')),
    ...reached(
      'refused-so',
      { provider: { vendorC: {}, ...at(c) } },
      regexGuards('Reject', { statusCode: 422, message: 'not with us' }),
    ),
    ...reached(
      'shaped',
      { provider: { vendorA: {}, ...at(a) } },
      {
        modelAliases: { fast: 'm-fast', 'claude-*': 'm-any' },
        defaults: [
          { field: 'temperature', value: 0.25 },
          { field: 'seed', value: 7 },
        ],
        overrides: [{ field: 'user', value: 'gateway' }],
        prompt: {
          prepend: [{ role: 'SYSTEM', content: 'Be brief.' }],
          append: [{ role: 'user', content: 'Answer now.' }],
        },
      },
    ),
  ],
}))

beforeEach(() => {
  for (const vendor of [a, c]) {
    vendor.calls.length = 0
    vendor.next.length = 0
    vendor.aborted = 0
  }
  a.answer = completes('Hello ', 'from A')
  c.answer = says('Hello ', 'from C')
})

export const lastCall = (vendor: Vendor) => vendor.calls.at(-1)

export async function collect<Item>(stream: AsyncIterable<Item>): Promise<Item[]> {
  const items: Item[] = []
  for await (const item of stream) items.push(item)
  return items
}
