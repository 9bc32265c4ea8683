/** Policies of the standalone agentgateway that call a service, served after their conversion. */
import { create } from '@bufbuild/protobuf'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CheckResponseSchema } from '../../proto/gen/called/ext_authz_pb.ts'
import { type ExtAuthServer, startExtAuthServer } from '../support/ext-auth-server.ts'
import {
  type ExtProcServer,
  passAll,
  setting,
  startExtProcServer,
} from '../support/ext-proc-server.ts'
import { useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { type RateLimitServer, startRateLimitServer } from '../support/rate-limit-server.ts'
import { outline, runImport, useImport } from './rig.ts'

const port = await freePort()
const shop = useUpstream('shop')
const checker = useUpstream('checker')
let authorizer: ExtAuthServer
let processor: ExtProcServer
let counter: RateLimitServer

beforeAll(async () => {
  authorizer = await startExtAuthServer()
  counter = await startRateLimitServer()
  processor = await startExtProcServer((message, stream) => {
    if (message.request.case !== 'requestHeaders') return passAll(message, stream)
    const response = setting({ 'x-processed': 'yes' })
    stream.send({ response: { case: 'requestHeaders', value: { response } } })
  })
})
afterAll(() => {
  for (const server of [authorizer, processor, counter]) server?.close()
})

const config = () => `binds:
- port: ${port}
  listeners:
  - routes:
    - name: checked
      matches: [{ path: { pathPrefix: /grpc } }]
      policies:
        extAuthz:
          host: 127.0.0.1:${authorizer.port}
          protocol: { grpc: { context: { tier: gold } } }
          failureMode: allow
          includeRequestBody: { maxRequestBytes: 1024 }
      backends: [{ host: "127.0.0.1:${shop.port}" }]
    - name: checked
      matches: [{ path: { pathPrefix: /http } }]
      policies:
        extAuthz:
          host: 127.0.0.1:${checker.port}
          protocol: { http: { path: '"/check"', includeResponseHeaders: [x-user] } }
          includeRequestHeaders: [x-team]
      backends: [{ host: "127.0.0.1:${shop.port}" }]
    - matches: [{ path: { pathPrefix: /processed } }]
      policies: { extProc: { host: "127.0.0.1:${processor.port}" } }
      backends: [{ host: "127.0.0.1:${shop.port}" }]
    - matches: [{ path: { pathPrefix: /limited } }]
      policies:
        remoteRateLimit:
          host: 127.0.0.1:${counter.port}
          domain: shop
          descriptors:
          - entries: [{ key: team, value: 'request.headers["x-team"]' }]
      backends: [{ host: "127.0.0.1:${shop.port}" }]
`

describe('sluice import of policies of the standalone agentgateway that call a service', () => {
  const { gateway, imported } = useImport(() => ({
    content: config(),
    args: ['--allow-stricter'],
  }))
  const ask = (path: string, headers: Record<string, string> = {}) =>
    gateway.send(port, { method: 'POST', path, headers, body: 'hello' })

  it('loses no protection, and reports that requests are refused if a service fails', () => {
    expect(imported()).toMatchObject({ code: 0, validation: { code: 0 } })
    expect(outline(imported())).toEqual([
      'stricter: binds[0].listeners[0].routes[0].policies.extAuthz.failureMode',
    ])
  })

  it('asks an authorization service over gRPC, with the body', async () => {
    expect((await ask('/grpc/a')).status).toBe(200)
    expect(authorizer.asked.at(-1)).toMatchObject({
      contextExtensions: { tier: 'gold' },
      request: { http: { path: '/grpc/a', body: 'hello' } },
    })
    authorizer.answer(create(CheckResponseSchema, { status: { code: 7 } }))
    expect((await ask('/grpc/a')).status).toBe(403)
    authorizer.answer('nothing')
  })

  it('asks an authorization service over HTTP, with the named headers', async () => {
    expect((await ask('/http/a', { 'x-team': 'red', 'x-other': 'b' })).status).toBe(200)
    const { path, headers } = checker.received.at(-1) ?? {}
    expect(path).toBe('/check')
    expect(headers).toMatchObject({ 'x-team': 'red' })
    expect(headers).not.toHaveProperty('x-other')
  })

  it('lets a processor change the request', async () => {
    expect((await ask('/processed')).status).toBe(200)
    expect(shop.received.at(-1)?.headers).toMatchObject({ 'x-processed': 'yes' })
  })

  it('asks a rate limit server', async () => {
    expect((await ask('/limited', { 'x-team': 'red' })).status).toBe(200)
    expect(counter.asked.at(-1)).toMatchObject({
      domain: 'shop',
      descriptors: [{ entries: [{ key: 'team', value: 'red' }] }],
    })
    counter.answer({ overallCode: 2 })
    expect((await ask('/limited', { 'x-team': 'red' })).status).toBe(429)
  })

  it('stops if the host of a service cannot be converted', async () => {
    const result = await runImport(`binds:
- port: 3000
  listeners:
  - routes:
    - policies:
        extAuthz: { host: authorizer.internal }
        extProc: { conditional: [{ condition: "true", host: "127.0.0.1:1" }] }
        remoteRateLimit: { backend: limits, domain: a, descriptors: [] }
      backends: [{ host: "127.0.0.1:1" }]
`)
    expect(result).toMatchObject({ code: 3, manifests: {} })
    const protections = outline(result).filter((line) => line.startsWith('protection: '))
    expect(protections).toEqual([
      expect.stringContaining('.extAuthz.host'),
      expect.stringContaining('.extProc'),
      expect.stringContaining('.remoteRateLimit'),
    ])
  })
})
