/** Metrics that gateways send to an OpenTelemetry collector. */
import { spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { afterAll, describe, expect, it } from 'vitest'
import { useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, launcher } from '../support/gateway.ts'
import { gateway, httpRoute, policy, staticBackend, toBackend } from '../support/manifests.ts'
import { MetricCollector, type Point } from '../support/otlp-metrics.ts'
import { waitFor } from '../support/wait-for.ts'

const upstream = useUpstream()
const requests = 'sluice_requests_total'
const durations = 'sluice_request_duration_seconds'
const ofShop = ({ labels }: Point) => labels.route === 'default/shop'
const countOf = (points: readonly Point[]) =>
  points.filter(ofShop).reduce((sum, { integer = 0 }) => sum + integer, 0)

/** Traces requests with the field `sample`. */
const tracing = policy('tracing', 'Gateway/edge', {
  frontend: {
    tracing: { backendRef: toBackend('main'), randomSampling: '"sample" in request.headers' },
  },
})

async function useExport(env: Readonly<Record<string, string>>, isGrpc = false) {
  const port = await freePort()
  const collector = useFixture(() => MetricCollector.start())
  const gw = useGateway(() => ({
    manifests: [
      gateway(port),
      staticBackend('main', upstream.port),
      httpRoute('shop', { rules: [{ backendRefs: [toBackend('main')] }] }),
      tracing,
    ],
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: isGrpc ? collector.grpcUrl : collector.url,
      OTEL_METRIC_EXPORT_INTERVAL: '100',
      ...env,
    },
  }))
  const scrape = async () => {
    const url = /^metrics: (\S+)$/m.exec(gw.stderr)?.[1] ?? ''
    return (await fetch(url)).text()
  }
  const send = (headers = {}) => gw.send(port, { path: '/', headers })
  return { port, collector, gw, scrape, send }
}

describe('cumulative metrics', async () => {
  const { collector, scrape, send } = await useExport({
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20key',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=test',
    OTEL_SERVICE_NAME: 'edge',
  })
  afterAll(() => collector.close())

  it('are those of Prometheus, in the form that the protocol demands', async () => {
    for (let at = 0; at < 3; at++) expect((await send()).status).toBe(200)
    await waitFor('the requests', () => countOf(collector.last(requests)) === 3)
    const text = await scrape()
    const names = [...text.matchAll(/^# TYPE (\S+) (\w+)$/gm)].map(([, name, type]) => [name, type])
    const last = collector.requests.at(-1)
    const types = { counter: 'sum', gauge: 'gauge', histogram: 'histogram' } as Record<
      string,
      string
    >
    expect([...(last ?? [])].map(([name, { type }]) => [name, type]).sort()).toEqual(
      names.map(([name = '', type = '']) => [name, types[type]]).sort(),
    )
    expect(last?.get(requests)).toMatchObject({ type: 'sum', temporality: 2 })
    expect(last?.get(durations)).toMatchObject({ type: 'histogram', temporality: 2, unit: 's' })
    const [histogram] = collector.last(durations).filter(ofShop)
    expect(histogram?.count).toBe(3)
    expect(histogram?.buckets?.reduce((sum, count) => sum + count, 0)).toBe(3)
    expect(histogram?.buckets).toHaveLength((histogram?.bounds?.length ?? 0) + 1)
    expect(histogram?.sum).toBeGreaterThan(0)
    expect(histogram?.start).toBeLessThan(histogram?.time ?? 0)
    expect(collector.resource).toMatchObject({
      'service.name': 'edge',
      'deployment.environment': 'test',
    })
    expect(collector.headers.at(-1)).toMatchObject({
      authorization: 'Bearer key',
      'content-type': 'application/x-protobuf',
    })
    expect(collector.problems).toEqual([])
  })
})

describe('deltas', async () => {
  const { gw, collector, scrape, send } = await useExport({
    OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: 'delta',
    OTEL_METRIC_EXPORT_TIMEOUT: '1000',
  })
  afterAll(() => collector.close())
  const total = () =>
    collector.requests.reduce((sum, one) => sum + countOf(one.get(requests)?.points ?? []), 0)
  const sendSome = async (count: number) => {
    for (let at = 0; at < count; at++) expect((await send()).status).toBe(200)
  }
  /** Waits until the collector has been asked again. */
  const asked = async (times: number) => {
    const before = collector.asked
    await waitFor('requests to the collector', () => collector.asked >= before + times)
  }

  it('add up to every request once, whether the collector is busy, silent or works', async () => {
    await sendSome(2)
    await waitFor('the requests', () => total() === 2)
    for (const behavior of ['busy', 'stall'] as const) {
      collector.behavior = behavior
      await sendSome(3)
      await asked(2)
      // Traffic does not wait for the collector.
      await sendSome(1)
    }
    collector.behavior = 'take'
    await waitFor('the requests', () => total() === 10)
    const found = collector.requests.flatMap((one) => one.get(requests) ?? [])
    expect(new Set(found.map(({ temporality }) => temporality))).toEqual(new Set([1]))
    expect(gw.stderr.match(/metrics are not exported: .*503/g)).toHaveLength(1)
  })

  it('that a collector refuses are counted, and those of the last moment are sent at the end', async () => {
    collector.behavior = 'refuse'
    await asked(2)
    const dropped = /^sluice_metric_export_points_dropped_total [1-9]/m
    expect(await scrape()).toMatch(dropped)
    collector.behavior = 'take'
    await sendSome(1)
    await waitFor('the request', () => total() === 11)
    await sendSome(4)
    expect(await gw.stop()).toBe(0)
    expect(total()).toBe(15)
    expect(collector.problems).toEqual([])
  })
})

describe.each([
  ['http/json', false, 'application/json'],
  ['grpc', true, undefined],
] as const)('metrics over %s', async (protocol, isGrpc, type) => {
  const env = {
    OTEL_EXPORTER_OTLP_PROTOCOL: protocol,
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20of-traces',
    OTEL_EXPORTER_OTLP_METRICS_HEADERS: 'authorization=Bearer%20key',
    OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: 'delta',
  }
  const { gw, collector, scrape, send } = await useExport(env, isGrpc)
  afterAll(() => collector.close())
  const total = () =>
    collector.requests.reduce((sum, one) => sum + countOf(one.get(requests)?.points ?? []), 0)

  it('have every request once, also if the collector is busy, and count what it refuses', async () => {
    expect((await send({ traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` })).status).toBe(
      200,
    )
    await waitFor('the request', () => total() === 1)
    expect(collector.last(durations).filter(ofShop)[0]).toMatchObject({
      count: 1,
      exemplars: [{ traceId: 'a'.repeat(32), spanId: expect.stringMatching(/^[0-9a-f]{16}$/) }],
    })
    expect(collector.resource['service.name']).toBe('sluice')
    expect(collector.headers.at(-1)).toMatchObject({ authorization: 'Bearer key' })
    if (type !== undefined) expect(collector.headers.at(-1)?.['content-type']).toBe(type)
    collector.behavior = 'busy'
    expect((await send()).status).toBe(200)
    await waitFor('the warning', () => gw.stderr.includes('metrics are not exported: '))
    collector.behavior = 'take'
    await waitFor('the request', () => total() === 2)
    collector.behavior = 'refuse'
    expect((await send()).status).toBe(200)
    // The second export after the request has it for certain.
    const before = collector.asked
    await waitFor('the exports', () => collector.asked >= before + 2)
    await waitFor('the count', async () =>
      /^sluice_metric_export_points_dropped_total [1-9]/m.test(await scrape()),
    )
    collector.behavior = 'take'
    expect((await send()).status).toBe(200)
    expect(await gw.stop()).toBe(0)
    expect(total()).toBe(3)
    expect(collector.problems).toEqual([])
  })
})

describe.each(['delta', 'cumulative'])('exponential histograms, %s', async (temporality) => {
  const { collector, send } = await useExport({
    OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION: 'base2_exponential_bucket_histogram',
    OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: temporality,
  })
  afterAll(() => collector.close())
  const received = () => collector.requests.flatMap((one) => one.get(durations)?.points ?? [])
  const total = () => {
    const points = temporality === 'delta' ? received() : collector.last(durations)
    return points.filter(ofShop).reduce((sum, { count = 0 }) => sum + count, 0)
  }

  it('count every request, and have the exemplar of a sampled one once', async () => {
    for (let at = 0; at < 5; at++) await send()
    await waitFor('the requests', () => total() === 5)
    await send({ traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` })
    await send()
    await waitFor('the requests', () => total() === 7)
    for (const { count, positive, zeros = 0, scale, sum } of received().filter(ofShop)) {
      expect((positive?.counts ?? []).reduce((all, one) => all + one, zeros)).toBe(count)
      expect(scale).toBe(3)
      // The sum is within the bounds of the buckets.
      const bounds = (shift: number) =>
        (positive?.counts ?? []).reduce(
          (all, one, at) => all + one * 2 ** (((positive?.offset ?? 0) + at + shift) / 8),
          0,
        )
      expect(sum).toBeGreaterThanOrEqual(bounds(0))
      expect(sum).toBeLessThanOrEqual(bounds(1))
    }
    const before = collector.asked
    await waitFor('more exports', () => collector.asked > before + 2)
    expect(received().flatMap(({ exemplars = [] }) => exemplars)).toEqual([
      {
        time: expect.any(Number),
        double: expect.any(Number),
        traceId: 'a'.repeat(32),
        spanId: expect.stringMatching(/^[0-9a-f]{16}$/),
      },
    ])
    expect(collector.problems).toEqual([])
  })
})

it('names an unusable setting before the gateway starts', async () => {
  const env = { ...process.env, OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4318' }
  const args = ['run', '--ephemeral', '-f', tmpdir()]
  const { status, stderr } = spawnSync(launcher, args, { env, encoding: 'utf8' })
  expect(status).toBe(2)
  expect(stderr).toContain('OTEL_EXPORTER_OTLP_ENDPOINT')
  expect(stderr).toContain('is not an `http://` or `https://` URL')
})
