import { beforeEach, describe, expect, it } from 'vitest'
import { startExtAuthServer } from '../support/ext-auth-server.ts'
import { useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import type { TestRequest } from '../support/http-client.ts'
import {
  gateway,
  hostOf,
  httpRoute,
  policy,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import type { Answer } from '../support/upstream.ts'

type Fields = Record<string, unknown>

const allow: Answer = (_, response) => response.end()
const given = { answer: allow }

const upstream = useUpstream('main', (received, response) =>
  response.setHeader('set-cookie', 'upstream=1').end(JSON.stringify(received)),
)
const http = useUpstream('http', (received, response) => given.answer(received, response))
const grpc = useFixture(startExtAuthServer)
const port = await freePort()
const down = await freePort()
const guarded = (name: string, extAuth: Fields) => [
  httpRoute(name, { hostnames: [hostOf(name)], rules: [{ backendRefs: [toBackend('main')] }] }),
  policy(name, `HTTPRoute/${name}`, {
    traffic: { extAuth: { backendRef: toBackend('http'), ...extAuth } },
  }),
]
const overGrpc = (name: string, fields: Fields) =>
  guarded(name, { backendRef: toBackend('grpc'), grpc: {}, ...fields })
const byPath = { key: ['request.path'], ttl: '1h' }
const running = useGateway(() => ({
  manifests: [
    gateway(port),
    staticBackend('main', upstream.port),
    staticBackend('http', http.port),
    staticBackend('grpc', grpc.port),
    staticBackend('down', down),
    ...guarded('cached', { http: { allowedResponseHeaders: ['x-user'] }, cache: byPath }),
    ...guarded('team', {
      http: {},
      cache: { key: ['request.headers.authorization.size()'], ttl: '1h' },
    }),
    ...guarded('keyless', { http: {}, cache: { key: ['jwt.sub'], ttl: '1h' } }),
    ...guarded('timed', {
      http: {},
      cache: { key: ['request.path'], ttl: 'duration(response.headers["x-ttl"])' },
    }),
    ...guarded('until', {
      http: {},
      cache: { key: ['request.path'], ttl: 'timestamp(response.headers["x-until"])' },
    }),
    ...guarded('small', {
      http: {},
      cache: { key: ['request.path'], ttl: '1h', maxEntries: 2 },
    }),
    ...overGrpc('grpc-cached', { cache: byPath }),
    ...overGrpc('grpc-timed', {
      cache: { key: ['request.path'], ttl: 'duration(extauthz.ttl)' },
    }),
    ...guarded('bad-ttl', { http: {}, cache: { key: ['true'], ttl: '30 parsecs' } }),
    ...guarded('open', {
      http: { allowedResponseHeaders: ['x-user'] },
      failureMode: 'FailOpen',
      forwardBody: { maxSize: 5 },
    }),
    ...guarded('open-down', {
      backendRef: toBackend('down'),
      http: { allowedResponseHeaders: ['x-user'] },
      failureMode: 'FailOpen',
    }),
    ...overGrpc('grpc-open', { failureMode: 'FailOpen' }),
    ...guarded('partial', { http: {}, forwardBody: { maxSize: 5, allowPartialMessage: true } }),
    ...overGrpc('grpc-partial', {
      forwardBody: { maxSize: 5, allowPartialMessage: true, packAsBytes: true },
    }),
    ...overGrpc('grpc-named', { grpc: { allowedRequestHeaders: ['X-Team'] } }),
    ...guarded('made', { http: { body: '{"path": request.path, "from": string(request.body)}' } }),
    ...guarded('unmade', { http: { body: 'jwt.sub' } }),
    ...guarded('shown', {
      http: {
        allowedClientHeaders: ['X-Why'],
        allowedClientHeadersOnSuccess: ['X-Plan', 'set-cookie'],
      },
    }),
  ],
}))
const ask = (name: string, more: TestRequest = {}) =>
  running.send(port, { host: hostOf(name), path: '/a', ...more })
const post = (name: string, body: string) => ask(name, { method: 'POST', body })
/** Returns how many requests the service got while `requests` were sent one after the other. */
async function asked(name: string, ...requests: TestRequest[]): Promise<number> {
  const count = () => http.received.length + grpc.asked.length
  const before = count()
  for (const request of requests) await ask(name, request)
  return count() - before
}

beforeEach(() => {
  given.answer = allow
  grpc.answer({})
})

describe('the cache of extAuth [ExtAuth.cache]', () => {
  it('[ExtAuthCache.key] [ExtAuthCache.ttl] applies an answer with its headers to later requests with the same key', async () => {
    given.answer = (_, response) => response.setHeader('x-user', 'ann').end()
    expect(await asked('cached', {}, {}, {})).toBe(1)
    given.answer = allow
    expect((await ask('cached', { headers: { 'x-user': 'root' } })).status).toBe(200)
    expect(upstream.received.at(-1)?.headers['x-user']).toBe('ann')
    expect(await asked('cached', { path: '/b' })).toBe(1)
  })

  it('caches refusals, but no failures and no answers that cannot be passed on', async () => {
    given.answer = (_, response) => response.writeHead(401).end('who?')
    expect(await asked('cached', { path: '/no' }, { path: '/no' })).toBe(1)
    given.answer = allow
    expect(await ask('cached', { path: '/no' })).toMatchObject({ status: 401, body: 'who?' })
    given.answer = (_, response) => response.writeHead(503).end()
    expect(await asked('cached', { path: '/later' }, { path: '/later' })).toBe(2)
    given.answer = (_, response) => response.end('a'.repeat(100_000))
    expect(await asked('cached', { path: '/large' }, { path: '/large' })).toBe(2)
  })

  it('never applies an answer to another caller, unless the key names the caller', async () => {
    const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })
    expect(await asked('cached', as('one'), as('two'), as('one'))).toBe(2)
    expect(await asked('team', as('one'), as('two'), as('three'))).toBe(2)
    const cookie = (value: string) => ({ headers: { cookie: `session=${value}` } })
    expect(await asked('grpc-cached', cookie('one'), cookie('two'), cookie('one'))).toBe(2)
  })

  it('asks the service if an expression of the key fails', async () => {
    expect(await asked('keyless', {}, {})).toBe(2)
  })

  it('keeps an answer for the time that an expression about it gives', async () => {
    const says = (name: string, value: string): Answer => {
      return (_, response) => response.setHeader(name, value).end()
    }
    given.answer = says('x-ttl', '1h')
    expect(await asked('timed', {}, {})).toBe(1)
    given.answer = says('x-ttl', '0s')
    expect(await asked('timed', { path: '/b' }, { path: '/b' })).toBe(2)
    given.answer = allow
    expect(await asked('timed', { path: '/c' }, { path: '/c' })).toBe(2)
    given.answer = says('x-until', '2100-01-01T00:00:00Z')
    expect(await asked('until', {}, {})).toBe(1)
    given.answer = says('x-until', '2001-01-01T00:00:00Z')
    expect(await asked('until', { path: '/b' }, { path: '/b' })).toBe(2)
    grpc.answer({ dynamicMetadata: { ttl: '1h' } })
    expect(await asked('grpc-timed', {}, {})).toBe(1)
    const { message } = await running.condition('GatewayPolicy', 'bad-ttl', 'Accepted', 'False')
    expect(message).toContain('cache.ttl')
  })

  it('[ExtAuthCache.maxEntries] drops the answer that was used least recently', async () => {
    const at = (path: string) => ({ path })
    expect(await asked('small', at('/1'), at('/2'), at('/1'), at('/3'))).toBe(3)
    expect(await asked('small', at('/1'))).toBe(0)
    expect(await asked('small', at('/2'))).toBe(1)
  })
})

describe('what else extAuth sends and takes', () => {
  it('[ExtAuth.failureMode] lets requests pass if the service fails, without headers that only it may set', async () => {
    const headers = { 'x-user': 'root' }
    for (const name of ['open', 'open-down']) {
      given.answer = (_, response) => response.writeHead(503).end()
      expect((await ask(name, { headers })).status).toBe(200)
      expect(upstream.received.at(-1)?.headers).not.toHaveProperty('x-user')
    }
    for (const failure of [14, { status: { code: 13 } }, Uint8Array.from([0xff])]) {
      grpc.answer(failure)
      expect((await ask('grpc-open')).status).toBe(200)
    }
    given.answer = (_, response) => response.writeHead(403).end()
    expect((await ask('open')).status).toBe(403)
    grpc.answer({ status: { code: 7 } })
    expect((await ask('grpc-open')).status).toBe(403)
    expect((await post('open', '123456')).status).toBe(413)
  })

  it('[ExtAuthBody.allowPartialMessage] [ExtAuthBody.packAsBytes] sends the beginning of a larger body, and says so', async () => {
    const partial = 'x-envoy-auth-partial-body'
    for (const [body, sent, isPartial] of [
      ['12345', '12345', 'false'],
      ['1234567', '12345', 'true'],
    ] as const) {
      const headers = { [partial]: 'forged' }
      const echoed = await ask('partial', { method: 'POST', body, headers })
      expect(JSON.parse(echoed.body)).toMatchObject({ body })
      expect(http.received.at(-1)).toMatchObject({ body: sent, headers: { [partial]: isPartial } })
      await ask('grpc-partial', { method: 'POST', body, headers })
      const { http: asked } = grpc.asked.at(-1)?.request ?? {}
      expect([asked?.body, Buffer.from(asked?.rawBody ?? []).toString()]).toEqual(['', sent])
      expect(asked?.headers[partial]).toBe(isPartial)
      expect(asked?.size).toBe(BigInt(body.length))
    }
    await ask('grpc-cached', { path: '/forged', headers: { [partial]: 'false' } })
    expect(grpc.asked.at(-1)?.request?.http?.headers).not.toHaveProperty(partial)
  })

  it('[AgentExtAuthHTTP.body] sends a body from an expression, and refuses requests for which it fails', async () => {
    expect((await post('made', 'hello')).status).toBe(200)
    expect(JSON.parse(http.received.at(-1)?.body ?? '')).toEqual({ path: '/a', from: 'hello' })
    expect(upstream.received.at(-1)?.body).toBe('hello')
    expect((await ask('unmade')).status).toBe(403)
  })

  it('[AgentExtAuthGRPC.allowedRequestHeaders] sends only the headers that the policy names', async () => {
    await ask('grpc-named', { headers: { 'x-team': 'red', 'x-other': '1' } })
    const { headers } = grpc.asked.at(-1)?.request?.http ?? {}
    expect(headers).toMatchObject({ 'x-team': 'red', ':path': '/a' })
    expect(headers).not.toHaveProperty('x-other')
  })

  it('[AgentExtAuthHTTP.allowedClientHeaders] [AgentExtAuthHTTP.allowedClientHeadersOnSuccess] passes headers of the answer to the client', async () => {
    given.answer = (_, response) => {
      response.writeHead(200, { 'x-plan': 'gold', 'x-inner': '1', 'set-cookie': 'auth=1' }).end()
    }
    const { headers } = await ask('shown')
    expect(headers).toMatchObject({ 'x-plan': 'gold', 'set-cookie': ['upstream=1', 'auth=1'] })
    expect(headers).not.toHaveProperty('x-inner')
    given.answer = (_, response) => {
      response.writeHead(302, { location: '/in', 'x-why': 'a', 'x-inner': '1' }).end()
    }
    const refused = await ask('shown')
    expect(refused.status).toBe(302)
    expect(refused.headers).toMatchObject({ location: '/in', 'x-why': 'a' })
    expect(refused.headers).not.toHaveProperty('x-inner')
  })
})
