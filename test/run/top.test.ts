/** `sluice top` and the time series behind it, with known traffic through a gateway that is restarted. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { z } from 'zod'
import type { SeriesAnswer } from '../../src/past/series/answer.ts'
import { useFixture, useFolder, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import { send } from '../support/http-client.ts'
import {
  aiBackend,
  gateway,
  httpRoute,
  mcpBackend,
  policy,
  routeByPath,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { connectClient } from '../support/mcp-client.ts'
import { useMcpServer } from '../support/mcp-server.ts'
import { startVendorA } from '../support/vendors/vendor-a.ts'

const [port, deadPort, adminPort] = [await freePort(), await freePort(), await freePort()]
const admin = `127.0.0.1:${adminPort}`
const upstream = useUpstream()
const vendor = useFixture(startVendorA)
const tools = useMcpServer({
  offer: (server) => {
    server.registerTool('echo', { inputSchema: { text: z.string() } }, ({ text }) => ({
      content: [{ type: 'text', text }],
    }))
  },
})
const catalog = join(useFolder('sluice-prices-'), 'catalog.json')
const prices = { rates: { input: '1000000', output: '0' } }
writeFileSync(catalog, JSON.stringify({ providers: { openai: { models: { 'm-1': prices } } } }))

const prefix = (value: string) => ({ path: { type: 'PathPrefix', value } })
const gw = useGateway(() => ({
  args: ['--admin-address', admin, '--model-catalog', catalog, '--workers', '2'],
  manifests: [
    gateway(port),
    staticBackend('main', upstream.port),
    staticBackend('down', deadPort),
    httpRoute('shop', { rules: [{ backendRefs: [toBackend('main')] }] }),
    httpRoute('broken', {
      rules: [{ matches: [prefix('/broken')], backendRefs: [toBackend('down')] }],
    }),
    secret('keys', { ann: JSON.stringify({ key: 'key-of-ann', metadata: { team: 'red' } }) }),
    policy('keys', 'HTTPRoute/chat', {
      traffic: {
        apiKeyAuthentication: { secretRef: { name: 'keys' } },
        identity: { dimensions: { team: 'apiKey.team' } },
      },
    }),
    aiBackend(
      'chat',
      { provider: { vendorA: {}, host: '127.0.0.1', port: vendor.port } },
      { ai: { promptGuard: { request: [{ regex: { matches: ['secret'], action: 'Reject' } }] } } },
    ),
    httpRoute('chat', { rules: [{ matches: [prefix('/v1')], backendRefs: [toBackend('chat')] }] }),
    mcpBackend('tools', [{ name: 'items', static: { host: '127.0.0.1', port: tools.port } }]),
    routeByPath('tools'),
  ],
}))

const chat = (content: string, key = 'key-of-ann') =>
  gw.send(port, {
    method: 'POST',
    path: '/v1/chat/completions',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ model: 'm-1', messages: [{ role: 'user', content }] }),
  })

/** Runs `sluice top --json`, and returns the series of each group by their names. */
async function groups(...args: string[]) {
  const { code, stdout, stderr } = await sluice('top', '--admin', admin, '--json', ...args)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const answers = (JSON.parse(stdout) as { groups: SeriesAnswer[] }).groups
  return Object.fromEntries(
    answers.map(({ by, series }) => [
      by,
      Object.fromEntries(series.map(({ name, sums }) => [name, sums])),
    ]),
  )
}

it('sums up requests, errors, tokens, cost, tools and guards by what they belong to', async () => {
  for (let at = 0; at < 5; at++) await gw.send(port, { path: '/shop' })
  for (let at = 0; at < 2; at++) expect((await gw.send(port, { path: '/broken' })).status).toBe(503)
  expect((await chat('hello')).status).toBe(200)
  expect((await chat('a secret')).status).toBe(403)
  expect((await chat('hello', 'wrong')).status).toBe(401)
  const client = await connectClient(port, '/tools')
  await client.callTool({ name: 'echo', arguments: { text: 'hi' } })
  await client.callTool({ name: 'missing', arguments: {} }).catch(() => undefined)
  await client.close()

  const found = await groups('--since', '1h')
  expect(found.route?.['default/shop']).toMatchObject({ requests: 5, errors: 0 })
  expect(found.route?.['default/shop']?.p99Ms).toBeGreaterThan(0)
  const causes = [{ name: expect.stringMatching(/^\w+ 503$/), count: 2 }]
  const down = { requests: 2, errors: 2, causes }
  expect(found.route?.['default/broken']).toMatchObject(down)
  expect(found.backend?.['default/down']).toMatchObject(down)
  expect(found.route?.['default/chat']).toMatchObject({ requests: 3, refused: 2, cost: 11 })
  expect(found.model?.['m-1']).toMatchObject({ requests: 1, inputTokens: 11, cost: 11 })
  expect(found.key?.['team=red']).toMatchObject({ requests: 2, errors: 0, cost: 11 })
  expect(found.tool?.['default/tools echo']).toMatchObject({ requests: 1, errors: 0 })
  expect(found.target?.['default/tools items']?.requests).toBeGreaterThan(0)
  expect(found.guard?.['Request regex']?.verdicts).toContainEqual({ name: 'Reject', count: 1 })
  expect(found.rule?.['GatewayBackend default/chat: request 0 (regex)']).toMatchObject({
    verdicts: expect.arrayContaining([{ name: 'Reject', count: 1 }]),
  })
  expect(found.all?.['']).toMatchObject({ errors: 2, cost: 11, toolCalls: 2, tokens: 18 })
})

it('prints tables, or what is wrong with the question', async () => {
  const { stdout } = await sluice('top', '--admin', admin, '--once', '--since', '1h')
  expect(stdout).toMatch(/^ROUTE +REQUESTS +PER S +ERRORS/m)
  expect(stdout).toMatch(/^default\/broken +2 +\S+ +100 % .*503 \(2\)$/m)
  expect(stdout).toMatch(/^team=red .*\$11\.00$/m)
  expect(await sluice('top', '--admin', admin, '--since', 'long', '--once')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('expected times'),
  })
  expect(await sluice('top', '--admin', `127.0.0.1:${deadPort}`, '--once')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('--admin names the admin address of another one'),
  })
})

it('refuses time series to web pages, like everything of the admin address', async () => {
  const of = (headers: Record<string, string>) =>
    send(adminPort, { path: '/series?by=route', headers })
  expect((await of({})).status).toBe(200)
  expect((await of({ origin: 'https://evil.example.com' })).status).toBe(403)
})

it('keeps the series after a restart, up to the last request, and adds to them', async () => {
  await gw.send(port, { path: '/shop' })
  expect(await gw.stop()).toBe(0)
  await gw.start()
  await gw.send(port, { path: '/shop' })
  const found = await groups('--since', '1h', '--by', 'route')
  expect(Object.keys(found)).toEqual(['all', 'route'])
  expect(found.route?.['default/shop']).toMatchObject({ requests: 7 })
  expect(found.route?.['default/broken']).toMatchObject({ errors: 2 })
})
