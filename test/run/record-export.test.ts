/** Decision records that a gateway sends to an OpenTelemetry collector. */
import { spawnSync } from 'node:child_process'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { describe, expect, it } from 'vitest'
import { CollectedLogs } from '../support/collected-logs.ts'
import { plainValue } from '../support/collected-spans.ts'
import { useFixture, useGateway, useListening, useUpstream } from '../support/fixture.ts'
import { freePorts, launcher } from '../support/gateway.ts'
import { startGrpcCollector } from '../support/grpc-collector.ts'
import { gateway, httpRoute, policy, staticBackend, toBackend } from '../support/manifests.ts'
import { waitFor } from '../support/wait-for.ts'

const ports = await freePorts('basic', 'silent', 'grpc', 'json', 'disabled')
const upstream = useUpstream('main', ({ path }, response) => {
  response.writeHead(path.startsWith('/broken') ? 503 : 200).end()
})

const jsonOf = (data: unknown) =>
  JSON.stringify(data, (_, value) => (typeof value === 'bigint' ? `${value}` : value))

interface JsonRequest {
  readonly resourceLogs: readonly {
    readonly scopeLogs: readonly {
      readonly logRecords: readonly {
        readonly timeUnixNano: string
        readonly attributes: unknown
      }[]
    }[]
  }[]
}

/** A collector over HTTP. */
function useCollector() {
  const logs = new CollectedLogs()
  const state = { answer: 200, body: '', headers: {}, asked: 0, json: [] as JsonRequest[] }
  const server = createServer(async (request, response) => {
    state.asked++
    state.headers = request.headers
    const pieces: Buffer[] = []
    for await (const piece of request) pieces.push(piece as Buffer)
    const body = Buffer.concat(pieces)
    if (state.answer === 0) return
    if (state.answer === 200) {
      if (request.headers['content-type'] === 'application/json') {
        state.json.push(JSON.parse(body.toString()))
      } else logs.take(body, request.url)
    }
    response.writeHead(state.answer, { 'retry-after': '0' }).end(state.body)
  })
  return { logs, state, server: useListening(server) }
}

function useExport(name: keyof typeof ports, env: () => Record<string, string>, fields: string) {
  const port = ports[name]
  const gw = useGateway(() => ({
    manifests: [
      gateway(port),
      staticBackend('main', upstream.port),
      httpRoute('shop', { rules: [{ backendRefs: [toBackend('main')] }] }),
      policy('only', 'HTTPRoute/shop', {
        traffic: {
          authorization: {
            action: 'Deny',
            policy: { matchExpressions: ['request.headers["x-team"] == "sales"'] },
          },
        },
      }),
    ],
    args: ['--record', 'all', '--record-export', fields],
    env: { OTEL_BLRP_SCHEDULE_DELAY: '100', ...env() },
  }))
  const send = async (path: string, headers = {}) =>
    gw.send(port, {
      path,
      headers: { 'x-request-id': path.replace(/\?.*/, '').replaceAll('/', '-'), ...headers },
    })
  const metric = async (name: string) => {
    const url = /^metrics: (\S+)$/m.exec(gw.stderr)?.[1] ?? ''
    const text = await (await fetch(url)).text()
    return Number(new RegExp(`^sluice_${name} (\\d+)$`, 'm').exec(text)?.[1])
  }
  return { gw, send, metric }
}

describe('decision records over HTTP', () => {
  const { logs, state, server } = useCollector()
  const { gw, send, metric } = useExport(
    'basic',
    () => ({
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${server.port}`,
      OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: 'none',
      OTEL_EXPORTER_OTLP_LOGS_HEADERS: 'authorization=Bearer%20key',
      OTEL_SERVICE_NAME: 'edge',
    }),
    'basic',
  )

  it('say what was decided, and leave out what may name persons', async () => {
    await send('/one?token=secret&user=ann', { 'x-team': 'ops' })
    await send('/two', { 'x-team': 'sales' })
    await send('/broken')
    const passed = await logs.with('request.id', '-one')
    expect(passed.resource).toMatchObject({ 'service.name': 'edge' })
    expect(passed.record).toMatchObject({ eventName: 'sluice.decision', severityNumber: 9 })
    expect(passed.attributes).toMatchObject({
      gateway: 'default/edge',
      'http.path': '/one',
      'http.status': 200n,
      backend: 'default/main',
      route: 'default/shop',
    })
    const body = plainValue(passed.record.body) as Record<string, unknown>
    expect(body).toMatchObject({
      request: { path: '/one', method: 'GET' },
      response: { status: 200n },
    })
    expect(jsonOf(body)).not.toMatch(/secret|ann\b|x-team|ops\b/)
    expect(body.request).not.toHaveProperty('source')
    expect(body.request).not.toHaveProperty('headers')
    const refused = await logs.with('request.id', '-two')
    expect(refused.record.severityText).toBe('WARN')
    expect(plainValue(refused.record.body)).toMatchObject({
      steps: [{ step: 'traffic.authorization', verdict: 'answer' }],
    })
    expect((await logs.with('request.id', '-broken')).record.severityText).toBe('ERROR')
    expect(state.headers).toMatchObject({ authorization: 'Bearer key' })
    expect(logs.urls).toEqual(new Set(['/v1/logs']))
    await waitFor('the count', async () => (await metric('decisions_exported_total')) === 3)
  })

  it('are sent again if the collector is busy, and dropped if it refuses them', async () => {
    state.answer = 503
    await send('/again')
    const before = state.asked
    await waitFor('two requests', () => state.asked >= before + 2)
    expect(gw.stderr.match(/decision records are not exported: .*503/g)).toHaveLength(1)
    state.answer = 200
    await logs.with('request.id', '-again')
    state.answer = 400
    await send('/refused')
    await waitFor('the count', async () => (await metric('decisions_export_dropped_total')) === 1)
    // partial_success with one rejected record.
    state.body = '\x0a\x02\x08\x01'
    state.answer = 200
    await send('/rejected')
    await waitFor('the count', async () => (await metric('decisions_export_dropped_total')) === 2)
    state.body = ''
  })
})

describe('decision records for a collector that does not answer', () => {
  const { state, server } = useCollector()
  const { gw, send, metric } = useExport(
    'silent',
    () => ({
      OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: `http://127.0.0.1:${server.port}/own`,
      OTEL_BLRP_MAX_QUEUE_SIZE: '20',
      OTEL_BLRP_MAX_EXPORT_BATCH_SIZE: '10',
      OTEL_BLRP_EXPORT_TIMEOUT: '1000',
    }),
    'full',
  )

  it('are dropped beyond the queue, and requests do not wait', async () => {
    state.answer = 0
    for (let at = 0; at < 100; at++) expect((await send(`/${at}`)).status).toBe(200)
    await waitFor('the drops', async () => (await metric('decisions_export_dropped_total')) >= 60)
    expect(await metric('decisions_lost_total')).toBe(0)
    expect(await metric('decisions_recorded_total')).toBe(100)
    state.answer = 200
    expect(await gw.stop()).toBe(0)
  })
})

describe('decision records over gRPC and as JSON', () => {
  const logs = new CollectedLogs()
  const grpc = useFixture(() =>
    startGrpcCollector('/opentelemetry.proto.collector.logs.v1.LogsService/Export', (bytes) =>
      logs.take(bytes),
    ),
  )
  const { state, server } = useCollector()
  const byGrpc = useExport(
    'grpc',
    () => ({
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${grpc.port}`,
      OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: 'none',
      OTEL_EXPORTER_OTLP_LOGS_PROTOCOL: 'grpc',
    }),
    'full',
  )
  const byJson = useExport(
    'json',
    () => ({
      OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: `http://127.0.0.1:${server.port}/v1/logs`,
      OTEL_EXPORTER_OTLP_LOGS_PROTOCOL: 'http/json',
    }),
    'full',
  )

  it('are whole if the setting asks for it, but have no credentials', async () => {
    const headers = { 'x-team': 'ops', authorization: 'Bearer secret' }
    await byGrpc.send('/one?user=ann&access_token=secret', headers)
    const { record } = await logs.with('http.path', '/one')
    const body = plainValue(record.body) as { readonly request: Record<string, unknown> }
    expect(body.request.query).toContain('user=ann')
    expect(body.request.source).toMatch(/^127\.0\.0\.1:/)
    expect(body.request.headers).toContainEqual(
      expect.objectContaining({ name: 'x-team', value: 'ops' }),
    )
    expect(jsonOf(body)).not.toContain('secret')
  })

  it('are in the JSON form of the protocol', async () => {
    await byJson.send('/one')
    const [request] = await waitFor('a request', () => state.json.length > 0 && state.json)
    const [record] = request?.resourceLogs[0]?.scopeLogs[0]?.logRecords ?? []
    expect(record).toMatchObject({ severityNumber: 9, eventName: 'sluice.decision' })
    expect(record?.timeUnixNano).toMatch(/^\d{19}$/)
    expect(record?.attributes).toContainEqual({ key: 'http.status', value: { intValue: '200' } })
  })
})

describe('OTEL_SDK_DISABLED', () => {
  const { state, server } = useCollector()
  const { gw, send } = useExport(
    'disabled',
    () => ({
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${server.port}`,
      OTEL_SDK_DISABLED: 'true',
    }),
    'full',
  )

  it('sends neither metrics nor records', async () => {
    expect((await send('/one')).status).toBe(200)
    expect(await gw.stop()).toBe(0)
    expect(state.asked).toBe(0)
  })
})

it('refuses an export without a collector', () => {
  const args = ['run', '--ephemeral', '-f', tmpdir(), '--record-export', 'full']
  const { status, stderr } = spawnSync(launcher, args, { encoding: 'utf8' })
  expect(status).toBe(2)
  expect(stderr).toContain('--record-export needs OTEL_EXPORTER_OTLP_LOGS_ENDPOINT')
})
