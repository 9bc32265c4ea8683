import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import type { TestRequest } from '../support/http-client.ts'
import { gateway, httpRoute, staticBackend, toBackend } from '../support/manifests.ts'
import type { ReceivedRequest } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

const host = 'filters.example.com'

const upstream = useUpstream('main', (received, response) => {
  response.setHeader('x-upstream', 'yes')
  response.setHeader('server', 'upstream/1.0')
  response.end(JSON.stringify(received))
})
const shadow = useUpstream('shadow')
const slow = useUpstream('slow', () => undefined)
const port = await freePort()
const running = useGateway(() => {
  const to = [toBackend('main')]
  const rule = (path: string, more: object) => ({
    matches: [{ path: { value: path } }],
    backendRefs: to,
    ...more,
  })
  const filter = (type: string, field: string, value: object) => ({
    filters: [{ type, [field]: value }],
  })
  const redirect = (value: object) => filter('RequestRedirect', 'requestRedirect', value)
  const rewrite = (value: object) => filter('URLRewrite', 'urlRewrite', value)
  return {
    manifests: [
      gateway(port),
      staticBackend('main', upstream.port),
      staticBackend('shadow', shadow.port),
      staticBackend('slow', slow.port),
      httpRoute('filters', {
        hostnames: [host],
        rules: [
          rule('/request', {
            filters: [
              {
                type: 'RequestHeaderModifier',
                requestHeaderModifier: {
                  set: [{ name: 'X-Set', value: 'new' }],
                  add: [{ name: 'X-Add', value: 'two' }],
                  remove: ['X-Remove'],
                },
              },
            ],
          }),
          rule('/response', {
            filters: [
              {
                type: 'ResponseHeaderModifier',
                responseHeaderModifier: {
                  set: [{ name: 'X-Upstream', value: 'replaced' }],
                  add: [{ name: 'X-More', value: '1' }],
                  remove: ['Server'],
                },
              },
            ],
          }),
          rule(
            '/prefix',
            rewrite({ path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/v2' } }),
          ),
          rule(
            '/full',
            rewrite({
              hostname: 'inner.example.com',
              path: { type: 'ReplaceFullPath', replaceFullPath: '/whole' },
            }),
          ),
          {
            ...rule('/moved', redirect({ hostname: 'new.example.com', statusCode: 301 })),
            backendRefs: [],
          },
          { ...rule('/secure', redirect({ scheme: 'https' })), backendRefs: [] },
          {
            ...rule(
              '/old',
              redirect({ path: { type: 'ReplacePrefixMatch', replacePrefixMatch: '/new' } }),
            ),
            backendRefs: [],
          },
          rule(
            '/mirror',
            filter('RequestMirror', 'requestMirror', { backendRef: toBackend('shadow') }),
          ),
          rule(
            '/extended',
            filter('ExtensionRef', 'extensionRef', { group: 'x.example', kind: 'X', name: 'x' }),
          ),
          rule('/late', { backendRefs: [toBackend('slow')], timeouts: { request: '100ms' } }),
          rule(
            '/queried',
            rewrite({ path: { type: 'ReplaceFullPath', replaceFullPath: '/new?x=1' } }),
          ),
        ],
      }),
    ],
  }
})

const send = (request: TestRequest) => running.send(port, { host, ...request })
async function received(request: TestRequest): Promise<ReceivedRequest> {
  return JSON.parse((await send(request)).body) as ReceivedRequest
}

describe('header filters', () => {
  it('changes the request on its way', async () => {
    const { headers } = await received({
      path: '/request',
      headers: { 'x-set': 'old', 'x-add': 'one', 'x-remove': 'secret' },
    })
    expect(headers).toMatchObject({ 'x-set': 'new', 'x-add': 'one, two' })
    expect(headers).not.toHaveProperty('x-remove')
  })

  it('changes the response on its way back', async () => {
    const { headers } = await send({ path: '/response' })
    expect(headers).toMatchObject({ 'x-upstream': 'replaced', 'x-more': '1' })
    expect(headers).not.toHaveProperty('server')
  })
})

describe('rewrite filters', () => {
  it('replaces the matched prefix and keeps the query', async () => {
    expect((await received({ path: '/prefix/items?a=1' })).path).toBe('/v2/items?a=1')
    expect((await received({ path: '/prefix' })).path).toBe('/v2')
  })

  it('replaces path and host', async () => {
    const { path, headers } = await received({ path: '/full/anything' })
    expect([path, headers.host]).toEqual(['/whole', 'inner.example.com'])
  })
})

describe('redirect filters', () => {
  it.each([
    ['/moved', 301, () => `http://new.example.com:${port}/moved`],
    ['/secure', 302, () => `https://${host}/secure`],
    ['/old/page?x=1', 302, () => `http://${host}:${port}/new/page?x=1`],
  ])('answers %s with a redirect', async (path, status, location) => {
    const response = await send({ path, host: `${host}:${port}` })
    expect([response.status, response.headers.location]).toEqual([status, location()])
    expect(response.body).toBe('')
  })
})

describe('mirror filters', () => {
  it('sends a copy with its body and keeps the answer of the backend', async () => {
    const { upstream: answered } = await received({
      path: '/mirror',
      method: 'POST',
      body: 'hello',
    })
    expect(answered).toBe('main')
    const copy = await waitFor('the copy', () => shadow.received[0])
    expect(copy).toMatchObject({ method: 'POST', path: '/mirror', body: 'hello' })
  })
})

describe('filters that are not supported', () => {
  it('answer 500 for the rule and are reported, instead of being skipped', async () => {
    expect((await send({ path: '/extended' })).status).toBe(500)
    const condition = await running.condition('HTTPRoute', 'filters', 'PartiallyInvalid', 'True')
    expect(condition.message).toContain('spec.rules[8].filters: ExtensionRef is not supported')
    expect((await send({ path: '/queried' })).status).toBe(500)
    expect(condition.message).toContain(
      'spec.rules[10].filters[0].urlRewrite.path.replaceFullPath: "/new?x=1" is not a path',
    )
  })
})

describe('timeouts of a rule', () => {
  it('answers 504 when the backend takes longer than the rule allows', async () => {
    const { status, body } = await send({ path: '/late' })
    expect([status, body]).toEqual([504, 'request timeout'])
  })
})
