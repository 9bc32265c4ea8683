import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Server, ServerCredentials, type ServiceDefinition, status } from '@grpc/grpc-js'
import { describe, expect, it } from 'vitest'
import { Collected, hex } from '../support/collected-spans.ts'
import { useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, freePorts } from '../support/gateway.ts'
import type { TestRequest } from '../support/http-client.ts'
import {
  gateway,
  httpRoute,
  policy,
  service,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import type { ReceivedRequest } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

async function startHttpCollector(collected: Collected) {
  let answer = 200
  let refused = 0
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      collected.contentTypes.add(
        `${request.method} ${request.url} ${request.headers['content-type']}`,
      )
      if (answer === 200) collected.take(Buffer.concat(chunks))
      else refused++
      response.statusCode = answer
      response.end()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    refused: () => refused,
    answerWith: (code: number) => {
      answer = code
    },
    close: () => server.closeAllConnections(),
  }
}

async function startGrpcCollector(collected: Collected) {
  const server = new Server()
  const definition: ServiceDefinition = {
    export: {
      path: '/opentelemetry.proto.collector.trace.v1.TraceService/Export',
      requestStream: false,
      responseStream: false,
      requestSerialize: (value: Buffer) => value,
      requestDeserialize: (bytes: Buffer) => bytes,
      responseSerialize: (value: Buffer) => value,
      responseDeserialize: (bytes: Buffer) => bytes,
    },
  }
  let failures = 1
  server.addService(definition, {
    export: (
      call: { request: Buffer },
      done: (error: { code: number } | null, answer?: Buffer) => void,
    ) => {
      // The first call fails in a way that says: later.
      if (failures-- > 0) {
        done({ code: status.UNAVAILABLE })
        return
      }
      collected.take(call.request)
      done(null, Buffer.alloc(0))
    },
  })
  const port = await new Promise<number>((resolve, reject) =>
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    ),
  )
  return { port, close: () => server.forceShutdown() }
}

const sampled = '"sample" in request.headers'

/** Gateway -> its tracing; each has a port of its own. */
const tracings = {
  http: {
    backendRef: toBackend('http-collector'),
    randomSampling: sampled,
    clientSampling: '!("no-sample" in request.headers)',
    attributes: {
      remove: ['http.method', 'endpoint'],
      add: [
        { name: 'team', expression: 'request.headers["x-team"]' },
        { name: 'code', expression: 'response.code' },
        { name: 'list', expression: '[1, 2.5, true, "a", {"k": "v"}]' },
        { name: 'http.host', expression: '"replaced"' },
        { name: 'absent', expression: 'jwt.sub' },
      ],
    },
    resources: [
      { name: 'deployment.environment', expression: '"test"' },
      { name: 'service.name', expression: '"my-" + "gateway"' },
      { name: 'no.request', expression: 'request.path' },
    ],
  },
  grpc: {
    backendRef: { name: 'grpc-collector', port: 80 },
    protocol: 'GRPC',
    randomSampling: '1.0',
    attributes: { add: [{ name: 'span.name', expression: '"named " + request.method' }] },
  },
  half: { backendRef: toBackend('http-collector'), randomSampling: '0.5' },
  defaults: { backendRef: toBackend('http-collector') },
  never: { backendRef: toBackend('http-collector'), randomSampling: 'jwt.x', clientSampling: '0' },
  down: { backendRef: toBackend('down'), randomSampling: 'true' },
  lost: { backendRef: toBackend('absent'), randomSampling: 'true' },
} as const

type Name = keyof typeof tracings

const byHttp = new Collected()
const byGrpc = new Collected()
const httpCollector = useFixture(() => startHttpCollector(byHttp))
const grpcCollector = useFixture(() => startGrpcCollector(byGrpc))
const upstream = useUpstream('main')
const authorizer = useUpstream('authorizer', (_, response) => response.end())
const names = Object.keys(tracings) as Name[]
const ports = await freePorts(...names)
const running = useGateway(async () => {
  const backendRefs = [toBackend('main')]
  return {
    manifests: [
      ...names.map((name) => gateway(ports[name], {}, name)),
      ...names.map((name) =>
        policy(name, `Gateway/${name}`, { frontend: { tracing: tracings[name] } }),
      ),
      staticBackend('main', upstream.port),
      staticBackend('http-collector', httpCollector.port),
      staticBackend('authorizer', authorizer.port, { auth: { key: 'for-the-authorizer' } }),
      httpRoute('asked', {
        hostnames: ['asked.example.com'],
        parentRefs: [{ name: 'http' }],
        rules: [{ backendRefs }],
      }),
      policy('asked', 'HTTPRoute/asked', {
        traffic: { extAuth: { backendRef: toBackend('authorizer'), http: {} } },
      }),
      staticBackend('down', await freePort()),
      staticBackend('nobody', await freePort()),
      ...service('grpc-collector', [grpcCollector.port]),
      httpRoute('pattern', {
        hostnames: ['pattern.example.com'],
        parentRefs: [{ name: 'http' }],
        rules: [
          {
            matches: [{ path: { type: 'RegularExpression', value: '/re/[0-9]+' } }],
            backendRefs,
          },
        ],
      }),
      httpRoute('app', {
        parentRefs: names.map((name) => ({ name })),
        rules: [
          { matches: [{ path: { value: '/api' } }], backendRefs },
          { matches: [{ path: { type: 'Exact', value: '/exact' } }], backendRefs },
          { matches: [{ path: { value: '/nobody' } }], backendRefs: [toBackend('nobody')] },
          { backendRefs },
        ],
      }),
    ],
    args: ['--access-log', 'json'],
  }
})

const send = (name: Name, request: TestRequest) => running.send(ports[name], request)
const received = async (name: Name, request: TestRequest) =>
  JSON.parse((await send(name, request)).body) as ReceivedRequest

const traceId = '0af7651916cd43dd8448eb211c80319c'
const parentId = 'b7ad6b7169203331'
const traceparent = (flags = '01') => `00-${traceId}-${parentId}-${flags}`
let count = 0
/** A path that no other request has. */
const fresh = (path: string) => `${path}/${++count}`

describe('spans over HTTP [Tracing.protocol=HTTP] [Tracing.backendRef]', () => {
  it('[Tracing.randomSampling] start a trace where the expression says so', async () => {
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

  it('[Tracing.attributes] [AttributeAdd.name] have the fields of the log, less what is removed, and what is added', async () => {
    const path = fresh('/exact').slice(0, 6)
    await send('http', { path: `${path}?${++count}`, headers: { sample: '1', 'x-team': 'a' } })
    const { attributes, span } = await byHttp.server(`${path}?${count}`)
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

  it('leave what is not sampled alone', async () => {
    const own = { traceparent: traceparent(), 'no-sample': '1' }
    expect((await received('http', { headers: own })).headers.traceparent).toBe(traceparent())
    expect((await received('http', {})).headers).not.toHaveProperty('traceparent')
    const never = await received('never', { headers: { traceparent: traceparent() } })
    expect(never.headers.traceparent).toBe(traceparent())
    expect((await received('never', {})).headers).not.toHaveProperty('traceparent')
  })

  it('are sampled by default where the caller has a trace, and not where it has none', async () => {
    expect((await received('defaults', {})).headers).not.toHaveProperty('traceparent')
    const { headers } = await received('defaults', { headers: { traceparent: traceparent() } })
    expect(headers.traceparent).not.toBe(traceparent())
  })

  it('[Tracing.randomSampling] of a share are neither all nor none', async () => {
    let sampledCount = 0
    for (let i = 0; i < 100; i++) {
      const { headers } = await received('half', {})
      if (headers.traceparent !== undefined) sampledCount++
    }
    expect(sampledCount).toBeGreaterThan(10)
    expect(sampledCount).toBeLessThan(90)
  })

  it('are not kept where the caller wants none kept, though ids go on', async () => {
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
  ])('take the malformed %s for absent', async (header) => {
    const request = { headers: { sample: '1', traceparent: header } }
    const { headers } = await received('http', request)
    expect(headers.traceparent).not.toContain(traceId)
    expect(headers.traceparent).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/)
  })

  it('name the error of the gateway, and of the attempt', async () => {
    const path = fresh('/nobody')
    expect((await send('http', { path, headers: { sample: '1' } })).status).toBe(503)
    const server = await byHttp.server(path)
    expect(server.span.status).toMatchObject({ code: 2 })
    expect(server.span.status?.message).toContain('upstream call failed')
    expect(byHttp.clients(server)[0]?.span.status).toMatchObject({ code: 2 })
  })

  it('tell of services that policies ask, which see the trace and the credential that their backend wants', async () => {
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

  it('are sent many at a time', async () => {
    const before = byHttp.exports
    const paths = Array.from({ length: 100 }, () => fresh('/api'))
    for (const path of paths) await send('http', { path, headers: { sample: '1' } })
    for (const path of paths) await byHttp.server(path)
    expect(byHttp.exports - before).toBeLessThan(50)
  })

  it('wait for a collector that says later', async () => {
    httpCollector.answerWith(503)
    const path = fresh('/api')
    await send('http', { path, headers: { sample: '1' } })
    await waitFor('a refusal', () => httpCollector.refused() > 0)
    httpCollector.answerWith(200)
    await byHttp.server(path)
  })
})

describe('spans over gRPC [Tracing.protocol=GRPC] [Tracing.protocol]', () => {
  it('arrive, also after a first failure, and bear the name that an attribute gives', async () => {
    const path = fresh('/api')
    await send('grpc', { method: 'POST', path })
    const { span, attributes, resource } = await byGrpc.server(path)
    expect(span.name).toBe('named POST')
    expect(attributes).not.toHaveProperty(['span.name'])
    expect(attributes).toMatchObject({ 'http.method': 'POST' })
    expect(resource).toMatchObject({ 'service.name': 'grpc' })
  })
})

describe('a collector that is not there', () => {
  it('holds nothing up', async () => {
    for (let i = 0; i < 20; i++) expect((await send('down', { path: '/x' })).status).toBe(200)
  })

  it('[Tracing.backendRef] is named in the status, and requests go on', async () => {
    expect((await send('lost', { path: '/x' })).status).toBe(200)
    const status = await running.status('GatewayPolicy', 'lost')
    expect(JSON.stringify(status)).toContain(
      'spec.frontend.tracing.backendRef: GatewayBackend default/absent does not exist',
    )
  })
})

describe('at the end of the process', () => {
  it('what waits is sent', async () => {
    const path = fresh('/api')
    await send('http', { path, headers: { sample: '1' } })
    await running.stop()
    await byHttp.server(path)
  })
})
