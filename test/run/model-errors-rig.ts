import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { beforeEach } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { aiBackend, gateway, policy, routeByPath } from '../support/manifests.ts'
import { startWebhook } from '../support/vendors/guard-services.ts'
import type { Vendor } from '../support/vendors/vendor.ts'
import { completes, startVendorA } from '../support/vendors/vendor-a.ts'
import { says, startVendorC } from '../support/vendors/vendor-c.ts'

const routes = {
  '/v1/chat/completions': 'Completions',
  '/v1/messages': 'Messages',
  '/v1/responses': 'Responses',
  '/v1/embeddings': 'Embeddings',
}

export const at = (vendor: Vendor) => ({ host: '127.0.0.1', port: vendor.port })

const reached = (name: string, ai: object, settings: object = {}, policies: object = {}) => [
  aiBackend(name, ai as Record<string, unknown>, { ai: { routes, ...settings }, ...policies }),
  routeByPath(name),
]

export const fields = (count: number) =>
  Array.from({ length: count }, (_, at) => ({ field: `x_${at}`, value: at }))
export const aliases = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`alias-${at}`, `m-${at}`]))
export const patterns = (count: number) =>
  Array.from({ length: count }, (_, at) => ({ regex: { matches: [`word${at}\\b`] } }))

const port = await freePort()
const nobody = await freePort()
export const a = useFixture(startVendorA)
export const c = useFixture(startVendorC)
export const hook = useFixture(startWebhook)
export const running = useGateway(() => {
  const toA = () => ({ provider: { vendorA: {}, ...at(a) } })
  const toC = () => ({ provider: { vendorC: {}, ...at(c) } })
  return {
    manifests: [
      gateway(port),
      ...reached('a', toA()),
      ...reached('c', toC()),
      ...reached('gone', { provider: { vendorA: {}, host: '127.0.0.1', port: nobody } }),
      ...reached('slow', toA(), {}, { http: { requestTimeout: '100ms' } }),
      ...reached('held', toA(), {
        promptGuard: {
          response: [
            {
              webhook: {
                backendRef: { group: 'sluice.dev', kind: 'GatewayBackend', name: 'hook' },
              },
            },
          ],
        },
      }),
      {
        apiVersion: 'sluice.dev/v1alpha1',
        kind: 'GatewayBackend',
        metadata: { name: 'hook' },
        spec: { static: at(hook) },
      },
      ...reached('limited', toA()),
      policy('limited', 'HTTPRoute/limited', {
        traffic: { rateLimit: { local: [{ tokens: 1, unit: 'Hours' }] } },
      }),
      ...reached('full', toA(), {
        defaults: fields(64),
        overrides: [...fields(63), { field: 'user', value: 'gateway' }],
        modelAliases: aliases(64),
        promptGuard: { request: patterns(8), response: patterns(8) },
      }),
      ...reached('system', toC(), { defaults: [{ field: 'system', value: 'Be brief.' }] }),
    ],
  }
})

beforeEach(() => {
  for (const one of [a, c, hook]) {
    one.calls.length = 0
    one.next.length = 0
    one.aborted = 0
  }
  a.answer = completes('Hello ', 'from A')
  c.answer = says('Hello ', 'from C')
})

export const base = (name: string) => `http://127.0.0.1:${port}/${name}`
export const openai = (name: string) =>
  new OpenAI({ baseURL: `${base(name)}/v1`, apiKey: 'client-key', maxRetries: 0 })
export const anthropic = (name: string) =>
  new Anthropic({ baseURL: base(name), apiKey: 'client-key', maxRetries: 0 })
export const ask = { model: 'm-1', messages: [{ role: 'user' as const, content: 'Hello' }] }
export const askC = { ...ask, max_tokens: 100 }
