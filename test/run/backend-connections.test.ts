import type { ServerResponse } from 'node:http'
import { createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { useGateway, useListening, useUpstream } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { keepAliveAgent } from '../support/http-client.ts'
import {
  gateway,
  policy,
  routeByHost,
  service,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { connectionsTo } from '../support/tcp-table.ts'
import { waitFor } from '../support/wait-for.ts'

const waiting: ServerResponse[] = []

const reached = (name: string, to: number, policies: Readonly<Record<string, unknown>>) => [
  staticBackend(name, to, policies),
  routeByHost(name, toBackend(name)),
]

const get = (name: string, path = '/') => running.send(port, { host: `${name}.example.com`, path })

/** Connections to an address, as the metrics have them. */
async function poolOf(to: number): Promise<Record<string, number>> {
  const text = await (await fetch(`http://${stats}/metrics`)).text()
  const line = new RegExp(
    `^sluice_upstream_pool_connections\\{endpoint="127.0.0.1:${to}",state="(\\w+)"\\} (\\d+)$`,
    'gm',
  )
  return Object.fromEntries(
    [...text.matchAll(line)].map(([, state, count]) => [state, Number(count)]),
  )
}

/** Seconds until the kernel's next probe on a connection to the port; undefined if none is due. */
function probeDue(remotePort: number): number | undefined {
  const keepaliveTimer = '02'
  for (const [, , , , , timer = ''] of connectionsTo(remotePort)) {
    const [kind, due = ''] = timer.split(':')
    // In hundredths of a second.
    if (kind === keepaliveTimer) return Number.parseInt(due, 16) / 100
  }
  return undefined
}

const port = await freePort()
const upstream = useUpstream('fast')
const slow = useUpstream('slow', ({ path }, response) => {
  if (path !== '/late-body') return
  response.writeHead(200, { 'content-length': '10' })
  response.write('12345')
})
const silent = useListening(createServer(() => {}))
const held = useUpstream('held', ({ path }, response) => {
  if (path === '/hold') waiting.push(response)
  else response.end('at once')
})
const stats = `127.0.0.1:${await freePort()}`
const running = useGateway(() => ({
  args: ['--stats-address', stats],
  env: { SLUICE_BACKEND_MAX_REQUESTS: '3' },
  manifests: [
    gateway(port),
    // The server does not answer the TLS handshake, which is a part of connecting.
    ...reached('connect', silent.port, { tls: {}, tcp: { connectTimeout: '200ms' } }),
    ...reached('probed', upstream.port, {
      tcp: { keepalive: { time: '50s', interval: '7s', retries: 2 } },
    }),
    ...reached('late', slow.port, { http: { requestTimeout: '300ms' } }),
    staticBackend('late-rule', slow.port, { http: { requestTimeout: '300ms' } }),
    routeByHost('late-rule', toBackend('late-rule'), { timeouts: { backendRequest: '1h' } }),
    staticBackend('full', held.port),
    routeByHost('full', toBackend('full')),
    ...reached('old', upstream.port, { http: { version: 'HTTP1' } }),
    ...service('secure', [upstream.port], { appProtocol: 'https' }),
    routeByHost('secure', { name: 'secure', port: 80 }),
    ...reached('both', slow.port, { auth: { key: 'inline' } }),
    policy('both', 'GatewayBackend/both', { backend: { http: { requestTimeout: '300ms' } } }),
    ...reached('levels', upstream.port, { tcp: { connectTimeout: '5s' } }),
    policy('levels', 'GatewayBackend/levels', { backend: { http: { requestTimeout: '5s' } } }),
  ],
}))

describe('connections to backends', () => {
  it('[BackendTCP.connectTimeout] gives up a connection that is not established in time', async () => {
    const response = await get('connect')
    expect([response.status, response.body]).toEqual([504, 'upstream call timeout'])
  })

  it.runIf(process.platform === 'linux')(
    '[BackendTCP.keepalive] [Keepalive.time] probes an idle connection at the configured interval',
    async () => {
      const agent = keepAliveAgent(1)
      await running.send(port, { host: 'probed.example.com', agent })
      const due = await waitFor('the probe', () => probeDue(upstream.port))
      expect(due).toBeGreaterThan(7)
      expect(due).toBeLessThanOrEqual(50)
      agent.destroy()
    },
  )

  it('[BackendHTTP.requestTimeout] ends an attempt whose response is late', async () => {
    for (const name of ['late', 'late-rule']) {
      const response = await get(name)
      expect([response.status, response.body]).toEqual([504, 'upstream call timeout'])
    }
  })

  it('[BackendHTTP.requestTimeout] cuts a response whose body takes too long', async () => {
    await expect(get('late', '/late-body')).rejects.toThrow()
  })

  it('never sends plaintext to a port with appProtocol https', async () => {
    const before = upstream.received.length
    expect((await get('secure')).status).toBe(500)
    expect(upstream.received).toHaveLength(before)
  })

  it('answer 503 above the limit of requests, and serve again below it', async () => {
    const three = [get('full', '/hold'), get('full', '/hold'), get('full', '/hold')]
    await waitFor('three requests', () => waiting.length === 3)
    const refused = await get('full')
    expect([refused.status, refused.body]).toEqual([503, 'gateway overloaded'])
    await waitFor('the log', () => running.stdout.includes('has 3 requests under way'))
    expect(await poolOf(held.port)).toEqual({ busy: 3, idle: 0 })
    for (const response of waiting) response.end('later')
    expect((await Promise.all(three)).map(({ body }) => body)).toEqual(['later', 'later', 'later'])
    expect(await poolOf(held.port)).toEqual({ busy: 0, idle: 3 })
    expect((await get('full')).body).toBe('at once')
  })

  it('[BackendSpec.policies] merge settings of the backend and of a policy field by field', async () => {
    expect((await get('levels')).status).toBe(200)
    // The time is the policy's, the credential the backend's own.
    expect((await get('both')).status).toBe(504)
    expect(slow.received.at(-1)?.headers.authorization).toBe('Bearer inline')
  })
})
