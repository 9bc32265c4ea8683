import { createServer } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Blackhole, startBlackhole } from '../support/blackhole.ts'
import { Authority } from '../support/certificates.ts'
import { DnsServer } from '../support/dns-server.ts'
import { freePort, type RunningGateway, startGateway } from '../support/gateway.ts'
import {
  aiBackend,
  configMap,
  gateway,
  httpRoute,
  manifest,
  policy,
  staticBackend,
  streamRoute,
  toBackend,
} from '../support/manifests.ts'
import {
  converse,
  echo,
  type StreamUpstream,
  startTcpUpstream,
} from '../support/stream-upstream.ts'
import { attemptsTo } from '../support/tcp-table.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { startVersionUpstream, type VersionUpstream } from '../support/version-upstream.ts'
import { waitFor } from '../support/wait-for.ts'

// The answering server shows which address was used: a blackhole never answers, and the connect
// timeout of ten seconds is longer than a test may take.

const dead6 = '::1'
const dead4 = '127.0.0.2'
const live = '127.0.0.1'

let dns: DnsServer
let running: RunningGateway
let web: Upstream
let versions: VersionUpstream
let secure: VersionUpstream
let tcp: StreamUpstream
let port: number
let tcpPort: number
let stats: string
const blackholes = new Map<string, Blackhole>()

async function swallow(host: string, at: number): Promise<void> {
  blackholes.set(`${host} ${at}`, await startBlackhole(host, at))
}

const named = (name: string, host: string, at: number, policies?: object) => ({
  ...staticBackend(name, at),
  spec: { static: { host, port: at }, ...(policies && { policies }) },
})
const routed = (name: string, more: object = {}) =>
  httpRoute(name, {
    hostnames: [`${name}.example.com`],
    rules: [{ backendRefs: [toBackend(name)], ...more }],
  })
const get = (name: string, path = '/') => running.send(port, { host: `${name}.example.com`, path })

describe.runIf(process.platform === 'linux')('a backend whose name has several addresses', () => {
  beforeAll(async () => {
    dns = await new DnsServer().start()
    // Answers hold for the whole test, so that nothing but races changes the order.
    dns.ttl = 300
    web = await startUpstream('web', ({ path }, response) => {
      const isChat = path.endsWith('/chat/completions')
      response.setHeader('content-type', 'application/json')
      response.end(isChat ? JSON.stringify(completion) : '"web"')
    })
    versions = await startVersionUpstream()
    const authority = new Authority()
    secure = await startVersionUpstream(authority.issue(['secure.race.test']))
    tcp = await startTcpUpstream(echo('tcp'))
    for (const upstream of [web, versions, secure, tcp]) await swallow(dead6, upstream.port)
    await swallow(dead4, web.port)
    for (const name of ['dual', 'memory', 'fresh', 'refused', 'pair', 'asked', 'model', 'copy'])
      dns.hosts.set(`${name}.race.test`, [dead6, live])
    for (const name of ['http2', 'secure', 'bytes'])
      dns.hosts.set(`${name}.race.test`, [dead6, live])
    dns.hosts.set('pair.race.test', [dead4, live])
    dns.hosts.set('none.race.test', [dead6, dead4])
    dns.hosts.set('mixed.race.test', [live, '169.254.169.254'])
    port = await freePort()
    tcpPort = await freePort()
    const at = (name: string) => `${name}.race.test`
    stats = `127.0.0.1:${await freePort()}`
    running = await startGateway({
      args: ['--name-servers', dns.address, '--stats-address', stats],
      manifests: {
        'all.yaml': manifest(
          gateway(port, {
            listeners: [
              { name: 'http', port, protocol: 'HTTP' },
              { name: 'tcp', port: tcpPort, protocol: 'TCP' },
            ],
          }),
          configMap('authority', { 'ca.crt': authority.certificate }),
          ...['dual', 'pair'].flatMap((name) => [named(name, at(name), web.port), routed(name)]),
          named('none', at('none'), web.port, { tcp: { connectTimeout: '300ms' } }),
          routed('none'),
          named('http2', at('http2'), versions.port, { http: { version: 'HTTP2' } }),
          routed('http2'),
          ...['secure1', 'secure2'].flatMap((name, index) => [
            named(name, at('secure'), secure.port, {
              tls: { caCertificateRefs: [{ name: 'authority' }] },
              http: { version: `HTTP${index + 1}` },
            }),
            routed(name),
          ]),
          named('bytes', at('bytes'), tcp.port),
          streamRoute('TCPRoute', 'bytes', 'tcp', [toBackend('bytes')]),
          staticBackend('plain', web.port),
          named('asked', at('asked'), web.port),
          named('copy', at('copy'), web.port),
          httpRoute('asking', {
            hostnames: ['asking.example.com'],
            rules: [{ backendRefs: [toBackend('plain')] }],
          }),
          policy('asking', 'HTTPRoute/asking', {
            traffic: { extAuth: { backendRef: toBackend('asked'), http: {} } },
          }),
          httpRoute('mirrored', {
            hostnames: ['mirrored.example.com'],
            rules: [
              {
                filters: [
                  { type: 'RequestMirror', requestMirror: { backendRef: toBackend('copy') } },
                ],
                backendRefs: [toBackend('plain')],
              },
            ],
          }),
          aiBackend(
            'model',
            { provider: { vendorA: {}, host: at('model'), port: web.port } },
            { auth: { key: 'k' } },
          ),
          routed('model'),
          {
            ...staticBackend('anywhere', 0),
            spec: { dynamicForwardProxy: {} },
          },
          httpRoute('anywhere', {
            hostnames: ['mixed.race.test'],
            rules: [{ backendRefs: [toBackend('anywhere')] }],
          }),
        ),
      },
    })
  }, 60_000)

  afterAll(async () => {
    await running?.dispose()
    for (const hole of blackholes.values()) await hole.close()
    await web?.close()
    versions?.close()
    secure?.close()
    await tcp?.close()
    dns?.close()
  })

  it('is reached at the other address family if the first does not answer, and leaves no attempt open', async () => {
    expect((await get('dual', '/first')).body).toBe('"web"')
    await waitFor('the line of the log, which names who answered', () =>
      running.stdout
        .split('\n')
        .some((line) => line.includes('/first') && line.includes(`endpoint=${live}:${web.port} `)),
    )
    await waitFor('the end of the slower attempt', () => attemptsTo(web.port) === 0)
  })

  it('is reached at another address of the same family', async () => {
    // Either may be the first: after as many new names, the dead one has been.
    for (let count = 0; count < 4; count++) expect((await get('pair')).body).toBe('"web"')
  })

  it('is reached over HTTP/2 and over TLS, with the host name verified', async () => {
    expect((await get('http2')).body).toBe('2.0')
    expect((await get('secure1')).body).toBe('1.1')
    expect((await get('secure2')).body).toBe('2.0')
  })

  it('is reached by a TCPRoute', async () => {
    expect(await converse(tcpPort, 'hello')).toBe('tcp:hello')
  })

  it('is reached by policy callouts, mirrored requests, and requests to models', async () => {
    expect((await get('asking')).body).toBe('"web"')
    expect((await get('mirrored', '/copied')).body).toBe('"web"')
    await waitFor('the copy', () => web.received.filter(({ path }) => path === '/copied')[1])
    const { status, body } = await running.send(port, {
      host: 'model.example.com',
      path: '/v1/chat/completions',
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }),
    })
    expect([status, JSON.parse(body).id]).toEqual([200, 'one'])
  })

  it('fails within one connect timeout if no address answers', async () => {
    const { status, body } = await get('none')
    expect([status, body]).toEqual([504, 'upstream call timeout'])
  })

  it('is refused in a dynamic forward proxy if one of its addresses is refused', async () => {
    const before = web.received.length
    const { status } = await running.send(port, { host: `mixed.race.test:${web.port}` })
    expect(status).toBe(403)
    expect(web.received).toHaveLength(before)
  })

  it('is reached at the address family that won before, as long as that is cached', async () => {
    // The first family comes to life: another name with the same addresses shows it.
    await blackholes.get(`${dead6} ${web.port}`)?.close()
    const six = createServer((_, response) => response.end('six'))
    await new Promise<void>((resolve) => six.listen(web.port, dead6, resolve))
    running.write(
      'more.yaml',
      manifest(named('fresh', 'fresh.race.test', web.port), routed('fresh')),
    )
    await waitFor('the family that comes first', async () => (await get('fresh')).body === 'six')
    for (let count = 0; count < 4; count++) expect((await get('dual')).body).toBe('"web"')
    // The metrics count both address families, and the attempts at dead addresses.
    const scrape = await (await fetch(`http://${stats}/metrics`)).text()
    const counted = (series: string) =>
      Number(
        scrape
          .split('\n')
          .find((line) => line.startsWith(`${series} `))
          ?.split(' ')[1],
      )
    expect(counted('sluice_upstream_race_attempts_total')).toBeGreaterThan(0)
    for (const family of ['ipv4', 'ipv6']) {
      expect(counted(`sluice_upstream_races_won_total{family="${family}"}`)).toBeGreaterThan(0)
    }
    six.closeAllConnections()
    await new Promise((resolve) => six.close(resolve))
    // Refused now: the other one at once, on a connection of its own.
    for (let count = 0; count < 4; count++) expect((await get('fresh')).body).toBe('"web"')
  })
})

const completion = {
  id: 'one',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content: 'hi' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
}
