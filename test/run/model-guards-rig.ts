import { join } from 'node:path'
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { beforeEach } from 'vitest'
import { useAuthority, useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import {
  aiBackend,
  gateway,
  routeByPath,
  secret,
  service,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { acts, flags, startModeration, startWebhook } from '../support/vendors/guard-services.ts'
import type { Vendor } from '../support/vendors/vendor.ts'
import { completes, startVendorA } from '../support/vendors/vendor-a.ts'
import { says, startVendorC } from '../support/vendors/vendor-c.ts'

const routes = {
  '/v1/chat/completions': 'Completions',
  '/v1/messages': 'Messages',
  '/v1/messages/count_tokens': 'VendorCTokenCount',
  '/v1/responses': 'Responses',
  '/v1/embeddings': 'Embeddings',
}

const at = (vendor: Vendor) => ({ host: '127.0.0.1', port: vendor.port })
const toA = () => ({ provider: { vendorA: {}, ...at(a) } })
const toC = () => ({ provider: { vendorC: {}, ...at(c) } })

/** A backend with guards, and the route to it below a path of its name. */
const guarded = (name: string, ai: object, promptGuard: object) => [
  aiBackend(name, ai as Record<string, unknown>, { ai: { routes, promptGuard } }),
  routeByPath(name),
]

const webhook = { backendRef: toBackend('hook') }
const byService = { backendRef: { kind: 'Service', name: 'hook-service', port: 80 } }
const custom = { statusCode: 451, message: 'not here' }
export const noDigits = (text: string) => text.replace(/\d/g, '#')

const authority = useAuthority()
const port = await freePort()
export const a = useFixture(startVendorA)
export const c = useFixture(startVendorC)
export const hook = useFixture(startWebhook)
export const moderation = useFixture(() => startModeration(authority.issue(['api.openai.com'])))
export const running = useGateway(async () => {
  const ca = { tls: { caCertificateRefs: [{ name: 'ca' }] } }
  return {
    env: {
      NODE_OPTIONS: `--import ${join(import.meta.dirname, '../../test/support/redirects.ts')}`,
      SLUICE_TEST_REDIRECTS: JSON.stringify({ 'api.openai.com:443': moderation.port }),
    },
    manifests: [
      gateway(port),
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'ca' },
        data: { 'ca.crt': authority.certificate },
      },
      secret('moderation-key', { Authorization: 'moderation-token' }),
      staticBackend('hook', hook.port),
      staticBackend('nobody', await freePort()),
      ...service('hook-service', [hook.port]),
      ...guarded('hooked-a', toA(), {
        request: [{ webhook, response: custom }],
        response: [{ webhook, response: custom }],
      }),
      ...guarded('hooked-c', toC(), {
        request: [{ webhook: byService }],
        response: [{ webhook: byService }],
      }),
      ...guarded('forwarding', toA(), {
        request: [
          {
            webhook: {
              ...webhook,
              forwardHeaderMatches: [
                { name: 'x-tenant', value: 'acme' },
                { name: 'x-trace', type: 'RegularExpression', value: 't-[0-9]+' },
              ],
            },
          },
        ],
        response: [
          { webhook: { ...webhook, forwardHeaderMatches: [{ name: 'x-region', value: 'eu' }] } },
        ],
      }),
      ...guarded('dead', toA(), { request: [{ webhook: { backendRef: toBackend('nobody') } }] }),
      ...guarded('dead-behind', toC(), {
        response: [{ webhook: { backendRef: toBackend('nobody') } }],
      }),
      ...guarded('mixed', toC(), {
        request: [
          { regex: { builtins: ['Email'] } },
          { webhook },
          { regex: { matches: ['#{3,}'], action: 'Reject' } },
        ],
        response: [{ regex: { builtins: ['Email'] } }, { webhook }],
      }),
      ...['pair', 'other-pair'].flatMap((name) =>
        guarded(
          name,
          {
            groups: [
              { providers: [{ name: 'one', vendorA: { model: 'own' }, ...at(a) }] },
              { providers: [{ name: 'two', vendorC: {}, ...at(c) }] },
            ],
          },
          { request: [{ webhook }], response: [{ webhook }] },
        ),
      ),
      ...guarded('moderated', toA(), {
        request: [
          {
            vendorAModeration: {
              policies: { ...ca, auth: { secretRef: { name: 'moderation-key' } } },
            },
            response: { message: 'be kind' },
          },
        ],
      }),
      ...guarded('moderated-by', toC(), {
        request: [
          {
            vendorAModeration: {
              model: 'text-moderation-stable',
              policies: { ...ca, auth: { key: 'inline-token' } },
            },
          },
        ],
      }),
      // The machine does not trust the authority of the test.
      ...guarded('moderated-untrusted', toA(), { request: [{ vendorAModeration: {} }] }),
      ...['Ssn', 'CreditCard', 'PhoneNumber', 'Email', 'CaSin'].flatMap((builtin) =>
        guarded(builtin.toLowerCase(), toA(), {
          request: [{ regex: { builtins: [builtin] } }],
          response: [{ regex: { builtins: [builtin] } }],
        }),
      ),
      aiBackend('unread', toA(), {
        ai: { routes: { '/raw': 'Passthrough' }, promptGuard: { request: [{ webhook }] } },
      }),
      ...guarded('unbounded', toA(), { response: [{ regex: { matches: ['BEGIN.+END'] } }] }),
    ],
  }
})

beforeEach(() => {
  for (const one of [a, c, hook, moderation]) {
    one.calls.length = 0
    one.next.length = 0
    one.aborted = 0
  }
  a.answer = completes('Hello ', 'from A')
  c.answer = says('Hello ', 'from C')
  hook.answer = acts({ reason: 'fine' })
  moderation.answer = flags(/violence/)
})

export const base = (name: string) => `http://127.0.0.1:${port}/${name}`
export const openai = (name: string) =>
  new OpenAI({ baseURL: `${base(name)}/v1`, apiKey: 'client-key', maxRetries: 0 })
export const anthropic = (name: string) =>
  new Anthropic({ baseURL: base(name), apiKey: 'client-key', maxRetries: 0 })
export const tell = (content: string) => ({
  model: 'm-1',
  messages: [
    { role: 'system' as const, content: 'Be kind.' },
    { role: 'user' as const, content },
  ],
})
export const ask = tell('Hello 42')
export const askC = {
  model: 'm-1',
  max_tokens: 100,
  messages: [{ role: 'user' as const, content: 'Hello 42' }],
}
export const post = (
  name: string,
  body: object,
  headers: Record<string, string> = {},
  format = 'chat/completions',
) => fetch(`${base(name)}/v1/${format}`, { method: 'POST', body: JSON.stringify(body), headers })
export const asked = (path: string) => hook.calls.filter((call) => call.path === path)
export const upstream = () => a.calls.length + c.calls.length
