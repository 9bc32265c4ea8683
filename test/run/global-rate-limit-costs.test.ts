import { expect, it } from 'vitest'
import { useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import {
  gateway,
  hostOf,
  httpRoute,
  policy,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { startRateLimitServer } from '../support/rate-limit-server.ts'

const entry = (name: string, expression: string) => ({ name, expression })
const team = entry('team', 'request.headers["x-team"]')
const limited = (name: string, global: object) => [
  httpRoute(name, { hostnames: [hostOf(name)], rules: [{ backendRefs: [toBackend('main')] }] }),
  policy(name, `HTTPRoute/${name}`, {
    traffic: {
      rateLimit: { global: { domain: 'shop', backendRef: toBackend('limits'), ...global } },
    },
  }),
]
const upstream = useUpstream()
const server = useFixture(startRateLimitServer)
const port = await freePort()
const down = await freePort()
const running = useGateway(() => ({
  manifests: [
    gateway(port),
    staticBackend('main', upstream.port),
    staticBackend('limits', server.port),
    staticBackend('down', down),
    ...limited('costly', {
      descriptors: [
        {
          entries: [team],
          cost: 'int(request.headers["x-cost"])',
          limitOverride: '{"requestsPerUnit": 7 + 1, "unit": "Minutes"}',
        },
        { entries: [entry('fixed', '"yes"')], limitOverride: 'jwt.limit' },
      ],
    }),
    ...limited('open', {
      backendRef: toBackend('down'),
      failureMode: 'FailOpen',
      descriptors: [{ entries: [team] }, { entries: [team], unit: 'Tokens' }],
    }),
    ...limited('open-failing', {
      failureMode: 'FailOpen',
      descriptors: [{ entries: [entry('missing', 'json("{").a')] }],
    }),
    ...limited('bad-cost', { descriptors: [{ entries: [team], unit: 'Tokens', cost: '2' }] }),
  ],
}))
const ask = (name: string, headers: Record<string, string> = {}) =>
  running.send(port, { host: hostOf(name), headers })

it('[RateLimitDescriptor.cost] [RateLimitDescriptor.limitOverride] sends the cost and the limit that expressions give', async () => {
  expect((await ask('costly', { 'x-team': 'red', 'x-cost': '5' })).status).toBe(200)
  expect(server.asked.at(-1)).toMatchObject({
    hitsAddend: 5,
    descriptors: [{ hitsAddend: 5n, limit: { requestsPerUnit: 8, unit: 2 } }, { hitsAddend: 1n }],
  })
  expect(server.asked.at(-1)?.descriptors[1]?.limit).toBeUndefined()
  for (const cost of ['-1', 'many']) {
    const headers = { 'x-team': 'red', 'x-cost': cost }
    expect(await ask('costly', headers)).toMatchObject({ status: 500, body: 'rate limit failed' })
  }
  const { message } = await running.condition('GatewayPolicy', 'bad-cost', 'Accepted', 'False')
  expect(message).toContain('rateLimit.global.descriptors[0].cost: only with unit Requests')
})

it('[GlobalRateLimit.failureMode] lets requests pass uncounted if the server fails, but not if an expression does', async () => {
  expect((await ask('open', { 'x-team': 'red' })).status).toBe(200)
  expect((await ask('open-failing')).status).toBe(500)
})
