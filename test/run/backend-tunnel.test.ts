import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { useAuthority, useFixture, useFolder, useGateway, useUpstream } from '../support/fixture.ts'
import { ForwardProxy } from '../support/forward-proxy.ts'
import { freePort } from '../support/gateway.ts'
import {
  gateway,
  hostOf,
  httpRoute,
  policy,
  routeByHost,
  secret,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { askTunnel, readUntil } from '../support/tunnel-client.ts'
import { startTlsUpstream } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

const credentials = { username: 'gate', password: 'päss:word' }
const authority = useAuthority()
const folder = useFolder('tunnel-')
const caFile = join(folder, 'ca.crt')
writeFileSync(caFile, authority.certificate)
/** The proxies resolve this name; the gateway cannot. */
const names = { 'only-inside.test': '127.0.0.1', 'numbers.2130706433': '127.0.0.1' }
const web = useUpstream('web')
const secure = useFixture(() =>
  startTlsUpstream({ name: 'secure', tls: authority.issue(['only-inside.test']) }),
)
const start = (kind: 'http' | 'socks5', options: object = {}) =>
  useFixture(() => new ForwardProxy(kind, { names, ...options }).start())
const proxies = {
  http: start('http'),
  httpWithCredentials: start('http', { credentials }),
  https: start('http', { credentials, tls: authority.issue(['127.0.0.1', 'localhost']) }),
  socks: start('socks5'),
  socksWithCredentials: start('socks5', { credentials }),
}
const refusing = start('http', { answer: 'HTTP/1.1 403 No\r\ncontent-length: 5\r\n\r\nsorry' })
const endless = start('http', { answer: `HTTP/1.1 200 ${'x'.repeat(20_000)}` })
const silent = start('http', { answer: '\0\0\0\0\r\n\r\n' })
const port = await freePort()

const secretRef = { name: 'proxy' }
const urls = {
  http: () => ({ url: `http://127.0.0.1:${proxies.http.port}` }),
  httpWithCredentials: () => ({
    url: `http://127.0.0.1:${proxies.httpWithCredentials.port}`,
    secretRef,
  }),
  https: () => ({ url: `https://localhost:${proxies.https.port}`, secretRef }),
  socks: () => ({ url: `socks5://127.0.0.1:${proxies.socks.port}` }),
  socksWithCredentials: () => ({
    url: `socks5://127.0.0.1:${proxies.socksWithCredentials.port}`,
    secretRef,
  }),
}
type Way = keyof typeof proxies
const ways = Object.keys(proxies) as Way[]

const backend = (name: string, to: number, host: string, policies: object) => ({
  ...staticBackend(name, to),
  spec: { static: { host, port: to }, policies },
})
const routed = (name: string, to: number, host: string, policies: object) => [
  backend(name, to, host, policies),
  routeByHost(name, toBackend(name)),
]
const failing = {
  refusing: () => ({ url: `http://127.0.0.1:${refusing.port}` }),
  endless: () => ({ url: `http://127.0.0.1:${endless.port}` }),
  silent: () => ({ url: `http://127.0.0.1:${silent.port}` }),
  anonymous: () => ({ url: `http://127.0.0.1:${proxies.httpWithCredentials.port}` }),
  'socks-anonymous': () => ({ url: `socks5://127.0.0.1:${proxies.socksWithCredentials.port}` }),
}

const running = useGateway(() => ({
  env: { NODE_EXTRA_CA_CERTS: caFile },
  manifests: [
    gateway(port),
    secret('proxy', credentials),
    ...ways.flatMap((way) => [
      ...routed(`plain-${way}`.toLowerCase(), web.port, 'only-inside.test', {
        tunnel: urls[way](),
      }),
      ...routed(`tls-${way}`.toLowerCase(), secure.port, 'only-inside.test', {
        tunnel: urls[way](),
        tls: {},
      }),
      ...routed(`address-${way}`.toLowerCase(), web.port, '127.0.0.1', { tunnel: urls[way]() }),
    ]),
    ...Object.entries(failing).flatMap(([name, tunnel]) =>
      routed(name, web.port, 'only-inside.test', { tunnel: tunnel() }),
    ),
    ...routed('lost', web.port, '127.0.0.1', {
      tunnel: { url: 'http://127.0.0.1:1', secretRef: { name: 'absent' } },
    }),
    policy('edge', 'Gateway/edge', {
      frontend: { connect: { mode: 'Route', ports: [web.port, secure.port] } },
    }),
    {
      ...staticBackend('any', 0),
      spec: { dynamicForwardProxy: {}, policies: { tunnel: urls.http() } },
    },
    httpRoute('any', {
      hostnames: ['only-inside.test', 'numbers.2130706433', '127.0.0.1', '*.localhost'],
      rules: [{ backendRefs: [toBackend('any')] }],
    }),
  ],
}))

const logLine = (...parts: string[]) =>
  waitFor(`a line of the access log with ${parts.join(', ')}`, () =>
    running.stdout.split('\n').find((line) => parts.every((part) => line.includes(part))),
  )

describe('backend.tunnel', () => {
  it.each(ways)('reaches names that only the proxy resolves, and addresses, by %s', async (way) => {
    const { asked } = proxies[way]
    const get = async (kind: string) =>
      JSON.parse(
        (
          await running.send(port, {
            host: hostOf(`${kind}-${way}`.toLowerCase()),
            path: `/${kind}`,
          })
        ).body,
      )
    expect(await get('plain')).toMatchObject({ upstream: 'web', path: '/plain' })
    expect(await get('tls')).toMatchObject({ upstream: 'secure', path: '/tls' })
    expect(await get('address')).toMatchObject({ upstream: 'web', path: '/address' })
    expect(new Set(asked)).toEqual(
      new Set([
        `only-inside.test:${web.port}`,
        `only-inside.test:${secure.port}`,
        `127.0.0.1:${web.port}`,
      ]),
    )
    // Credentials of the proxy reach no backend.
    for (const { headers } of web.received) expect(headers['proxy-authorization']).toBeUndefined()
  })

  it('reuses connections through a proxy, but not for other proxies', async () => {
    const before = proxies.socks.asked.length
    for (let at = 0; at < 3; at++) await running.send(port, { host: hostOf('plain-socks') })
    expect(proxies.socks.asked.length).toBe(before)
  })

  it.each(Object.keys(failing))('answers 502 if the proxy fails: %s', async (name) => {
    const { status, headers } = await running.send(port, { host: hostOf(name) })
    expect(status).toBe(502)
    expect(headers['proxy-status']).toBe('sluice; error=destination_unavailable')
    const line = await logLine(hostOf(name), 'the proxy in front of the backend failed')
    expect(line).not.toContain(credentials.password)
  })

  it('does not connect if the credentials that the policy names are missing', async () => {
    expect((await running.send(port, { host: hostOf('lost') })).status).toBe(500)
    const status = await waitFor('the status', () => running.status('GatewayBackend', 'lost'))
    expect(JSON.stringify(status)).toContain('Secret absent does not exist')
  })

  it('carries tunnels of clients through the proxy of the backend', async () => {
    const { status, socket } = await askTunnel(port, `only-inside.test:${web.port}`)
    expect(status).toBe(200)
    socket.write('GET /inside HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n')
    expect(await readUntil(socket, '/inside"')).toContain('"upstream":"web"')
    socket.destroy()
    expect(proxies.http.heads.at(-1)).toBe(
      `CONNECT only-inside.test:${web.port} HTTP/1.1\r\nhost: only-inside.test:${web.port}\r\n\r\n`,
    )
  })

  it('does not ask the proxy for numeric forms of addresses', async () => {
    const before = proxies.http.asked.length
    expect((await askTunnel(port, `numbers.2130706433:${web.port}`)).status).toBe(403)
    expect(proxies.http.asked.length).toBe(before)
  })
})
