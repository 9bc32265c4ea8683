import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { useAuthority, useFixture, useFolder, useGateway, useUpstream } from '../support/fixture.ts'
import { ForwardProxy } from '../support/forward-proxy.ts'
import { freePort } from '../support/gateway.ts'
import { startHealthServer } from '../support/health-server.ts'
import {
  aiBackend,
  gateway,
  hostOf,
  httpRoute,
  manifest,
  policy,
  routeByHost,
  service,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import type { Answer, ReceivedRequest, Upstream } from '../support/upstream.ts'
import { startTlsUpstream } from '../support/upstream.ts'
import { eventually, waitFor } from '../support/wait-for.ts'

const intervalMs = 200

/** Answers probes and other requests with statuses that the test sets. */
class SwitchedUpstream {
  readonly upstream: Upstream
  readonly probedAt: number[] = []
  probeStatus = 200
  status = 200

  constructor(name: string) {
    const answer: Answer = ({ path }, response) => {
      const isProbe = path === '/healthz?full'
      if (isProbe) this.probedAt.push(performance.now())
      response.writeHead(isProbe ? this.probeStatus : this.status)
      response.end(JSON.stringify({ upstream: name }))
    }
    this.upstream = useUpstream(name, answer)
  }

  get port(): number {
    return this.upstream.port
  }

  get probes(): readonly ReceivedRequest[] {
    return this.upstream.received.filter(({ path }) => path === '/healthz?full')
  }
}

const authority = useAuthority()
const caFile = join(useFolder('health-'), 'ca.crt')
writeFileSync(caFile, authority.certificate)
const [a, b] = [new SwitchedUpstream('a'), new SwitchedUpstream('b')]
const [c, d] = [new SwitchedUpstream('c'), new SwitchedUpstream('d')]
const removed = new SwitchedUpstream('removed')
const failing = new SwitchedUpstream('failing')
failing.probeStatus = 503
const silent = useUpstream('silent', () => undefined)
const plain = useUpstream('plain')
const secure = useFixture(() =>
  startTlsUpstream({ name: 'secure', tls: authority.issue(['inside.test']) }),
)
const proxy = useFixture(() =>
  new ForwardProxy('http', { names: { 'inside.test': '127.0.0.1' } }).start(),
)
const grpc = useFixture(startHealthServer)
const port = await freePort()
const closed = await freePort()
const stats = `127.0.0.1:${await freePort()}`

const http = { path: '/healthz?full', headers: { 'x-probe': 'yes' } }
const often = { interval: `${intervalMs}ms`, unhealthyThreshold: 2 }
const checked = (name: string, active: object, more: object = {}) =>
  policy(`check-${name}`, `Service/${name}`, { backend: { health: { active, ...more } } })
const routed = (name: string) => routeByHost(name, { name, port: 80 })

const running = useGateway(() => ({
  args: ['--workers', '2', '--stats-address', stats],
  env: { NODE_EXTRA_CA_CERTS: caFile },
  manifests: {
    'base.yaml': manifest(
      gateway(port),
      ...['http', 'traffic', 'grpc', 'tcp', 'unhealthy', 'wrong'].map(routed),
      ...service('http', [a.port, b.port]),
      checked('http', { http, ...often }),
      ...service('traffic', [c.port, d.port]),
      checked(
        'traffic',
        { http, ...often },
        { eviction: { duration: '1h', consecutiveFailures: 1 } },
      ),
      ...service('grpc', [grpc.port, plain.port]),
      checked('grpc', { grpc: { service: 'shop.Cart' }, ...often, port: grpc.port }),
      ...service('tcp', [closed, plain.port]),
      checked('tcp', { tcp: {}, ...often, unhealthyThreshold: 1 }),
      ...service('unhealthy', [silent.port, plain.port]),
      checked('unhealthy', { http, ...often, timeout: '100ms', initialState: 'Unhealthy' }),
      ...service('shared', [failing.port, plain.port]),
      ...['first', 'second'].flatMap((name) => [
        routeByHost(name, { name: 'shared', port: 80 }),
        policy(`check-${name}`, `HTTPRoute/${name}`, {
          backend: { health: { active: { http, ...often } } },
        }),
      ]),
      policy('check-model', 'GatewayBackend/model', {
        backend: { health: { active: { http }, eviction: {} } },
      }),
      aiBackend(
        'model',
        { provider: { vendorA: {}, host: '127.0.0.1', port: 1 } },
        { health: { active: { tcp: {} } } },
      ),
      ...service('wrong', [plain.port]),
      checked('wrong', { http, interval: '1s', timeout: '2s' }),
      {
        ...staticBackend('tunnel', secure.port),
        spec: {
          static: { host: 'inside.test', port: secure.port },
          policies: {
            tls: {},
            tunnel: { url: `http://127.0.0.1:${proxy.port}` },
            health: { active: { http: { path: '/up' }, ...often } },
          },
        },
      },
      routeByHost('tunnel', toBackend('tunnel')),
    ),
    'removed.yaml': manifest(
      ...service('removed', [removed.port]),
      httpRoute('removed', {
        hostnames: [hostOf('removed')],
        rules: [{ backendRefs: [{ name: 'removed', port: 80 }] }],
      }),
      checked('removed', { http, ...often }),
    ),
  },
}))

/** The upstreams that answer 24 requests over new connections, and so both workers. */
async function reached(name: string): Promise<Set<string>> {
  const answers = await Promise.all(
    Array.from({ length: 24 }, () => running.send(port, { host: hostOf(name) })),
  )
  return new Set(answers.map(({ status, body }) => `${status} ${JSON.parse(body).upstream}`))
}

const logged = (text: string) => waitFor(text, () => running.stderr.includes(text))

async function metric(line: string): Promise<number> {
  const text = await (await fetch(`http://${stats}/metrics`)).text()
  const found = text.split('\n').find((one) => one.startsWith(`sluice_${line} `))
  return Number(found?.split(' ').at(-1))
}

describe('active health checks', () => {
  it('take out an endpoint that fails probes although it serves requests, until probes succeed', async () => {
    expect(await reached('http')).toEqual(new Set(['200 a', '200 b']))
    const backend = 'service/default/http:80'
    a.probeStatus = 503
    await logged(`health check of ${backend}: 127.0.0.1:${a.port} is unhealthy: status 503`)
    expect(await reached('http')).toEqual(new Set(['200 b']))
    await eventually(async () =>
      expect(await metric(`upstream_unhealthy_endpoints{backend="${backend}"}`)).toBe(1),
    )
    a.probeStatus = 200
    await logged(`health check of ${backend}: 127.0.0.1:${a.port} is healthy`)
    expect(await reached('http')).toEqual(new Set(['200 a', '200 b']))
    expect(
      await metric(`upstream_health_checks_total{backend="${backend}",result="failed"}`),
    ).toBeGreaterThan(1)
    expect(b.probes[0]).toMatchObject({
      method: 'GET',
      headers: { host: 'http.default.svc.cluster.local', 'x-probe': 'yes' },
    })
  })

  it('use all endpoints if all fail', async () => {
    for (const one of [a, b]) one.probeStatus = 500
    for (const one of [a, b]) await logged(`127.0.0.1:${one.port} is unhealthy: status 500`)
    expect(await reached('http')).toEqual(new Set(['200 a', '200 b']))
    for (const one of [a, b]) one.probeStatus = 200
  })

  it('do not bring back an endpoint that was ejected because requests fail', async () => {
    c.status = 500
    await eventually(async () => expect(await reached('traffic')).toEqual(new Set(['200 d'])))
    const before = c.probes.length
    await waitFor('more probes', () => c.probes.length > before + 3)
    expect(await reached('traffic')).toEqual(new Set(['200 d']))
  })

  it('send each probe once for all workers of a proxy, also while the configuration changes', async () => {
    const before = d.probedAt.length
    let changedAt = 0
    await waitFor('probes', () => {
      const change = () => manifest(routed(`route-${changedAt}`))
      if (changedAt < d.probedAt.length) running.write('change.yaml', change())
      changedAt = d.probedAt.length
      return d.probedAt.length >= before + 8
    })
    const times = d.probedAt.slice(before, before + 8)
    const gaps = times.slice(1).map((at, index) => at - (times[index] ?? 0))
    // Another worker that probed, too, would halve the mean.
    expect(gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length).toBeGreaterThan(intervalMs * 0.8)
  })

  it('ask the health service of gRPC', async () => {
    await waitFor('calls', () => grpc.asked.length > 1)
    expect(new Set(grpc.asked)).toEqual(new Set(['shop.Cart']))
    grpc.answer({ serving: 2 })
    await logged(
      `health check of service/default/grpc:80: 127.0.0.1:${grpc.port} is unhealthy: serving status 2`,
    )
    grpc.answer({ serving: 1 })
    await logged(`health check of service/default/grpc:80: 127.0.0.1:${grpc.port} is healthy`)
    grpc.answer({ error: 5 })
    await logged('is unhealthy: gRPC status 5 no')
  })

  it('connect to endpoints', async () => {
    await logged(`health check of service/default/tcp:80: 127.0.0.1:${closed} is unhealthy`)
    expect(await reached('tcp')).toEqual(new Set(['200 plain']))
  })

  it('hold for every route if policies of several routes are equal', async () => {
    await logged(
      `health check of service/default/shared:80: 127.0.0.1:${failing.port} is unhealthy`,
    )
    for (const route of ['first', 'second']) {
      await eventually(async () => expect(await reached(route)).toEqual(new Set(['200 plain'])))
    }
  })

  it('do not use an endpoint before its first result if initialState is Unhealthy', async () => {
    await logged(`health check of service/default/unhealthy:80: 127.0.0.1:${plain.port} is healthy`)
    expect(await reached('unhealthy')).toEqual(new Set(['200 plain']))
  })

  it('use the TLS and the proxy of the backend', async () => {
    await waitFor('probes', () => secure.received.length > 2)
    expect(secure.received[0]).toMatchObject({
      path: '/up',
      headers: { host: `inside.test:${secure.port}` },
      tls: { serverName: 'inside.test' },
    })
    expect(new Set(proxy.asked)).toEqual(new Set([`inside.test:${secure.port}`]))
  })

  it('end when the backend is removed', async () => {
    await waitFor('probes', () => removed.probes.length > 2)
    running.remove('removed.yaml')
    await running.sendUntil(port, { host: hostOf('removed') }, ({ status }) => status === 404)
    const before = d.probes.length
    await waitFor('the configuration of both workers', () => d.probes.length > before + 3)
    const last = removed.probes.length
    await waitFor('probes of others', () => d.probes.length > before + 8)
    expect(removed.probes.length).toBe(last)
  })

  it('are reported on backends whose endpoints are not checked', async () => {
    const message = 'health.active has no effect on backends of type ai'
    for (const [kind, name] of [
      ['GatewayPolicy', 'check-model'],
      ['GatewayBackend', 'model'],
    ] as const) {
      await eventually(async () =>
        expect(JSON.stringify(await running.status(kind, name))).toContain(message),
      )
    }
  })

  it('are reported if their times are impossible, and then send nothing', async () => {
    const status = await waitFor('the status', () => running.status('GatewayPolicy', 'check-wrong'))
    expect(JSON.stringify(status)).toContain('must not be longer than interval')
    expect(plain.received.filter(({ headers }) => headers.host?.includes('wrong'))).toEqual([])
  })
})
