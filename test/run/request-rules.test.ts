import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePorts } from '../support/gateway.ts'
import {
  gateway,
  httpRoute,
  manifest,
  policy,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'

const manifests = (port: number) => ({
  'all.yaml': manifest(
    gateway(port),
    staticBackend('main', upstream.port),
    httpRoute('guarded', {
      hostnames: ['guarded.example.com'],
      rules: [{ backendRefs: [toBackend('main')] }],
    }),
    policy('guarded', 'HTTPRoute/guarded', {
      traffic: { authorization: { action: 'Deny', policy: { matchExpressions: ['true'] } } },
    }),
    httpRoute('main', {
      hostnames: ['main.example.com'],
      rules: [
        {
          matches: [{ headers: [{ name: 'x_inner', value: 'yes' }] }],
          filters: [
            {
              type: 'RequestHeaderModifier',
              requestHeaderModifier: { set: [{ name: 'x-matched', value: 'yes' }] },
            },
          ],
          backendRefs: [toBackend('main')],
        },
        { backendRefs: [toBackend('main')] },
      ],
    }),
  ),
})

const upstream = useUpstream()
const ports = await freePorts('keep', 'drop', 'refuse')
const keeping = useGateway(() => ({ manifests: manifests(ports.keep) }))
const dropping = useGateway(() => ({
  manifests: manifests(ports.drop),
  args: ['--underscore-headers', 'drop'],
}))
const refusing = useGateway(() => ({
  manifests: manifests(ports.refuse),
  env: { SLUICE_UNDERSCORE_HEADERS: 'refuse' },
}))

const host = 'main.example.com'
const headers = { x_inner: 'yes', 'x-other': 'no' }

describe('header names with an underscore', () => {
  it('are accepted by default', async () => {
    const { body } = await keeping.send(ports.keep, { host, headers })
    expect(JSON.parse(body).headers).toMatchObject({ ...headers, 'x-matched': 'yes' })
  })

  it.each(['Transfer_Encoding', 'content_length', 'CONTENT_LENGTH'])(
    'are answered 400 if a backend may take them for a framing field: %s',
    async (name) => {
      const { status } = await keeping.send(ports.keep, { host, headers: { [name]: '0' } })
      expect(status).toBe(400)
      const dropped = await dropping.send(ports.drop, { host, headers: { [name]: '0' } })
      expect(Object.keys(JSON.parse(dropped.body).headers)).not.toContain(name.toLowerCase())
    },
  )

  it('are neither matched nor forwarded if the setting drops them', async () => {
    const { body } = await dropping.send(ports.drop, { host, headers })
    const received = JSON.parse(body).headers
    expect(received).toMatchObject({ 'x-other': 'no' })
    expect(Object.keys(received)).not.toContain('x_inner')
    expect(Object.keys(received)).not.toContain('x-matched')
  })

  it('are answered 400 if the setting refuses them', async () => {
    expect(await refusing.send(ports.refuse, { host, headers })).toMatchObject({ status: 400 })
    const { status } = await refusing.send(ports.refuse, { host, headers: { 'x-other': 'a_b' } })
    expect(status).toBe(200)
  })
})

describe('Max-Forwards', () => {
  const trace = (count: string, name = host) =>
    keeping.send(ports.keep, {
      method: 'TRACE',
      path: '/way?a=1',
      host: name,
      headers: {
        'max-forwards': count,
        authorization: 'Bearer hidden-1',
        cookie: 'a=hidden-2',
        'x-api-key': 'hidden-3',
        'X-Goog-Api-Key': 'hidden-4',
        'x-probe': 'shown',
      },
    })

  it('of 0 makes the gateway answer TRACE, without credentials', async () => {
    const before = upstream.received.length
    const { status, headers: got, body } = await trace('0')
    expect([status, got['content-type']]).toEqual([200, 'message/http'])
    expect(body).toMatch(/^TRACE \/way\?a=1 HTTP\/1\.1\r\nhost: main\.example\.com\r\n/)
    expect(body).toMatch(/\r\nx-probe: shown\r\n/i)
    expect(body).not.toContain('hidden')
    expect(upstream.received).toHaveLength(before)
  })

  it('of 0 makes the gateway answer OPTIONS', async () => {
    const before = upstream.received.length
    const request = { method: 'OPTIONS', host, headers: { 'max-forwards': '0' } }
    const { status, headers: got, body } = await keeping.send(ports.keep, request)
    expect([status, body]).toEqual([200, ''])
    expect(got.allow).toContain('GET')
    expect(upstream.received).toHaveLength(before)
  })

  it.each([
    ['TRACE', '1', '0'],
    ['OPTIONS', '10', '9'],
    ['OPTIONS', '99999999999999999999', '2147483647'],
    ['OPTIONS', 'many', 'many'],
    ['GET', '0', '0'],
  ])('of a %s that is %s reaches the backend as %s', async (method, sent, received) => {
    const request = { method, host, headers: { 'max-forwards': sent } }
    const { body } = await keeping.send(ports.keep, request)
    expect(JSON.parse(body).headers['max-forwards']).toBe(received)
  })

  it('does not bypass a policy that refuses the request', async () => {
    expect(await trace('0', 'guarded.example.com')).toMatchObject({ status: 403 })
  })
})
