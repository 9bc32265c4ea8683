import { describe, expect, it } from 'vitest'
import { CollectedLogs } from '../support/collected-logs.ts'
import { collectingServer, hex } from '../support/collected-spans.ts'
import { useFixture, useGateway, useListening, useUpstream } from '../support/fixture.ts'
import { freePort, freePorts } from '../support/gateway.ts'
import { startGrpcCollector } from '../support/grpc-collector.ts'
import {
  gateway,
  httpRoute,
  policy,
  service,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'

const byHttp = new CollectedLogs()
const byGrpc = new CollectedLogs()
const collector = useListening(collectingServer(byHttp))
const grpcCollector = useFixture(() =>
  startGrpcCollector('/opentelemetry.proto.collector.logs.v1.LogsService/Export', (bytes) =>
    byGrpc.take(bytes),
  ),
)
const upstream = useUpstream('main', ({ path }, response) => {
  response.writeHead(path.includes('refused') ? 503 : 200).end()
})

const accessLogs = {
  http: {
    filter: 'request.path != "/unlogged"',
    attributes: { add: [{ name: 'team', expression: 'request.headers["x-team"]' }] },
    otlp: {
      backendRef: toBackend('collector'),
      protocol: 'HTTP',
      attributes: {
        remove: ['http.host', 'span.id'],
        add: [{ name: 'code', expression: 'response.code' }],
      },
    },
  },
  path: {
    attributes: { add: [{ name: 'team', expression: 'request.headers["x-team"]' }] },
    otlp: {
      backendRef: toBackend('collector'),
      protocol: 'HTTP',
      path: '/otlp/v1/logs?from=sluice',
      filter: 'response.code >= 400',
    },
  },
  grpc: { otlp: { backendRef: { name: 'grpc-collector', port: 80 } } },
  down: { otlp: { backendRef: toBackend('down') } },
  lost: { filter: 'true', otlp: { backendRef: toBackend('absent') } },
} as const

type Name = keyof typeof accessLogs
const names = Object.keys(accessLogs) as Name[]
const ports = await freePorts(...names)
const running = useGateway(async () => ({
  manifests: [
    ...names.map((name) => gateway(ports[name], {}, name)),
    ...names.map((name) =>
      policy(name, `Gateway/${name}`, {
        frontend: {
          accessLog: accessLogs[name],
          ...(name === 'http' && {
            tracing: { backendRef: toBackend('down'), randomSampling: 'true' },
          }),
        },
      }),
    ),
    staticBackend('main', upstream.port),
    staticBackend('collector', collector.port),
    staticBackend('down', await freePort()),
    ...service('grpc-collector', [grpcCollector.port]),
    httpRoute('app', {
      parentRefs: names.map((name) => ({ name })),
      rules: [{ backendRefs: [toBackend('main')] }],
    }),
  ],
  args: ['--access-log', 'json'],
}))

const send = (name: Name, path: string, headers = {}) =>
  running.send(ports[name], { path, headers })

describe('entries of the access log over HTTP', () => {
  it('have the fields of the line, with their own changes, the trace and the resource', async () => {
    await send('http', '/one?access_token=secret', { 'x-team': 'blue' })
    const { record, attributes, resource } = await byHttp.with(
      'http.path',
      '/one?access_token=<redacted>',
    )
    expect(attributes).toMatchObject({
      gateway: 'default/http',
      route: 'default/app',
      'http.method': 'GET',
      'http.status': 200n,
      code: 200n,
    })
    for (const absent of ['team', 'http.host', 'trace.id', 'span.id']) {
      expect(attributes).not.toHaveProperty([absent])
    }
    expect(hex(record.traceId)).toMatch(/^[0-9a-f]{32}$/)
    expect(record.spanId).toHaveLength(0)
    expect(record).toMatchObject({
      severityNumber: 9,
      severityText: 'INFO',
      eventName: 'sluice.request',
    })
    expect(Math.abs(Number(record.timeUnixNano / 1_000_000n) - Date.now())).toBeLessThan(600_000)
    expect(resource).toMatchObject({ 'service.name': 'http', 'service.namespace': 'default' })
    expect(byHttp.urls).toContain('/v1/logs')
  })

  it('follow the filter and the attributes of the log unless they have their own', async () => {
    await send('http', '/unlogged')
    await send('path', '/fine', { 'x-team': 'green' })
    await send('path', '/refused', { 'x-team': 'green' })
    await send('http', '/last')
    const { attributes } = await byHttp.with('http.path', '/refused')
    expect(attributes).toMatchObject({ team: 'green', 'http.status': 503n })
    await byHttp.with('http.path', '/last')
    const paths = byHttp.records.map((one) => one.attributes['http.path'])
    expect(paths).not.toContain('/unlogged')
    expect(paths).not.toContain('/fine')
    expect(byHttp.urls).toContain('/otlp/v1/logs?from=sluice')
  })
})

describe('entries of the access log over gRPC', () => {
  it('arrive, also after a first failure, and are counted', async () => {
    await send('grpc', '/by-grpc')
    const { attributes, resource } = await byGrpc.with('http.path', '/by-grpc')
    expect(attributes).toMatchObject({ 'http.status': 200n, 'http.version': 'HTTP/1.1' })
    expect(resource).toMatchObject({ 'service.name': 'grpc' })
    const stats = /metrics: (http:\S+)/.exec(running.stderr)?.[1] ?? ''
    await waitFor('the count', async () => {
      const text = await (await fetch(stats)).text()
      return /sluice_access_log_records_exported_total [1-9]/.test(text)
    })
  })
})

describe('a collector of entries that cannot be reached', () => {
  it('delays no request, and does not take the line from the log', async () => {
    for (let n = 0; n < 10; n++) expect((await send('down', `/down/${n}`)).status).toBe(200)
    await waitFor('the line', () => running.stdout.includes('/down/9'))
  })

  it('is reported in the status; the log keeps its other settings', async () => {
    expect((await send('lost', '/lost')).status).toBe(200)
    await waitFor('the line', () => running.stdout.includes('/lost'))
    expect(JSON.stringify(await running.status('GatewayPolicy', 'lost'))).toContain(
      'spec.frontend.accessLog.otlp.backendRef: GatewayBackend default/absent does not exist',
    )
  })
})

describe('a process that stops', () => {
  it('sends the entries that wait', async () => {
    await send('http', '/before-the-end')
    await running.stop()
    await byHttp.with('http.path', '/before-the-end')
  })
})
