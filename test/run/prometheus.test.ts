/** What a real Prometheus reads from a gateway, with and without native histograms. */
import { expect, it } from 'vitest'
import { useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { gateway, httpRoute, policy, staticBackend, toBackend } from '../support/manifests.ts'
import { describeWithParts } from '../support/parts.ts'
import { type Prometheus, startPrometheus } from '../support/prometheus.ts'
import { waitFor } from '../support/wait-for.ts'

describeWithParts(['prometheus'], 'Prometheus', async () => {
  const port = await freePort()
  const upstream = useUpstream('main')
  const running = useGateway(async () => ({
    manifests: [
      gateway(port),
      policy('tracing', 'Gateway/edge', {
        frontend: {
          tracing: {
            backendRef: toBackend('down'),
            randomSampling: '"sample" in request.headers',
            filter: 'request.path != "/unwanted"',
          },
        },
      }),
      staticBackend('main', upstream.port),
      staticBackend('down', await freePort()),
      httpRoute('app', { rules: [{ backendRefs: [toBackend('main')] }] }),
    ],
    args: ['--workers', '2'],
  }))
  const start = (features: string) => async () =>
    startPrometheus(/metrics: (http:\S+)/.exec(running.stderr)?.[1] ?? '', features)
  const plain = useFixture(start('exemplar-storage'), (server) => server.remove())
  const native = useFixture(start('exemplar-storage,native-histograms'), (server) =>
    server.remove(),
  )

  const selector = '{gateway="default/edge",method="GET"}'
  const number = async (server: Prometheus, expression: string) =>
    Number((await server.query(expression))[0]?.value?.[1])

  async function send(count: number, headers: Record<string, string>, path = '/') {
    for (let at = 0; at < count; at++) await running.send(port, { path, headers })
  }

  it('reads exemplars of sampled requests only, by the OpenMetrics format', async () => {
    await send(20, {})
    await send(3, { traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-00` })
    await send(2, { sample: '1' }, '/unwanted')
    const buckets = `sluice_request_duration_seconds_bucket${selector}`
    const infinite = `sum(sluice_request_duration_seconds_bucket{le="+Inf",method="GET"})`
    await waitFor('the requests', async () => (await number(plain, infinite)) === 25)
    expect(await plain.exemplars(buckets)).toEqual([])
    await send(1, { traceparent: `00-${'c'.repeat(32)}-${'d'.repeat(16)}-01` })
    const found = await waitFor('an exemplar', async () => {
      const [series] = await plain.exemplars(buckets)
      return series?.exemplars[0]
    })
    expect(found.labels).toEqual({
      trace_id: 'c'.repeat(32),
      span_id: expect.stringMatching(/^[0-9a-f]{16}$/),
    })
    expect(found.labels.span_id).not.toBe('d'.repeat(16))
    expect(Number(found.value)).toBeGreaterThan(0)
    expect(await plain.lastError()).toBe('')
  }, 60_000)

  it('reads native histograms, which agree with the classic ones', async () => {
    const histogram = `sluice_request_duration_seconds${selector}`
    const count = `sum(histogram_count(${histogram}))`
    await send(4, {})
    const total = () => number(plain, `sum(sluice_request_duration_seconds_count${selector})`)
    await waitFor('the requests', async () => (await total()) === 30)
    await waitFor('the native requests', async () => (await number(native, count)) === 30)
    const sum = await number(native, `sum(histogram_sum(${histogram}))`)
    expect(sum).toBeCloseTo(await number(plain, `sum(sluice_request_duration_seconds_sum)`), 6)
    const share = await number(native, `sum(histogram_fraction(0, 100, ${histogram}))`)
    expect(share).toBeCloseTo(1, 6)
    const median = await number(native, `histogram_quantile(0.5, sum(${histogram}))`)
    expect(median).toBeGreaterThan(0)
    expect(median).toBeLessThan(sum)
    // Half of the requests are below the median, also in the classic buckets around it.
    const below = await number(plain, `sum(sluice_request_duration_seconds_bucket{le="80.0"})`)
    expect(below).toBe(30)
    expect(await native.lastError()).toBe('')
    // Counters and gauges arrive too.
    expect(await number(native, `sum(sluice_requests_total${selector})`)).toBe(30)
    expect(await number(native, 'sluice_workers')).toBe(2)
  }, 60_000)
})
