import { request, type ServerResponse } from 'node:http'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { useGateway, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { gateway, hostOf, policy, routeByHost, service } from '../support/manifests.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const limit = 5
/** Responses that wait until the test ends them, by host. */
const held: Record<string, ServerResponse[]> = {}
const upstream = useUpstream('held', ({ headers, path }, response) => {
  const host = `${headers.host}`
  const waiting = held[host] ?? []
  held[host] = [...waiting, response]
  if (path === '/fail' && waiting.length % 2 === 0) response.writeHead(503).end()
})
const port = await freePort()
const stats = `127.0.0.1:${await freePort()}`
const limited = (name: string, backend: object, traffic: object = {}) => [
  ...service(name, [upstream.port]),
  routeByHost(name, { name, port: 80 }),
  policy(`limit-${name}`, `Service/${name}`, { backend }),
  policy(`retry-${name}`, `HTTPRoute/${name}`, {
    traffic: { timeouts: { request: '40s' }, ...traffic },
  }),
]

const running = useGateway(() => ({
  args: ['--workers', '2', '--stats-address', stats],
  manifests: [
    gateway(port),
    ...limited('requests', { circuitBreaker: { maxParallelRequests: limit } }),
    ...limited('closed', { circuitBreaker: { maxParallelRequests: 0 } }),
    ...limited(
      'retries',
      { circuitBreaker: { maxParallelRetries: 1 } },
      { retry: { codes: [503], attempts: 3 } },
    ),
  ],
}))

const waitingAt = (name: string) =>
  (held[hostOf(name)] ?? []).filter(({ writableEnded, closed }) => !writableEnded && !closed)
const ask = (name: string, path = '/') => running.send(port, { host: hostOf(name), path })

async function refusals(name: string, kind: string): Promise<number> {
  const text = await (await fetch(`http://${stats}/metrics`)).text()
  const label = `backend="service/default/${name}:80",limit="${kind}"`
  const line = text.split('\n').find((one) => one.includes(`refusals_total{${label}}`))
  return Number(line?.split(' ').at(-1))
}

describe('a circuit breaker', () => {
  it('refuses requests beyond the limit at once, counted exactly over all workers', async () => {
    const answers = Array.from({ length: 40 }, () => ask('requests'))
    const refused: number[] = []
    for (const answer of answers) {
      answer.then(({ status, body, headers }) => {
        if (status !== 503) return
        refused.push(status)
        expect(body).toBe('too many requests to the backend')
        expect(headers['proxy-status']).toBe('sluice; error=connection_limit_reached')
      })
    }
    await waitFor('refusals', () => refused.length === 40 - limit)
    await waitFor('the others', () => waitingAt('requests').length === limit)
    for (const response of waitingAt('requests')) response.end()
    const statuses = (await Promise.all(answers)).map(({ status }) => status)
    expect(statuses.filter((status) => status === 200)).toHaveLength(limit)
    await eventually(async () => expect(await refusals('requests', 'requests')).toBe(40 - limit))
  })

  it('admits as many requests again when clients are gone', async () => {
    const clients = Array.from({ length: limit }, () => {
      const client = request({ port, headers: { host: hostOf('requests') }, agent: false })
      return client.on('error', () => undefined).end()
    })
    await waitFor('requests', () => waitingAt('requests').length === limit)
    expect((await ask('requests')).status).toBe(503)
    for (const client of clients) client.destroy()
    await waitFor('the end of the requests', () => waitingAt('requests').length === 0)
    const answers = Array.from({ length: limit }, () => ask('requests'))
    await waitFor('requests', () => waitingAt('requests').length === limit)
    for (const response of waitingAt('requests')) response.end()
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(answers.map(() => 200))
  })

  it('refuses everything if the limit is 0', async () => {
    expect((await ask('closed')).status).toBe(503)
    expect(held[hostOf('closed')]).toBeUndefined()
  })

  it('prevents retries while as many requests as the limit are being retried', async () => {
    const first = ask('retries', '/fail')
    await waitFor('the retry', () => waitingAt('retries').length === 1)
    const second = await ask('retries', '/fail')
    expect(second.status).toBe(503)
    for (const response of waitingAt('retries')) response.end()
    expect((await first).status).toBe(200)
    const third = ask('retries', '/fail').then(({ status }) => status)
    await waitFor('the second attempt', async () => {
      for (const response of waitingAt('retries')) response.end()
      return Promise.race([third, nextTurn()])
    })
    expect(await third).toBe(200)
    await eventually(async () => expect(await refusals('retries', 'retries')).toBe(1))
  })
})
