/** Proxies that HTTPS_PROXY, HTTP_PROXY and NO_PROXY of the environment name. */

import { writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { DnsServer } from '../support/dns-server.ts'
import {
  useAuthority,
  useFixture,
  useFolder,
  useGateway,
  useListening,
  useUpstream,
} from '../support/fixture.ts'
import { ForwardProxy } from '../support/forward-proxy.ts'
import { freePort, sluice } from '../support/gateway.ts'
import {
  gateway,
  hostOf,
  httpRoute,
  policy,
  routeByHost,
  service,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { startTlsUpstream } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

const credentials = { username: 'gate', password: 'p@ss' }
const authority = useAuthority()
const folder = useFolder('proxies-')
const caFile = join(folder, 'ca.crt')
writeFileSync(caFile, authority.certificate)
const names = { 'api.vendor.test': '127.0.0.1' }
const web = useUpstream('web')
const secure = useFixture(() =>
  startTlsUpstream({ name: 'secure', tls: authority.issue(['api.vendor.test']) }),
)
const tls = authority.issue(['127.0.0.1', 'localhost'])
const httpsProxy = useFixture(() => new ForwardProxy('http', { names, credentials, tls }).start())
const httpProxy = useFixture(() => new ForwardProxy('http', { names }).start())
const policyProxy = useFixture(() => new ForwardProxy('socks5', { names }).start())
const dns = useFixture(() => new DnsServer().start())
const keys = useListening(createServer((_, response) => response.end('{"keys":[]}')))
const probed = useListening(createServer((_, response) => response.end()))
const port = await freePort()

const backend = (name: string, host: string, to: number, policies?: object) => [
  {
    ...staticBackend(name, to),
    spec: { static: { host, port: to }, ...(policies && { policies }) },
  },
  routeByHost(name, toBackend(name)),
]

const running = useGateway(() => {
  for (const name of ['direct', 'sub.direct', 'ported', 'dynamic']) {
    dns.hosts.set(`${name}.test`, ['127.0.0.1'])
  }
  dns.hosts.set('shop.default.svc.cluster.local', ['127.0.0.1'])
  return {
    args: ['--name-servers', dns.address],
    env: {
      NODE_EXTRA_CA_CERTS: caFile,
      HTTPS_PROXY: `https://gate:p%40ss@localhost:${httpsProxy.port}`,
      HTTP_PROXY: 'http://127.0.0.1:1',
      http_proxy: `127.0.0.1:${httpProxy.port}`,
      NO_PROXY: `*`,
      no_proxy: `10.0.0.0/8, direct.test,ported.test:${web.port} .other.test`,
    },
    manifests: [
      gateway(port),
      ...backend('secure', 'api.vendor.test', secure.port, { tls: {} }),
      ...backend('plain', 'api.vendor.test', web.port),
      ...backend('direct', 'direct.test', web.port),
      ...backend('subdomain', 'sub.direct.test', web.port),
      ...backend('ported', 'ported.test', web.port),
      ...backend('inside', 'shop.default.svc.cluster.local', web.port),
      ...backend('address', '127.0.0.1', web.port),
      ...backend('machine', 'localhost', web.port),
      ...backend('policed', 'api.vendor.test', web.port, {
        tunnel: { url: `socks5://127.0.0.1:${policyProxy.port}` },
      }),
      ...backend('checked', 'api.vendor.test', web.port, {
        health: { active: { http: { path: '/' }, port: probed.port, interval: '200ms' } },
      }),
      ...service('shop', [web.port]),
      routeByHost('service', { name: 'shop', port: 80 }),
      { ...staticBackend('dynamic', 0), spec: { dynamicForwardProxy: {} } },
      httpRoute('dynamic', {
        hostnames: ['dynamic.test', 'api.vendor.test'],
        rules: [{ backendRefs: [toBackend('dynamic')] }],
      }),
      ...backend('keys', 'api.vendor.test', keys.port),
      policy('keys', 'HTTPRoute/plain', {
        traffic: {
          jwtAuthentication: {
            mode: 'Optional',
            providers: [
              {
                issuer: 'https://issuer.test',
                jwks: { remote: { jwksPath: 'keys', backendRef: toBackend('keys') } },
              },
            ],
          },
        },
      }),
    ],
  }
})

const asked = () => [...httpsProxy.asked, ...httpProxy.asked, ...policyProxy.asked]
const get = (name: string) => running.send(port, { host: hostOf(name), path: '/' })

describe('proxies of the environment', () => {
  it('carry connections to external hosts: HTTPS_PROXY those with TLS, HTTP_PROXY the others', async () => {
    expect(JSON.parse((await get('secure')).body)).toMatchObject({ upstream: 'secure' })
    expect(httpsProxy.asked).toEqual([`api.vendor.test:${secure.port}`])
    expect(JSON.parse((await get('plain')).body)).toMatchObject({ upstream: 'web' })
    expect(httpProxy.asked).toContain(`api.vendor.test:${web.port}`)
  })

  it('carry fetches of key sets by the control plane', async () => {
    await waitFor('the fetch', () => httpProxy.asked.includes(`api.vendor.test:${keys.port}`))
    await waitFor('the event', async () =>
      (await sluice('log', '--log-file', running.logFile)).stdout.includes('jwks'),
    )
  })

  it('carry probes of active health checks to another port', async () => {
    const authority = `api.vendor.test:${probed.port}`
    await waitFor('the probe', () => httpProxy.asked.includes(authority))
  })

  it.each(['direct', 'subdomain', 'ported', 'inside', 'address', 'machine', 'service'])(
    'do not carry connections to hosts of NO_PROXY and inside the network: %s',
    async (name) => {
      const before = asked().length
      expect(JSON.parse((await get(name)).body)).toMatchObject({ upstream: 'web' })
      expect(asked().length).toBe(before)
    },
  )

  it('are overridden by backend.tunnel', async () => {
    expect((await get('policed')).status).toBe(200)
    expect(policyProxy.asked).toEqual([`api.vendor.test:${web.port}`])
  })

  it('do not carry connections to destinations that clients name, whose addresses are checked', async () => {
    const before = asked().length
    const dynamic = await running.send(port, { host: `dynamic.test:${web.port}`, path: '/' })
    expect(JSON.parse(dynamic.body)).toMatchObject({ upstream: 'web' })
    const unknown = await running.send(port, { host: `api.vendor.test:${web.port}`, path: '/' })
    expect(unknown.status).toBe(503)
    expect(asked().length).toBe(before)
  })

  it('are not set by a header of a request', async () => {
    const before = asked().length
    const headers = { proxy: `http://127.0.0.1:${httpProxy.port}` }
    await running.send(port, { host: hostOf('direct'), path: '/', headers })
    expect(asked().length).toBe(before)
  })

  it('are logged without credentials', () => {
    const { stdout, stderr } = running
    expect(stdout + stderr).toContain(`use https://localhost:${httpsProxy.port}`)
    expect(stdout + stderr).not.toContain('p%40ss')
  })
})
