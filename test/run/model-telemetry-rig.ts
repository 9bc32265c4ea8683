import OpenAI from 'openai'
import { beforeEach } from 'vitest'
import { Collected, collectingServer } from '../support/collected-spans.ts'
import { useFixture, useGateway, useListening } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import {
  aiBackend,
  gateway,
  manifest,
  policy,
  routeByPath,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import type { Vendor } from '../support/vendors/vendor.ts'
import { completes, startVendorA } from '../support/vendors/vendor-a.ts'
import { says, startVendorC } from '../support/vendors/vendor-c.ts'

export const collected = new Collected()
const collector = useListening(collectingServer(collected))

const routes = {
  '/v1/chat/completions': 'Completions',
  '/v1/messages': 'Messages',
  '/v1/messages/count_tokens': 'VendorCTokenCount',
  '/v1/responses': 'Responses',
  '/v1/embeddings': 'Embeddings',
  '/v1/models': 'Models',
}

const at = (vendor: Vendor) => ({ host: '127.0.0.1', port: vendor.port })

const reached = (name: string, ai: object, settings: object = {}) => [
  aiBackend(name, ai as Record<string, unknown>, { ai: { routes, ...settings } }),
  routeByPath(name),
]

/** All that expressions can ask of a model. */
const llmFields = [
  'streaming',
  'requestModel',
  'responseModel',
  'provider',
  'inputTokens',
  'providerInputTokens',
  'cachedInputTokens',
  'cacheCreationInputTokens',
  'outputTokens',
  'reasoningTokens',
  'totalTokens',
  'outputAudioTokens',
  'serviceTier',
  'timeToFirstToken',
  'timePerOutputToken',
  'countTokens',
  'prompt',
  'completion',
  'toolCalls',
  'params',
]

const guards = (word: string) => ({
  promptGuard: {
    request: [{ regex: { matches: [word], builtins: ['Email', 'PhoneNumber', 'CreditCard'] } }],
    response: [{ regex: { matches: [word], builtins: ['Email', 'PhoneNumber', 'CreditCard'] } }],
  },
})

/** A policy that is replaced again and again; its alias tells which one is in force. */
export const swapped = (turn: number) =>
  manifest(
    ...reached(
      'swapped',
      { provider: { vendorA: {}, ...at(a) } },
      { modelAliases: { [`turn-${turn}`]: 'm-1' }, ...guards(`word-${turn}-[a-z]{1,40}`) },
    ),
  )

const port = await freePort()
export const stats = `127.0.0.1:${await freePort()}`
export const a = useFixture(startVendorA)
const c = useFixture(startVendorC)
export const running = useGateway(() => ({
  args: ['--access-log', 'json', '--stats-address', stats],
  manifests: {
    'all.yaml': manifest(
      gateway(port),
      staticBackend('collector', collector.port),
      policy('watched', 'Gateway/edge', {
        frontend: {
          accessLog: {
            attributes: {
              add: [
                ...llmFields.map((name) => ({ name, expression: `llm.${name}` })),
                { name: 'asked', expression: 'llmRequest.model' },
              ],
            },
          },
          tracing: { backendRef: toBackend('collector'), randomSampling: 'true' },
        },
      }),
      ...reached('a', { provider: { vendorA: {}, ...at(a) } }, { modelAliases: { fast: 'm-1' } }),
      ...reached('c', { provider: { vendorC: {}, ...at(c) } }),
      ...reached('masked', { provider: { vendorA: {}, ...at(a) } }, guards('secret')),
      policy('told', 'HTTPRoute/masked', {
        traffic: {
          transformation: {
            response: { set: [{ name: 'x-tokens', value: 'string(llm.totalTokens)' }] },
          },
        },
      }),
      ...reached('pair', {
        groups: [
          { providers: [{ name: 'one', vendorA: {}, ...at(a) }] },
          { providers: [{ name: 'two', vendorC: {}, ...at(c) }] },
        ],
      }),
    ),
    'swapped.yaml': swapped(0),
  },
}))

beforeEach(() => {
  for (const one of [a, c]) {
    one.next.length = 0
    one.aborted = 0
  }
  a.answer = completes('Hello ', 'from A')
  c.answer = says('Hello ', 'from C')
})

export const base = (name: string) => `http://127.0.0.1:${port}/${name}`
export const openai = (name: string) =>
  new OpenAI({ baseURL: `${base(name)}/v1`, apiKey: 'client-key', maxRetries: 0 })
export const ask = { model: 'm-1', messages: [{ role: 'user' as const, content: 'Hello' }] }
export const metrics = async () => (await fetch(`http://${stats}/metrics`)).text()

export async function collect<Item>(stream: AsyncIterable<Item>): Promise<Item[]> {
  const items: Item[] = []
  for await (const item of stream) items.push(item)
  return items
}
