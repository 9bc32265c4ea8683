import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import type { TestResponse } from '../support/http-client.ts'
import {
  gateway,
  hostOf,
  httpRoute,
  manifest,
  policy,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'

type Fields = Record<string, unknown>

const limited = (name: string, local: readonly Fields[], more: Fields = {}) => [
  httpRoute(name, {
    hostnames: [hostOf(name)],
    rules: [{ backendRefs: [toBackend('main')] }],
  }),
  policy(name, `HTTPRoute/${name}`, { traffic: { rateLimit: { local }, ...more } }),
]

const manifests = (listener: number) =>
  manifest(
    gateway(listener),
    staticBackend('main', upstream.port),
    ...limited('burst', [{ requests: 10, unit: 'Minutes', burst: 5 }]),
    ...limited('hours', [{ requests: 2, unit: 'Hours' }]),
    ...limited('seconds', [{ requests: 1, unit: 'Seconds' }]),
    ...limited('several', [
      { requests: 100, unit: 'Hours' },
      { requests: 3, unit: 'Hours' },
    ]),
    ...limited('tokens', [{ tokens: 1, unit: 'Hours' }]),
    ...limited('shared', [{ requests: 20, unit: 'Hours' }]),
    ...limited('asked', [{ requests: 1, unit: 'Hours' }], {
      cors: { allowOrigins: ['https://app.example.com'] },
      directResponse: { status: 200, body: 'direct' },
    }),
    httpRoute('two', {
      hostnames: [hostOf('two-a'), hostOf('two-b')],
      rules: [{ backendRefs: [toBackend('main')] }],
    }),
    httpRoute('three', {
      hostnames: [hostOf('three')],
      rules: [{ backendRefs: [toBackend('main')] }],
    }),
    {
      ...policy('both', 'HTTPRoute/two', {}),
      spec: {
        targetRefs: ['two', 'three'].map((name) => ({
          group: 'gateway.networking.k8s.io',
          kind: 'HTTPRoute',
          name,
        })),
        traffic: { rateLimit: { local: [{ requests: 1, unit: 'Hours' }] } },
      },
    },
  )

const upstream = useUpstream('upstream', (_, response) => {
  response.setHeader('x-ratelimit-limit', '999')
  response.end('hello')
})
const useLimits = (listener: number) =>
  useGateway(() => ({
    manifests: {
      'all.yaml': manifests(listener),
      'kept.yaml': manifest(...limited('kept', [{ requests: 4, unit: 'Hours' }])),
    },
    args: ['--workers', '2'],
  }))
const port = await freePort()
const otherPort = await freePort()
const running = useLimits(port)
const other = useLimits(otherPort)

const ask = (name: string, headers: Record<string, string> = {}): Promise<TestResponse> =>
  running.send(port, { host: hostOf(name), headers })

/** Statuses of so many requests, each on a connection of its own, so that all workers get some. */
const statuses = (name: string, count: number) =>
  Promise.all(Array.from({ length: count }, async () => (await ask(name)).status))

const admitted = async (name: string, count: number) =>
  (await statuses(name, count)).filter((status) => status === 200).length

function figures({ headers }: TestResponse): (number | undefined)[] {
  return ['limit', 'remaining', 'reset'].map((name) => {
    const value = headers[`x-ratelimit-${name}`]
    return value === undefined ? undefined : Number(value)
  })
}

describe('rateLimit.local [Traffic.rateLimit] [RateLimits.local]', () => {
  it('[LocalRateLimit.requests] [LocalRateLimit.burst] [error.3] admits rate and burst, then answers 429', async () => {
    expect(await admitted('burst', 15)).toBe(15)
    const before = upstream.received.length
    const refused = await ask('burst')
    expect([refused.status, refused.body]).toEqual([429, 'rate limit exceeded'])
    const [limit, remaining, reset] = figures(refused)
    expect([limit, remaining]).toEqual([15, 0])
    expect(reset).toBeGreaterThan(80)
    expect(reset).toBeLessThanOrEqual(90)
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    expect(Number(refused.headers['retry-after'])).toBeLessThanOrEqual(6)
    expect(upstream.received).toHaveLength(before)
  })

  it('[LocalRateLimit.unit] counts by the hour', async () => {
    expect(await admitted('hours', 6)).toBe(2)
    const [, , reset] = figures(await ask('hours'))
    expect(reset).toBeGreaterThan(3500)
  })

  it('[LocalRateLimit.unit] counts by the second, and admits again after a refill', async () => {
    await statuses('seconds', 3)
    const request = { host: hostOf('seconds') }
    await running.sendUntil(port, request, ({ status }) => status === 429)
    await running.sendUntil(port, request, ({ status }) => status === 200)
  })

  it('sets the rate limit headers on every response, replacing those of the upstream', async () => {
    const answer = await ask('shared')
    expect([answer.status, ...figures(answer).slice(0, 2)]).toEqual([200, 20, 19])
  })

  it('is exact over all workers', async () => {
    // One was taken above.
    expect(await admitted('shared', 60)).toBe(19)
  })

  it('[RateLimits.local.perInstance] is counted by each instance separately', async () => {
    const asked = Array.from({ length: 6 }, () => other.send(otherPort, { host: hostOf('hours') }))
    const passed = (await Promise.all(asked)).filter(({ status }) => status === 200)
    expect(passed).toHaveLength(2)
  })

  it('requires every limit to admit, and reports the one with the least remaining', async () => {
    expect(figures(await ask('several')).slice(0, 2)).toEqual([3, 2])
    expect(await admitted('several', 5)).toBe(2)
  })

  it('does not count requests against a limit of tokens', async () => {
    expect(await admitted('tokens', 5)).toBe(5)
    expect(figures(await ask('tokens'))[0]).toBe(999)
  })

  it('keeps one count for each target of a policy', async () => {
    expect([(await ask('two-a')).status, (await ask('two-b')).status]).toEqual([200, 429])
    expect((await ask('three')).status).toBe(200)
  })

  it('does not count preflights, and refuses with CORS headers', async () => {
    const origin = 'https://app.example.com'
    const preflight = () =>
      running.send(port, {
        method: 'OPTIONS',
        host: hostOf('asked'),
        headers: { origin, 'access-control-request-method': 'GET' },
      })
    expect((await preflight()).status).toBe(200)
    expect([(await ask('asked')).body, (await ask('asked')).status]).toEqual(['direct', 429])
    expect((await preflight()).status).toBe(200)
    const refused = await ask('asked', { origin })
    expect([refused.status, refused.headers['access-control-allow-origin']]).toEqual([429, origin])
  })

  it('answers gRPC clients with a gRPC status', async () => {
    const { status, headers } = await ask('asked', { 'content-type': 'application/grpc' })
    expect([status, headers['grpc-status']]).toEqual([200, '14'])
  })

  it('keeps its count across unrelated changes and added limits', async () => {
    expect(await admitted('kept', 3)).toBe(3)
    const hourly = (requests: number) => ({ requests, unit: 'Hours' })
    running.write(
      'kept.yaml',
      manifest(
        ...limited('kept', [hourly(50), hourly(4)]),
        ...limited('marker', [hourly(1_000)], { directResponse: { status: 204 } }),
      ),
    )
    await running.sendUntil(port, { host: hostOf('marker') }, ({ status }) => status === 204)
    expect(await admitted('kept', 3)).toBe(1)
  })
})
