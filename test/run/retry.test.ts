import { createServer, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { useGateway, useListening, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import {
  gateway,
  hostOf,
  policy,
  routeByHost,
  service,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import type { Answer } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

/** Takes connections and resets them. */
let connections = 0

/** Answers with each status in turn, by host; the last one stays. */
const plans: Record<string, number[]> = {}
const planned: Answer = (received, response) => {
  const [status = 200, ...left] = plans[`${received.headers.host}`] ?? []
  if (left.length > 0) plans[`${received.headers.host}`] = left
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(received))
}

const retry = (spec: object) => ({ traffic: { retry: spec } })

const send = (name: string, statuses: number[] = [], more: object = {}) => {
  plans[hostOf(name)] = statuses
  return running.send(port, { host: hostOf(name), ...more })
}

const receivedBy = (name: string) =>
  upstreams.flatMap(({ received }) =>
    received.filter(({ headers }) => headers.host === hostOf(name)),
  )

async function metric(name: string): Promise<number> {
  const text = await (await fetch(`http://${stats}/metrics`)).text()
  return [...text.matchAll(new RegExp(`^sluice_${name}(?:\\{.*\\})? (\\d+)$`, 'gm'))].reduce(
    (sum, [, value]) => sum + Number(value),
    0,
  )
}

const port = await freePort()
const secondPort = await freePort()
const main = useUpstream('main', planned)
const good = useUpstream('good')
const busy = useUpstream('busy', (_, response) => {
  response.writeHead(503, { 'retry-after': '120' })
  response.end()
})
const slow = useUpstream('slow', ({ path }, response) => {
  if (path === '/late-body') response.write('begun')
})
const upstreams = [main, good, busy, slow]
const resetting = useListening(
  createServer((socket: Socket) => {
    connections++
    socket.once('data', () => socket.resetAndDestroy())
  }),
)
const stats = `127.0.0.1:${await freePort()}`
const running = useGateway(async () => {
  const closed = await freePort()
  return {
    args: ['--stats-address', stats],
    manifests: [
      gateway(port, {
        listeners: [
          { name: 'first', port, protocol: 'HTTP' },
          { name: 'second', port: secondPort, protocol: 'HTTP' },
        ],
      }),
      staticBackend('main', main.port),
      staticBackend('resetting', resetting.port),
      staticBackend('slow', slow.port),
      ...['twice', 'once', 'levels', 'plain', 'big', 'small', 'other-code'].map((name) =>
        routeByHost(name, toBackend('main')),
      ),
      policy('twice', 'HTTPRoute/twice', retry({ codes: [503], attempts: 2, backoff: '1ms' })),
      policy('once', 'HTTPRoute/once', retry({ codes: [500] })),
      policy('big', 'HTTPRoute/big', retry({ codes: [503], attempts: 2 })),
      policy('small', 'HTTPRoute/small', retry({ codes: [503], attempts: 2 })),
      policy('other-code', 'HTTPRoute/other-code', retry({ attempts: 2 })),
      ...['careful', 'asked', 'spent', 'rich'].map((name) => routeByHost(name, toBackend('main'))),
      policy(
        'careful',
        'HTTPRoute/careful',
        retry({
          codes: [503],
          precondition: 'request.method == "GET" || json(request.body).again',
        }),
      ),
      policy(
        'asked',
        'HTTPRoute/asked',
        retry({ condition: 'response.code == 409 && request.path == "/again"' }),
      ),
      policy(
        'spent',
        'HTTPRoute/spent',
        retry({ codes: [503], budget: { percent: 0, minRetryRate: { count: 0 } } }),
      ),
      policy(
        'rich',
        'HTTPRoute/rich',
        retry({ codes: [503], budget: { percent: 100, minRetryRate: { count: 0 } } }),
      ),
      policy('levels', 'Gateway/edge#second', retry({ codes: [418], attempts: 3 })),
      routeByHost('inside', toBackend('main'), { retry: { codes: [502], attempts: 1 } }),
      policy('inside', 'HTTPRoute/inside', retry({ codes: [418], attempts: 5 })),
      routeByHost('reset', toBackend('resetting'), { retry: { attempts: 3 } }),
      routeByHost('late', toBackend('slow'), {
        retry: { attempts: 2 },
        timeouts: { backendRequest: '700ms' },
      }),
      routeByHost('deadline', toBackend('slow'), {
        retry: { attempts: 20, backoff: '30s' },
        timeouts: { request: '400ms', backendRequest: '100ms' },
      }),
      ...service('half', [closed, good.port]),
      routeByHost('half', { name: 'half', port: 80 }, { retry: { attempts: 1 } }),
      ...service('half-once', [closed, good.port]),
      routeByHost('half-once', { name: 'half-once', port: 80 }),
      ...service('busy', [busy.port, good.port]),
      routeByHost('busy', { name: 'busy', port: 80 }),
      ...service('all-down', [closed]),
      routeByHost('all-down', { name: 'all-down', port: 80 }),
    ],
  }
})

describe('retries', () => {
  it('[Traffic.retry] retries after the listed codes, with the attempt number in a header', async () => {
    const before = await metric('retries_total')
    const response = await send('twice', [503, 503, 200], { method: 'POST', body: 'hello' })
    expect(response.status).toBe(200)
    const received = receivedBy('twice')
    expect(received.map(({ body }) => body)).toEqual(['hello', 'hello', 'hello'])
    expect(received.map(({ headers }) => headers['x-retry-attempt'])).toEqual([undefined, '1', '2'])
    expect(await metric('retries_total')).toBe(before + 2)
    await waitFor('the log', () => /retry\.attempt=2/.test(running.stdout))
  })

  it('returns the last response if all attempts fail, after one retry by default', async () => {
    expect((await send('once', [500, 500, 200])).status).toBe(500)
    expect(receivedBy('once')).toHaveLength(2)
  })

  it('does not retry after a code that is not listed', async () => {
    expect((await send('other-code', [503, 200])).status).toBe(503)
    expect(receivedBy('other-code')).toHaveLength(1)
  })

  it('[Retry.precondition] sends requests for which the precondition is not true only once', async () => {
    expect((await send('careful', [503, 200])).status).toBe(200)
    const post = (body: string) => send('careful', [503, 200], { method: 'POST', body })
    expect((await post('{"again": true}')).status).toBe(200)
    expect((await post('{"again": false}')).status).toBe(503)
    expect((await post('{')).status).toBe(503)
  })

  it('[Retry.condition] retries responses for which the condition is true', async () => {
    expect((await send('asked', [409, 200], { path: '/again' })).status).toBe(200)
    expect((await send('asked', [409, 200], { path: '/other' })).status).toBe(409)
  })

  it('[Retry.budget] [RetryBudget.percent] [RetryBudget.minRetryRate] retries no more requests than the budget allows', async () => {
    expect((await send('spent', [503, 200])).status).toBe(503)
    expect((await send('rich', [503, 200])).status).toBe(200)
    expect((await send('rich', [503, 200])).status).toBe(200)
  })

  it('applies from a listener, and the retry of a rule replaces it', async () => {
    plans[hostOf('levels')] = [418, 418, 418, 200]
    expect((await running.send(secondPort, { host: hostOf('levels') })).status).toBe(200)
    expect((await send('levels', [418, 200])).status).toBe(418)
    expect((await send('inside', [502, 200])).status).toBe(200)
    expect((await send('inside', [418, 200])).status).toBe(418)
  })

  it('retries with a body that fits into the buffer, and with no larger one', async () => {
    expect(
      (await send('small', [503, 200], { method: 'POST', body: 'x'.repeat(60_000) })).status,
    ).toBe(200)
    expect(receivedBy('small').map(({ body }) => body.length)).toEqual([60_000, 60_000])
    expect(
      (await send('big', [503, 200], { method: 'POST', body: 'x'.repeat(100_000) })).status,
    ).toBe(503)
    expect(receivedBy('big')).toHaveLength(1)
  })

  it('retries if the connection breaks before a response', async () => {
    expect((await send('reset')).status).toBe(503)
    expect(connections).toBe(4)
  })

  it('retries after an attempt timeout, but never after the response has begun', async () => {
    expect((await send('late')).status).toBe(504)
    await waitFor('three attempts', () => receivedBy('late').length === 3)
    await expect(send('late', [], { path: '/late-body' })).rejects.toThrow()
    expect(receivedBy('late')).toHaveLength(4)
  })

  it('ends at the request timeout, also between attempts', async () => {
    const response = await send('deadline')
    expect([response.status, response.body]).toEqual([504, 'request timeout'])
    await waitFor('the attempt', () => receivedBy('deadline').length === 1)
  })

  it('retries at another endpoint', async () => {
    for (let round = 0; round < 4; round++) expect((await send('half')).status).toBe(200)
  })
})

describe('endpoints that fail', () => {
  it('are ejected after a failed connection', async () => {
    const before = await metric('upstream_ejections_total')
    const statuses: number[] = []
    for (let round = 0; round < 30; round++) statuses.push((await send('half-once')).status)
    expect(statuses.filter((status) => status !== 200).length).toBeLessThanOrEqual(1)
    const failed = statuses.includes(503)
    expect(await metric('upstream_ejections_total')).toBe(before + (failed ? 1 : 0))
  })

  it('are ejected for as long as their Retry-After says', async () => {
    const statuses: number[] = []
    for (let round = 0; round < 30; round++) statuses.push((await send('busy')).status)
    expect(statuses.filter((status) => status === 503).length).toBeLessThanOrEqual(1)
  })

  it('are used anyway if there is no other', async () => {
    for (let round = 0; round < 3; round++) {
      expect((await send('all-down')).body).toBe('upstream call failed: connection failure')
    }
  })
})
