/** Every example starts as it is, answers what its README says, and its recorded log replays. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import type { Server as HttpServer } from 'node:http'
import type { AddressInfo, Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { readExport } from '../../src/control/log/export.ts'
import type { Recorded } from '../../src/control/log/index.ts'
import { regexProblem } from '../../src/control/plane/api-binding.ts'
import { foldVersion, replay } from '../../src/past/replay/index.ts'
import { Authority } from '../support/certificates.ts'
import { freePort, type RunningGateway, sluice, startGateway } from '../support/gateway.ts'
import {
  echo,
  readAll,
  startTlsUpstream,
  startUdpUpstream,
  UdpClient,
} from '../support/stream-upstream.ts'
import { handshake } from '../support/tls-client.ts'
import { startUpstream } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

const folder = join(import.meta.dirname, '..', '..', 'examples')
const filesOf = (name: string) =>
  readdirSync(join(folder, name)).filter((file) => file.endsWith('.yaml'))
const names = readdirSync(folder).filter((name) => filesOf(name).length > 0)

const readRecording = (name: string): Promise<Recorded[]> =>
  Array.fromAsync(readExport(join(folder, name, 'recorded.jsonl')))

describe.each(names)('the recorded log of %s [design.replay]', (name) => {
  it('replays to every published digest (otherwise run scripts/record-example.mjs)', async () => {
    const events = await readRecording(name)
    const all = await replay(events, { checkRegex: regexProblem })
    expect(all.published).toBeGreaterThan(1)
    expect(all).toMatchObject({ different: [], incomparable: 0, missing: 0, foldVersion })
  })

  it('replays to the recorded conditions', async () => {
    const events = await readRecording(name)
    const { fold } = await replay(events, { checkRegex: regexProblem })
    const decided = new Map<string, unknown>()
    for (const { event } of events) {
      if (event.type === 'dev.sluice.resource.deleted.v1') {
        decided.delete(`${event.data.kind}/${event.data.namespace}/${event.data.name}`)
      }
      if (event.type !== 'dev.sluice.conditions.decided.v1') continue
      const { kind, namespace, name: object, status } = event.data
      if (Object.keys(status).length === 0) decided.delete(`${kind}/${namespace}/${object}`)
      else decided.set(`${kind}/${namespace}/${object}`, status)
    }
    const replayed = new Map(
      fold
        .statuses()
        .map(([ref, status]) => [`${ref.kind}/${ref.namespace}/${ref.name}`, status as unknown]),
    )
    expect(replayed).toEqual(decided)
  })

  it('contains no path of the machine that recorded it, and has a README', () => {
    const text = readFileSync(join(folder, name, 'recorded.jsonl'), 'utf8')
    expect(text).not.toMatch(/"\/(tmp|home|root|work)\//)
    expect(existsSync(join(folder, name, 'README.md'))).toBe(true)
  })
})

describe('sluice replay', () => {
  it('reports no difference for a recorded log', async () => {
    const path = join(folder, 'quickstart', 'recorded.jsonl')
    const { code, stdout } = await sluice('replay', '--log-file', path, '-o', 'json')
    expect(code).toBe(0)
    expect(JSON.parse(stdout)).toMatchObject({ different: [], incomparable: 0, foldVersion })
  })

  it('reports that a log without its beginning cannot be compared', async () => {
    const whole = readFileSync(join(folder, 'quickstart', 'recorded.jsonl'), 'utf8')
    const purged = mkdtempSync(join(tmpdir(), 'sluice-purged-'))
    const path = join(purged, 'purged.jsonl')
    writeFileSync(path, whole.split('\n').slice(3).join('\n'))
    const { code, stdout } = await sluice('replay', '--log-file', path)
    expect(code).toBe(1)
    expect(stdout).toMatch(/the log begins at position 4: earlier events were purged/)
    expect(stdout).toMatch(/of which 0 differ/)
    rmSync(purged, { recursive: true })
  })
})

let running: RunningGateway | undefined
afterEach(async () => {
  await running?.dispose()
  running = undefined
})

/** The example on other ports than its own, which may be taken; gives the new one for each. */
async function start(name: string, known: Record<string, number> = {}) {
  const texts = filesOf(name).map((file) => [file, readFileSync(join(folder, name, file), 'utf8')])
  const all = texts.map(([, text]) => text).join()
  const ports: Record<string, number> = { ...known }
  for (const [, port = ''] of all.matchAll(/port: (8\d\d\d)$/gm)) ports[port] ??= await freePort()
  const moved = texts.map(([file = '', text = '']) => [
    file,
    text.replace(/port: (\d{4})$/gm, (line, port) => (ports[port] ? `port: ${ports[port]}` : line)),
  ])
  running = await startGateway({ manifests: Object.fromEntries(moved) })
  const gateway = running
  const send = (port: number, host: string, path: string, headers = {}) =>
    gateway.send(ports[port] ?? 0, { host, path, headers })
  return { gateway, ports, send }
}

interface AiVendors {
  startVendor(port: number): Promise<Server>
}

interface BudgetTour {
  tour(
    base: string,
    gateway: {
      kill(): Promise<void>
      start(): Promise<unknown>
      run(...args: string[]): Promise<string>
    },
    tell: (line: string) => void,
  ): Promise<{
    readonly admitted: number
    readonly refusal: string
    readonly balances: string
  }>
}

interface AiTour {
  tour(
    base: string,
    tell: (line: string) => void,
  ): Promise<{
    readonly masked: string
    readonly inStream: string
    readonly other: { readonly content: unknown }
    readonly statuses: readonly number[]
    readonly failover: object
  }>
}

/** What the scripts of examples/mcp export. */
interface McpExample {
  startServers(ports: { readonly notes: number; readonly orders: number }): Promise<HttpServer[]>
  drive(url: URL, print: (line: string) => void): Promise<void>
}

/** What the scripts of examples/a2a export. */
interface A2aExample {
  startAgents(ports: {
    readonly weather: number
    readonly translator: number
    readonly keys: number
  }): Promise<HttpServer[]>
  drive(base: string, print: (line: string) => void): Promise<void>
}

describe('the example', () => {
  it('quickstart answers as npm start prints', async () => {
    const [shop, echo] = await Promise.all([startUpstream('shop'), startUpstream('echo')])
    const { send } = await start('quickstart', { 9101: shop.port, 9102: echo.port })
    const cart = await send(8080, 'shop.example.com', '/cart')
    expect(cart.status).toBe(200)
    expect(cart.headers['x-served-by']).toBe('sluice')
    expect(JSON.parse(cart.body)).toMatchObject({ upstream: 'shop' })
    expect((await send(8080, 'shop.example.com', '/healthz')).body).toBe('ok\n')
    const items = await send(8080, 'eu.echo.example.com', '/api/items')
    expect(JSON.parse(items.body)).toMatchObject({ upstream: 'echo', path: '/v1/items' })
    expect((await send(8080, 'nobody.example.com', '/')).status).toBe(404)
    await Promise.all([shop.close(), echo.close()])
  })

  it('weighted-split sends most requests to v1, some to v2, and those that ask for v2 to v2', async () => {
    const { send } = await start('weighted-split')
    const counts: Record<string, number> = {}
    for (let n = 0; n < 300; n++) {
      const { body } = await send(8080, 'shop.example.com', '/')
      counts[body] = (counts[body] ?? 0) + 1
    }
    expect(Object.keys(counts).sort()).toEqual(['this is v1\n', 'this is v2\n'])
    expect(counts['this is v1\n']).toBeGreaterThan(200)
    const byHeader = await send(8080, 'shop.example.com', '/', { 'x-version': 'v2' })
    expect(byHeader.body).toBe('this is v2\n')
    expect((await send(8080, 'shop.example.com', '/?preview=true')).body).toBe('this is v2\n')
  })

  it('mcp prints the output that its README shows', async () => {
    const [notes, orders] = await Promise.all([freePort(), freePort()])
    const { startServers } = (await import(join(folder, 'mcp', 'servers.mjs'))) as McpExample
    const { drive } = (await import(join(folder, 'mcp', 'client.mjs'))) as McpExample
    const servers = await startServers({ notes, orders })
    const { ports } = await start('mcp', { 8101: notes, 8102: orders })
    const said: string[] = []
    await drive(new URL(`http://127.0.0.1:${ports[8080]}/mcp`), (line) => said.push(line))
    for (const server of servers) {
      server.close()
      server.closeAllConnections()
    }
    expect(said.length).toBeGreaterThan(5)
    expect(readFileSync(join(folder, 'mcp', 'README.md'), 'utf8')).toContain(said.join('\n'))
  })

  it('a2a prints the output that its README shows', async () => {
    const [notes, orders] = await Promise.all([freePort(), freePort()])
    const [weather, translator, keys] = await Promise.all([freePort(), freePort(), freePort()])
    const { startServers } = (await import(join(folder, 'mcp', 'servers.mjs'))) as McpExample
    const { startAgents } = (await import(join(folder, 'a2a', 'agents.mjs'))) as A2aExample
    const { drive } = (await import(join(folder, 'a2a', 'client.mjs'))) as A2aExample
    const servers = await Promise.all([
      startServers({ notes, orders }),
      startAgents({ weather, translator, keys }),
    ])
    const moved = { 8101: notes, 8111: weather, 8112: translator, 8113: keys }
    const { gateway, ports } = await start('a2a', moved)
    const path = '/agents/weather/.well-known/agent-card.json'
    const card = { path, headers: { 'a2a-version': '1.0' } }
    await gateway.sendUntil(ports[8080] ?? 0, card, ({ status }) => status === 200)
    const said: string[] = []
    await drive(`http://127.0.0.1:${ports[8080]}`, (line) => said.push(line))
    for (const server of servers.flat()) {
      server.close()
      server.closeAllConnections()
    }
    expect(said.length).toBeGreaterThan(5)
    expect(readFileSync(join(folder, 'a2a', 'README.md'), 'utf8')).toContain(said.join('\n'))
  })

  it('redirects-rewrites redirects in three ways, and rewrites path, host and headers', async () => {
    const { send } = await start('redirects-rewrites')
    const located = async (path: string) => {
      const { status, headers } = await send(8080, 'old.example.com', path)
      return [status, headers.location]
    }
    const [movedStatus, moved] = await located('/contact')
    expect(movedStatus).toBe(301)
    expect(moved).toMatch(/^http:\/\/old\.example\.com:\d+\/about\/contact$/)
    const [blogStatus, blog] = await located('/blog/2026/may')
    expect(blogStatus).toBe(308)
    expect(blog).toMatch(/^http:\/\/blog\.example\.com:\d+\/articles\/2026\/may$/)
    expect(await located('/shop')).toEqual([302, 'https://www.example.com/shop'])
    const order = await send(8080, 'api.example.com', '/orders/17')
    expect([order.status, order.body, order.headers['x-api-version']]).toEqual([
      200,
      'order 17\n',
      '2',
    ])
    const debug = await send(8080, 'api.example.com', '/orders/18', { 'x-debug': 'yes' })
    expect(debug.status).toBe(404)
  })

  it('policy-levels applies the most specific level, field by field', async () => {
    const { send } = await start('policy-levels')
    const levels = async (port: number, path: string) => {
      const { status, headers } = await send(port, 'any.example.com', path)
      return [status, headers['x-level'], headers['x-only-gateway']]
    }
    expect(await levels(8080, '/plain')).toEqual([200, 'gateway', 'yes'])
    expect(await levels(8081, '/plain')).toEqual([200, 'listener', undefined])
    expect(await levels(8081, '/shop')).toEqual([200, 'route', undefined])
    expect(await levels(8081, '/shop/news')).toEqual([200, 'rule', undefined])
  })

  it('authorization combines the rules of all levels', async () => {
    const { gateway, ports } = await start('authorization')
    const status = async (path: string, team?: string, request = {}) => {
      const headers: Record<string, string> = team === undefined ? {} : { 'x-team': team }
      return (await gateway.send(ports[8080] ?? 0, { path, headers, ...request })).status
    }
    expect(await status('/shop')).toBe(403)
    expect(await status('/shop', 'blue')).toBe(200)
    expect(await status('/shop', 'blue', { method: 'DELETE' })).toBe(403)
    expect(await status('/shop', 'red', { method: 'DELETE' })).toBe(200)
    expect(await status('/admin', 'red')).toBe(403)
    const order = (body: string) => status('/order', 'blue', { method: 'POST', body })
    expect(await order('{"n": 5}')).toBe(200)
    expect(await order('{"n": 500}')).toBe(403)
    expect(await order('nonsense')).toBe(403)
  })

  it('forward-proxy forwards to the host of the client, refuses metadata addresses, and warns', async () => {
    const { send, ports, gateway } = await start('forward-proxy')
    const hello = await send(8080, `127.0.0.1:${ports[8091]}`, '/')
    expect([hello.status, hello.body]).toEqual([200, 'hello from port 8091\n'])
    expect((await send(8080, '169.254.169.254', '/')).status).toBeGreaterThanOrEqual(400)
    const { message } = await gateway.condition('GatewayBackend', 'anywhere', 'Accepted', 'True')
    expect(message).toContain('access control')
  })

  it('l4 forwards TCP connections, TLS by server name, and UDP datagrams', async () => {
    const authority = new Authority()
    const shop = await startTlsUpstream(authority.issue(['shop.example.com']), echo('shop'))
    const udp = await startUdpUpstream('udp')
    const { send, ports } = await start('l4', { 9443: shop.port, 9053: udp.port })
    const hello = await send(8081, 'any.example.com', '/')
    expect([hello.status, hello.body]).toEqual([200, 'hello behind the relay\n'])
    const client = (servername: string) => ({ ca: authority.certificate, servername })
    const secure = await handshake(ports[8443] ?? 0, client('shop.example.com'))
    expect(await readAll(secure, 'hi')).toBe('shop:hi')
    const other = handshake(ports[8443] ?? 0, client('else.example.com'))
    await expect(other).rejects.toThrow(/disconnected|reset/)
    const datagrams = new UdpClient(ports[8053] ?? 0)
    await waitFor('an answer', async () => {
      await datagrams.send('ping')
      return datagrams.answers.includes('udp:ping')
    })
    datagrams.close()
    udp.close()
    await shop.close()
    authority.dispose()
  })

  it('ai masks, limits and fails over, as npm run demo:ai prints', async () => {
    const { startVendor } = (await import(join(folder, 'ai', 'vendors.mjs'))) as AiVendors
    const { tour } = (await import(join(folder, 'ai', 'tour.mjs'))) as AiTour
    const servers = await Promise.all([startVendor(0), startVendor(0)])
    const [a = 0, c = 0] = servers.map((server) => (server.address() as AddressInfo).port)
    const { ports } = await start('ai', { 9111: a, 9112: c })
    const lines: string[] = []
    const found = await tour(`http://127.0.0.1:${ports[8080]}`, (line) => lines.push(line))
    const masked = 'Write to <EMAIL_ADDRESS> for more.'
    expect(found.masked).toBe(`You said "I am <EMAIL_ADDRESS>, <masked>". ${masked}`)
    expect(found.inStream).toBe(`You said "Hello". ${masked}`)
    expect(found.other.content).toEqual([{ type: 'text', text: `You said "Hello". ${masked}` }])
    expect(found.statuses[0]).toBe(200)
    expect(found.statuses.at(-1)).toBe(429)
    expect(found.failover).toEqual({ status: 200, model: 'claude-sonnet-5-5' })
    expect(lines).toHaveLength(5)
    for (const server of servers) server.close()
  })

  it('budgets holds many requests at once and a kill, as npm run demo:budget prints', async () => {
    const { startVendor } = (await import(join(folder, 'ai', 'vendors.mjs'))) as AiVendors
    const { tour } = (await import(join(folder, 'budgets', 'tour.mjs'))) as BudgetTour
    const server = await startVendor(0)
    const { port } = server.address() as AddressInfo
    const { gateway, ports } = await start('budgets/manifests', { 9111: port })
    const control = {
      kill: () => gateway.kill(),
      start: () => gateway.start(),
      run: async (...args: string[]) =>
        (await sluice('budgets', ...args, '--log-file', gateway.logFile)).stdout,
    }
    const lines: string[] = []
    const found = await tour(`http://127.0.0.1:${ports[8080]}`, control, (line) => lines.push(line))
    expect(found).toMatchObject({ admitted: 3, afterKill: 429, other: 200, adjusted: 200 })
    expect(found.refusal).toContain('budget default/chats of 3 requests per day is exhausted')
    expect(found.balances).toMatch(/^default\/chats .* sales +Requests +4 +4 /m)
    expect(lines).toHaveLength(6)
    server.close()
  })

  it('fail-closed refuses requests that a broken policy should protect, until the policy is removed', async () => {
    const { send, ports, gateway } = await start('fail-closed')
    expect((await send(8080, 'any.example.com', '/open')).body).toBe('you are in\n')
    expect((await send(8080, 'any.example.com', '/guarded')).status).toBe(500)
    const { message } = await gateway.condition('GatewayPolicy', 'guard', 'Accepted', 'False')
    expect(message).toContain('spec.traffic.extAuth')
    gateway.remove('guard.yaml')
    const request = { host: 'any.example.com', path: '/guarded' }
    await gateway.sendUntil(ports[8080] ?? 0, request, ({ status }) => status === 200)
  })
})
