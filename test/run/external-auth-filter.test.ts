/** The ExternalAuth filter of an HTTPRoute rule. */
import { beforeEach, describe, expect, it } from 'vitest'
import { startExtAuthServer } from '../support/ext-auth-server.ts'
import { useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { allConditions, freePort } from '../support/gateway.ts'
import { gateway, httpRoute, policy, staticBackend, toBackend } from '../support/manifests.ts'
import type { Answer } from '../support/upstream.ts'

const allow: Answer = (_, response) => response.end()
let answer: Answer

const guarded = (name: string, ...filters: object[]) =>
  httpRoute(name, {
    hostnames: [`${name}.example.com`],
    rules: [
      {
        filters: filters.map((externalAuth) => ({ type: 'ExternalAuth', externalAuth })),
        backendRefs: [toBackend('main')],
      },
    ],
  })
const overHttp = (settings: object = {}, more: object = {}) => ({
  protocol: 'HTTP',
  backendRef: toBackend('http'),
  http: settings,
  ...more,
})
const overGrpc = (settings: object = {}) => ({
  protocol: 'GRPC',
  backendRef: toBackend('grpc'),
  grpc: settings,
})
const ask = (name: string, more: object = {}) =>
  running.send(port, { host: `${name}.example.com`, path: '/cart?x=1', ...more })

const upstream = useUpstream()
const http = useUpstream('http', (received, response) => answer(received, response))
const grpc = useFixture(startExtAuthServer)
const port = await freePort()
const running = useGateway(() => ({
  manifests: [
    gateway(port),
    staticBackend('main', upstream.port),
    staticBackend('http', http.port),
    staticBackend('grpc', grpc.port),
    guarded('plain', overHttp()),
    guarded('prefix', overHttp({ path: '/check/' })),
    guarded('dots', overHttp({ path: '/a/%2e%2e/b' })),
    guarded('named', overHttp({ allowedHeaders: ['X-Team'], allowedResponseHeaders: ['X-User'] })),
    guarded('body', overHttp({}, { forwardBody: { maxSize: 10 } })),
    guarded('grpc', overGrpc()),
    guarded('grpc-named', overGrpc({ allowedHeaders: ['X-Team'] })),
    guarded('nowhere', overHttp({}, { backendRef: toBackend('nowhere') })),
    guarded('twice', overHttp(), overGrpc()),
    // What a wider policy asks is replaced by what the rule asks, as with every policy.
    guarded('closer', overGrpc()),
    policy('closer', 'HTTPRoute/closer', {
      traffic: { extAuth: { backendRef: toBackend('http'), http: {} } },
    }),
  ],
}))
beforeEach(() => {
  answer = allow
  grpc.answer({})
})

describe('an ExternalAuth filter over HTTP', () => {
  it('sends method, path, Host and Authorization, and copies what the service answers', async () => {
    answer = (_, response) => {
      response.writeHead(200, { 'x-user': 'ann', 'content-type': 'text/auth', host: 'evil' }).end()
    }
    const headers = { authorization: 'Bearer a', cookie: 'a=b', 'x-user': 'root' }
    expect((await ask('plain', { method: 'PUT', headers, body: 'hi' })).status).toBe(200)
    const asked = http.received.at(-1)
    expect(asked).toMatchObject({ method: 'PUT', path: '/cart?x=1', body: '' })
    expect(asked?.headers).toMatchObject({ host: 'plain.example.com', authorization: 'Bearer a' })
    expect(asked?.headers).not.toHaveProperty('cookie')
    const received = upstream.received.at(-1)
    expect(received?.body).toBe('hi')
    expect(received?.headers).toMatchObject({ 'x-user': 'ann', host: 'plain.example.com' })
    // Told without the dot of an absolute name, which would lead around a rule; sent on as it came.
    await ask('plain', { host: 'plain.example.com.' })
    expect(http.received.at(-1)?.headers.host).toBe('plain.example.com')
    expect(upstream.received.at(-1)?.headers.host).toBe('plain.example.com.')
    expect(received?.headers['content-type']).not.toBe('text/auth')
  })

  it('refuses with the answer of the service', async () => {
    answer = (_, response) => response.writeHead(401, { 'x-why': 'nobody' }).end('who?')
    const before = upstream.received.length
    expect(await ask('plain')).toMatchObject({ status: 401, body: 'who?' })
    expect(upstream.received).toHaveLength(before)
  })

  it('prefixes the path, and does not let it escape the prefix', async () => {
    expect((await ask('prefix')).status).toBe(200)
    expect(http.received.at(-1)?.path).toBe('/check/cart?x=1')
    expect((await ask('dots')).status).toBe(500)
  })

  it('sends and copies only the headers that it names', async () => {
    answer = (_, response) => response.writeHead(200, { 'x-user': 'ann', 'x-more': '1' }).end()
    const headers = { 'x-team': 'red', 'x-other': '1' }
    expect((await ask('named', { headers })).status).toBe(200)
    expect(http.received.at(-1)?.headers).toMatchObject({ 'x-team': 'red' })
    expect(http.received.at(-1)?.headers).not.toHaveProperty('x-other')
    expect(upstream.received.at(-1)?.headers).toMatchObject({ 'x-user': 'ann' })
    expect(upstream.received.at(-1)?.headers).not.toHaveProperty('x-more')
  })

  it('sends bodies up to maxSize, and refuses larger ones', async () => {
    expect((await ask('body', { method: 'POST', body: 'hello' })).status).toBe(200)
    expect(http.received.at(-1)?.body).toBe('hello')
    expect((await ask('body', { method: 'POST', body: 'hello world' })).status).toBe(413)
  })
})

describe('an ExternalAuth filter over gRPC', () => {
  it('describes the request with all its headers, or with those that it names', async () => {
    const headers = { 'x-team': 'red', 'x-other': '1' }
    expect((await ask('grpc', { headers })).status).toBe(200)
    expect(grpc.asked.at(-1)?.request?.http?.headers).toMatchObject(headers)
    expect((await ask('grpc-named', { headers })).status).toBe(200)
    const sent = grpc.asked.at(-1)?.request?.http?.headers
    expect(sent).toMatchObject({ 'x-team': 'red', ':path': '/cart?x=1' })
    expect(sent).not.toHaveProperty('x-other')
  })

  it('refuses what the service refuses', async () => {
    grpc.answer({ status: { code: 7 } })
    expect((await ask('grpc')).status).toBe(403)
  })

  it('takes precedence over a wider policy', async () => {
    answer = (_, response) => response.writeHead(401).end()
    expect((await ask('closer')).status).toBe(200)
  })
})

it('an ExternalAuth filter that cannot be enforced refuses the requests of its rule and reports why', async () => {
  expect((await ask('nowhere')).status).toBe(500)
  expect((await ask('twice')).status).toBe(500)
  const conditions = async (name: string) => {
    return allConditions(await running.status('HTTPRoute', name))
  }
  expect(await conditions('nowhere')).toContainEqual(
    expect.objectContaining({ type: 'ResolvedRefs', status: 'False', reason: 'BackendNotFound' }),
  )
  expect(await conditions('twice')).toContainEqual(
    expect.objectContaining({
      message: expect.stringContaining('ExternalAuth cannot be repeated'),
    }),
  )
})
