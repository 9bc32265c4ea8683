import { describe, expect, it } from 'vitest'
import { hex } from '../support/collected-spans.ts'
import type { TestRequest } from '../support/http-client.ts'
import type { ReceivedRequest } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'
import {
  authorizer,
  byHttp,
  fresh,
  httpCollector,
  type Name,
  running,
  send,
  upstream,
} from './tracing-rig.ts'

const received = async (name: Name, request: TestRequest) =>
  JSON.parse((await send(name, request)).body) as ReceivedRequest

const traceId = '0af7651916cd43dd8448eb211c80319c'
const parentId = 'b7ad6b7169203331'
const traceparent = (flags = '01') => `00-${traceId}-${parentId}-${flags}`

describe('spans over HTTP [Tracing.protocol=HTTP] [Tracing.backendRef]', () => {
  it('[Tracing.randomSampling] start a trace if the sampling expression is true', async () => {
    const path = fresh('/api')
    const { headers } = await received('http', { path, headers: { sample: '1', 'x-team': 'a' } })
    const [, trace, caller] = /^00-([0-9a-f]{32})-([0-9a-f]{16})-01$/.exec(
      String(headers.traceparent),
    ) ?? ['', '', '']
    const server = await byHttp.server(path)
    expect([hex(server.span.traceId), hex(server.span.parentSpanId)]).toEqual([trace, ''])
    expect(server.span).toMatchObject({ name: 'GET /api/*', kind: 2, flags: 1 })
    expect(server.span.endTimeUnixNano).toBeGreaterThanOrEqual(server.span.startTimeUnixNano)
    const now = BigInt(Date.now()) * 1_000_000n
    expect(now - server.span.startTimeUnixNano).toBeLessThan(600_000_000_000n)
    const [client, ...rest] = byHttp.clients(server)
    expect(rest).toEqual([])
    expect([hex(client?.span.spanId ?? new Uint8Array()), client?.span.name]).toEqual([
      caller,
      `GET 127.0.0.1:${upstream.port}`,
    ])
    expect(client?.attributes).toMatchObject({
      'sluice.outbound.kind': 'Primary',
      'http.status': 200n,
    })
    expect([...byHttp.contentTypes]).toEqual(['POST /v1/traces application/x-protobuf'])
  })

  it('[Tracing.attributes] [AttributeAdd.name] have the fields of the access log, without removed and with added attributes', async () => {
    const path = '/exact'
    const query = fresh('?')
    await send('http', { path: `${path}${query}`, headers: { sample: '1', 'x-team': 'a' } })
    const { attributes, span } = await byHttp.server(`${path}${query}`)
    expect(span.name).toBe('GET /exact')
    expect(attributes).toMatchObject({
      gateway: 'default/http',
      listener: 'http',
      route: 'default/app',
      'http.status': 200n,
      'http.version': 'HTTP/1.1',
      'url.scheme': 'http',
      'network.protocol.version': '1.1',
      team: 'a',
      code: 200n,
      list: [1n, 2.5, true, 'a', { k: 'v' }],
      'http.host': 'replaced',
    })
    for (const name of ['http.method', 'endpoint', 'absent', 'error']) {
      expect(attributes).not.toHaveProperty([name])
    }
  })

  it('[Tracing.resources] [ResourceAdd.name] [ResourceAdd.expression] describe the proxy', async () => {
    const path = fresh('/re')
    await send('http', { path, host: 'pattern.example.com', headers: { sample: '1' } })
    const { resource, span } = await byHttp.server(path)
    expect(span.name).toBe('GET /re/[0-9]+')
    expect(resource).toMatchObject({
      'service.name': 'my-gateway',
      'service.namespace': 'default',
      'deployment.environment': 'test',
    })
    expect(resource).toHaveProperty(['service.version'])
    expect(resource).toHaveProperty(['host.name'])
    expect(resource).not.toHaveProperty(['no.request'])
  })

  it('[Tracing.clientSampling] continue the trace of the caller', async () => {
    const path = fresh('/api')
    const { headers } = await received('http', { path, headers: { traceparent: traceparent() } })
    expect(headers.traceparent).toMatch(new RegExp(`^00-${traceId}-[0-9a-f]{16}-01$`))
    expect(headers.traceparent).not.toContain(parentId)
    const { span } = await byHttp.server(path)
    expect([hex(span.traceId), hex(span.parentSpanId)]).toEqual([traceId, parentId])
  })

  it('are not made for requests that are not sampled', async () => {
    const own = { traceparent: traceparent(), 'no-sample': '1' }
    expect((await received('http', { headers: own })).headers.traceparent).toBe(traceparent())
    expect((await received('http', {})).headers).not.toHaveProperty('traceparent')
    const never = await received('never', { headers: { traceparent: traceparent() } })
    expect(never.headers.traceparent).toBe(traceparent())
    expect((await received('never', {})).headers).not.toHaveProperty('traceparent')
  })

  it('are sampled by default only if the caller has a trace', async () => {
    expect((await received('defaults', {})).headers).not.toHaveProperty('traceparent')
    const { headers } = await received('defaults', { headers: { traceparent: traceparent() } })
    expect(headers.traceparent).not.toBe(traceparent())
  })

  it('[Tracing.randomSampling] are made for a share of requests', async () => {
    let sampledCount = 0
    for (let i = 0; i < 100; i++) {
      const { headers } = await received('half', {})
      if (headers.traceparent !== undefined) sampledCount++
    }
    expect(sampledCount).toBeGreaterThan(10)
    expect(sampledCount).toBeLessThan(90)
  })

  it("are not exported if the caller's trace is not sampled, but its ids are forwarded", async () => {
    const path = fresh('/api')
    const request = { path, headers: { traceparent: traceparent('00') } }
    const { headers } = await received('http', request)
    expect(headers.traceparent).toMatch(new RegExp(`^00-${traceId}-[0-9a-f]{16}-00$`))
    const later = fresh('/api')
    await send('http', { path: later, headers: { sample: '1' } })
    await byHttp.server(later)
    expect(byHttp.spans.some(({ attributes }) => attributes['http.path'] === path)).toBe(false)
  })

  it.each([
    'ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    '00-00000000000000000000000000000000-b7ad6b7169203331-01',
    '00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01',
    '00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01',
    '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more',
    'nonsense',
  ])('ignore the malformed %s', async (header) => {
    const request = { headers: { sample: '1', traceparent: header } }
    const { headers } = await received('http', request)
    expect(headers.traceparent).not.toContain(traceId)
    expect(headers.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/)
  })

  it('name the error of the gateway, and of the attempt', async () => {
    const path = fresh('/unreachable')
    expect((await send('http', { path, headers: { sample: '1' } })).status).toBe(503)
    const server = await byHttp.server(path)
    expect(server.span.status).toMatchObject({ code: 2 })
    expect(server.span.status?.message).toContain('upstream call failed')
    expect(byHttp.clients(server)[0]?.span.status).toMatchObject({ code: 2 })
  })

  it("include calls to policy services, which get the trace and their backend's credential", async () => {
    const path = fresh('/asked')
    await send('http', { path, host: 'asked.example.com', headers: { sample: '1' } })
    const server = await byHttp.server(path)
    const client = byHttp
      .clients(server)
      .find(({ attributes }) => attributes['sluice.outbound.kind'] === 'Policy')
    expect(client?.span.name).toBe(`GET 127.0.0.1:${authorizer.port}`)
    expect(client?.attributes).toMatchObject({
      'sluice.outbound.subtype': 'ExtAuthz',
      'http.path': path,
      'http.status': 200n,
    })
    const { headers } = authorizer.received.at(-1) ?? {}
    expect(headers?.authorization).toBe('Bearer for-the-authorizer')
    expect(headers?.traceparent).toContain(hex(client?.span.spanId ?? new Uint8Array()))
  })

  it('put their ids into the access log', async () => {
    const path = fresh('/api')
    await send('http', { path, headers: { sample: '1' } })
    const { span } = await byHttp.server(path)
    const line = await waitFor('the line', () =>
      running.stdout.split('\n').find((text) => text.includes(`"http.path":"${path}"`)),
    )
    expect(JSON.parse(line)).toMatchObject({
      'trace.id': hex(span.traceId),
      'span.id': hex(span.spanId),
    })
  })

  it('are sent in batches', async () => {
    const before = byHttp.exports
    const paths = Array.from({ length: 100 }, () => fresh('/api'))
    for (const path of paths) await send('http', { path, headers: { sample: '1' } })
    for (const path of paths) await byHttp.server(path)
    expect(byHttp.exports - before).toBeLessThan(50)
  })

  it('are sent again if the collector asks to retry later', async () => {
    httpCollector.answerWith(503)
    const path = fresh('/api')
    await send('http', { path, headers: { sample: '1' } })
    await waitFor('a refusal', () => httpCollector.refused() > 0)
    httpCollector.answerWith(200)
    await byHttp.server(path)
  })

  it('are sent only if the filter keeps the request, to the path of the policy', async () => {
    const [left, kept] = [fresh('/unreachable'), fresh('/api')]
    expect((await send('kept', { path: left })).status).toBe(503)
    await send('kept', { path: kept })
    await byHttp.server(kept)
    expect(byHttp.spans.some(({ attributes }) => attributes['http.path'] === left)).toBe(false)
    expect([...byHttp.contentTypes]).toContain('POST /otlp/traces application/x-protobuf')
  })
})
