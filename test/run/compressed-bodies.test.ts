/** Expressions read compressed bodies decompressed, within the limit for bodies in memory. */
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import {
  gateway,
  hostOf,
  policy,
  routeByHost,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'

const encoders = {
  gzip: gzipSync,
  deflate: deflateSync,
  br: brotliCompressSync,
  zstd: zstdCompressSync,
} as const
type Coding = keyof typeof encoders
const codings = Object.keys(encoders) as Coding[]

const encode = (coding: string, text: string): Buffer =>
  encoders[coding as Coding](Buffer.from(text))

const upstream = useUpstream('main', ({ path, headers }, response) => {
  const coding = path.slice(1)
  if (!(coding in encoders)) {
    response.end(JSON.stringify({ got: headers['content-encoding'] ?? 'plain' }))
    return
  }
  response.setHeader('content-encoding', coding).end(encode(coding, '{"who":"x"}'))
})
const judge = useUpstream('judge')
const port = await freePort()

const running = useGateway(() => {
  const route = (name: string, traffic: object) => [
    routeByHost(name, toBackend('main')),
    policy(name, `HTTPRoute/${name}`, { traffic }),
  ]
  const rule = (action: string, expression: string) => ({
    authorization: { action, policy: { matchExpressions: [expression] } },
  })
  return {
    manifests: [
      gateway(port),
      staticBackend('main', upstream.port),
      staticBackend('judge', judge.port),
      ...route('changed', {
        transformation: {
          response: { set: [{ name: 'x-who', value: 'json(response.body).who' }] },
        },
      }),
      ...route('denied', rule('Deny', 'json(request.body).role == "admin"')),
      ...route('allowed', rule('Allow', 'string(request.bodyPrefix).contains("sesame")')),
      ...route('rewritten', {
        transformation: { request: { body: '"role: " + json(request.body).role' } },
      }),
      ...route('judged', {
        extAuth: { backendRef: toBackend('judge'), http: {}, forwardBody: { maxSize: 1000 } },
      }),
      policy('log', 'Gateway/edge', {
        frontend: {
          accessLog: {
            attributes: {
              add: [{ name: 'role', expression: 'json(request.body).role + "!"' }],
            },
          },
        },
      }),
    ],
  }
})

const post = async (host: string, coding: string, body: string | Buffer) => {
  const request = { host: hostOf(host), method: 'POST', headers: { 'content-encoding': coding } }
  return running.send(port, { ...request, body })
}

describe('compressed bodies in expressions', () => {
  it.each(codings)('a transformation reads a response in %s', async (coding) => {
    const answer = await running.send(port, { host: hostOf('changed'), path: `/${coding}` })
    expect(answer.headers).toMatchObject({ 'x-who': 'x', 'content-encoding': coding })
  })

  it.each(codings)('a Deny rule reads a request in %s', async (coding) => {
    expect((await post('denied', coding, encode(coding, '{"role":"admin"}'))).status).toBe(403)
    const passed = await post('denied', coding, encode(coding, '{"role":"user"}'))
    expect([passed.status, JSON.parse(passed.body)]).toEqual([200, { got: coding }])
  })

  it('several codings are removed in reverse order', async () => {
    const twice = (text: string) => brotliCompressSync(gzipSync(text))
    expect((await post('denied', 'gzip, br', twice('{"role":"user"}'))).status).toBe(200)
    expect((await post('denied', 'gzip, br', twice('{"role":"admin"}'))).status).toBe(403)
  })

  it.each([
    ['unknown', 'compress', '{"role":"user"}'],
    ['damaged', 'gzip', '{"role":"user"}'],
    ['longer than the limit', 'gzip', gzipSync(`{"role":"user"}${' '.repeat(2_097_152)}`)],
  ])('a Deny rule matches if the body is %s', async (_, coding, body) => {
    expect((await post('denied', coding, body)).status).toBe(403)
  })

  it('an Allow rule reads a body up to the limit', async () => {
    expect((await post('allowed', 'gzip', gzipSync('open sesame'))).status).toBe(200)
    const long = gzipSync(`open sesame${' '.repeat(2_097_152)}`)
    expect((await post('allowed', 'gzip', long)).status).toBe(403)
  })

  it('a new body is sent without the coding', async () => {
    await post('rewritten', 'gzip', gzipSync('{"role":"user"}'))
    const received = upstream.received.at(-1)
    expect(received?.body).toBe('role: user')
    expect(received?.headers).not.toHaveProperty('content-encoding')
  })

  it('the access log has what it reads from them', async () => {
    await post('denied', 'gzip', gzipSync('{"role":"logged"}'))
    await waitFor('the line', () => running.stdout.includes('role=logged!'))
  })

  it('an authorization service gets their coding', async () => {
    await post('judged', 'gzip', gzipSync('{}'))
    expect(judge.received.at(-1)?.headers['content-encoding']).toBe('gzip')
  })
})
