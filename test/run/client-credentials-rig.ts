import { beforeEach, expect } from 'vitest'
import { useFixture, useUpstream } from '../support/fixture.ts'
import { send } from '../support/http-client.ts'
import { policy, secret, staticBackend, toBackend } from '../support/manifests.ts'
import { startRateLimitServer } from '../support/rate-limit-server.ts'
import { type Fleet, reached, reachedBackend, routes, useFleet } from '../support/vendors/fleet.ts'
import { startWebhook } from '../support/vendors/guard-services.ts'
import { startRealtimeVendor } from '../support/vendors/realtime.ts'

const passing = { ai: { routes: { '*': 'Passthrough' } } }
const passed = { auth: { passthrough: {} } }
export const claude = 'anthropic.claude-sonnet-4-v1:0'
export const messages = [{ role: 'user' as const, content: 'Hello' }]
const vendorsByLetter = { a: 'vendorA', b: 'vendorB', c: 'vendorC', d: 'vendorD', e: 'vendorE' }
const configs: Readonly<Record<string, object>> = {
  b: { endpoint: 'x' },
  e: { projectId: 'my-project', region: 'us-central1' },
}

/** A backend and its route, below a path of the name. */
type Manifests = readonly Readonly<Record<string, unknown>>[]

const route = (manifests: Manifests, more: object): Manifests =>
  manifests.map((one) => {
    if (one.kind !== 'HTTPRoute') return one
    const spec = one.spec as { rules: { filters: object[] }[] }
    const [rule] = spec.rules
    const filters = [...(rule?.filters ?? []), ...((more as { filters?: object[] }).filters ?? [])]
    return { ...one, spec: { ...spec, rules: [{ ...rule, ...more, filters }] } }
  })

const backendFilters = (manifests: Manifests, filters: object[]): Manifests =>
  manifests.map((one) => {
    if (one.kind !== 'HTTPRoute') return one
    const spec = one.spec as { rules: { backendRefs: object[] }[] }
    const rules = spec.rules.map((rule) => ({
      ...rule,
      backendRefs: rule.backendRefs.map((ref) => ({ ...ref, filters })),
    }))
    return { ...one, spec: { ...spec, rules } }
  })

const setHeader = (name: string, value: string) => ({
  type: 'RequestHeaderModifier',
  requestHeaderModifier: { set: [{ name, value }] },
})

export const shadow = useUpstream('shadow')
export const collector = useUpstream('collector')
export const webhook = useFixture(startWebhook)
export const limits = useFixture(startRateLimitServer)
export const sessions = useFixture(startRealtimeVendor)
export const fleet = useFleet(({ at, region }) => {
  const provider = (letter: keyof typeof vendorsByLetter) => ({
    [vendorsByLetter[letter]]: configs[letter] ?? {},
    ...at(letter),
  })
  const f = { vendorF: { region }, ...at('f') }
  const signed = { auth: { aws: { secretRef: { name: 'aws' } } } }
  const letters = ['a', 'b', 'c', 'd', 'e'] as const
  const realtime = { ai: { routes: { '/realtime': 'Realtime' } } }
  const talk = { host: '127.0.0.1', port: sessions.port }
  const guard = {
    webhook: {
      backendRef: toBackend('webhook'),
      forwardHeaderMatches: [
        { name: 'x-api-key', type: 'RegularExpression', value: 'canary-.*' },
        { name: 'x-tenant', type: 'RegularExpression', value: '.*' },
      ],
    },
  }
  const mirror = { type: 'RequestMirror', requestMirror: { backendRef: toBackend('shadow') } }
  const descriptors = [
    {
      entries: [
        { name: 'key', expression: 'request.headers["x-api-key"]' },
        { name: 'path', expression: 'request.path' },
      ],
      unit: 'Tokens',
    },
  ]
  return [
    ...letters.map((letter) => reached(letter, provider(letter))),
    ...letters.map((letter) => reached(`raw-${letter}`, provider(letter), passing)),
    ...letters.map((letter) => reached(`pass-${letter}`, provider(letter), passed)),
    ...letters.map((letter) =>
      reached(`raw-pass-${letter}`, provider(letter), { ...passing, ...passed }),
    ),
    reached('f', f, signed),
    reached('raw-f', f, { ...passing, ...signed }),
    reached('pass-f', f, passed),
    reached('no-auth', provider('a'), { auth: undefined }),
    reachedBackend(
      'failover',
      {
        groups: [
          { providers: [{ name: 'one', ...provider('a') }] },
          { providers: [{ name: 'two', ...provider('c') }] },
          { providers: [{ name: 'three', ...provider('d') }] },
        ],
      },
      passed,
    ),
    route(reached('set', provider('c'), { auth: undefined }), {
      filters: [setHeader('x-api-key', 'key-of-the-route')],
    }),
    [
      policy('set', 'HTTPRoute/set-policy', {
        traffic: {
          transformation: {
            request: { set: [{ name: 'authorization', value: '"Bearer key-of-the-policy"' }] },
          },
        },
      }),
    ],
    reached('set-policy', provider('a'), { auth: undefined }),
    route(reached('mirrored', provider('a')), { filters: [mirror] }),
    [
      policy('traced', 'Gateway/edge', {
        frontend: { tracing: { backendRef: toBackend('collector'), randomSampling: 'true' } },
      }),
      staticBackend('collector', collector.port),
    ],
    backendFilters(
      reachedBackend('edited', {
        groups: [
          { providers: [{ name: 'one', ...provider('a') }] },
          { providers: [{ name: 'two', ...provider('c') }] },
        ],
      }),
      [setHeader('x-of-the-backend', 'yes')],
    ),
    [staticBackend('shadow', shadow.port), staticBackend('webhook', webhook.port)],
    reached('guarded', provider('a'), { ai: { routes, promptGuard: { request: [guard] } } }),
    reached('limited', provider('a')),
    [
      staticBackend('limits', limits.port),
      policy('limited', 'HTTPRoute/limited', {
        traffic: {
          rateLimit: { global: { backendRef: toBackend('limits'), domain: 'd', descriptors } },
        },
      }),
    ],
    reached('verified', provider('c'), { ...passed, ai: { routes } }),
    [
      secret('keys', { one: 'gateway-client-key' }),
      policy('verified', 'HTTPRoute/verified', {
        traffic: { apiKeyAuthentication: { secretRef: { name: 'keys' } } },
      }),
    ],
    reached('talk', { vendorA: {}, ...talk }, realtime),
    reached('talk-pass', { vendorA: {}, ...talk }, { ...realtime, ...passed }),
    reached('talk-raw', { vendorA: {}, ...talk, path: undefined }, passing),
  ]
})
beforeEach(() => {
  fleet.forget()
  sessions.sessions.length = 0
})

export const canary = 'canary-4711'

/** A credential in every possible place; all contain the same marker. */
export const everywhere: Readonly<Record<string, string>> = {
  authorization: `Bearer ${canary}-bearer`,
  'proxy-authorization': `Basic ${canary}`,
  'X-API-Key': `${canary}-c`,
  'Api-Key': `${canary}-b`,
  'x-goog-api-key': `${canary}-d`,
  'x-goog-iam-authorization-token': canary,
  'ocp-apim-subscription-key': canary,
  'x-amz-security-token': canary,
  'x-amz-date': canary,
  'x-amz-content-sha256': canary,
  'x-auth-token': canary,
  'x-forwarded-access-token': canary,
  cookie: `session=${canary}; other=${canary}`,
  'sec-websocket-protocol': `realtime, openai-insecure-api-key.${canary}`,
}
const parameters = ['key', '%6Bey', 'KEY', 'api-key', 'api_key', 'access_token', 'token']
const signing = ['X-Amz-Security-Token', 'X-Amz-Signature', 'X-Amz-Credential', 'sig']
export const query = [...parameters, ...signing].map((name) => `${name}=${canary}`).join('&')

export const port = () => Number(new URL(fleet.base('a')).port)

export function post(name: string, path: string, model = 'm', headers = everywhere) {
  const body = JSON.stringify({ model, max_tokens: 5, messages })
  const type = { 'content-type': 'application/json' }
  return send(port(), {
    method: 'POST',
    path: `/${name}${path}`,
    headers: { ...type, ...headers },
    body,
  })
}

/** What reached a vendor, as one text. */
export function seen(letter: keyof Fleet['vendors']): string {
  const calls = fleet.vendors[letter].calls.map(({ path, headers }) => ({ path, headers }))
  expect(calls.length).toBeGreaterThan(0)
  return JSON.stringify(calls)
}

const credentialHeaders = ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key'] as const

/** Headers with a credential that reached a vendor last. */
export function shown(letter: keyof Fleet['vendors']): Record<string, unknown> {
  const { headers = {} } = fleet.lastCall(letter) ?? {}
  const found = credentialHeaders.filter((name) => headers[name] !== undefined)
  return Object.fromEntries(found.map((name) => [name, headers[name]]))
}
