import { afterEach, describe, expect, it } from 'vitest'
import { InProcessChannel } from '../../src/control/xds/channel.ts'
import { type Routes, type SmallServer, serve } from '../../src/engines/local-server/server.ts'
import { configDump } from '../../src/gateway/proxy/admin/config-dump.ts'
import { adminRoutes, readinessRoutes, statsRoutes } from '../../src/gateway/proxy/admin/routes.ts'
import { expose } from '../../src/gateway/proxy/telemetry/exposition.ts'
import type { PolicyResource, VersionedResource } from '../../src/ground/model/resources.ts'
import { send } from '../support/http-client.ts'

const servers: SmallServer[] = []
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()))
})

async function open(routes: Routes, address = '127.0.0.1:0') {
  const server = await serve('test', address, routes)
  if (server === undefined) throw new Error('off')
  servers.push(server)
  return async (method: string, path: string, headers: Record<string, string> = {}) => {
    const port = Number(server.address.split(':').at(-1))
    const answer = await send(port, { method, path, headers })
    const type = answer.headers['content-type']
    return { status: answer.status, type, text: answer.body }
  }
}

describe('the readiness address', () => {
  it('reports what it waits for, then is ready, and accepts only GET and HEAD', async () => {
    let pending = ['configuration of worker 0', 'port 80']
    let unserved: string[] = []
    const parts = { pending: () => pending, unserved: () => unserved }
    const call = await open(readinessRoutes(parts))
    expect(await call('GET', '/healthz/ready')).toMatchObject({
      status: 500,
      text: 'not ready, pending: configuration of worker 0, port 80\n',
    })
    pending = []
    expect(await call('GET', '/healthz/ready')).toMatchObject({ status: 200, text: 'ready\n' })
    unserved = ['port 81', 'port 53/udp']
    expect(await call('GET', '/healthz/ready')).toMatchObject({
      status: 200,
      text: 'ready, without: port 81, port 53/udp\n',
    })
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
      expect((await call(method, '/healthz/ready')).status).toBe(405)
    }
    expect(await call('HEAD', '/healthz/ready')).toMatchObject({ status: 200, text: '' })
    expect((await call('GET', '/')).status).toBe(404)
    expect((await call('GET', '/constructor')).status).toBe(404)
  })
})

describe('the stats address', () => {
  it('serves the text format on both paths', async () => {
    const call = await open(
      statsRoutes(async () => expose({ workers: [{ labels: [], values: [1] }] })),
    )
    for (const path of ['/metrics', '/stats/prometheus']) {
      expect(await call('GET', path)).toEqual({
        status: 200,
        type: 'text/plain; version=0.0.4; charset=utf-8',
        text: expect.stringMatching(/^sluice_workers 1$/m),
      })
    }
  })

  it('hides the details of internal errors', async () => {
    const call = await open(statsRoutes(() => Promise.reject(new Error('inner'))))
    expect(await call('GET', '/metrics')).toMatchObject({ status: 500, text: 'internal error\n' })
  })
})

const noSeries = () => Promise.reject(new Error('nobody asks for them'))

describe('the admin address', () => {
  const parts = () => {
    const quits: string[] = []
    const log = { level: 'info' }
    const quit = () => quits.push('quit')
    return { log, quits, dump: () => '{}', rotateTickets: () => {}, quit, series: noSeries }
  }

  it('shows and sets the level of the operational log', async () => {
    const admin = parts()
    const call = await open(adminRoutes(admin))
    const current = (level: string) => ({ status: 200, text: `current log level is ${level}\n` })
    expect(await call('GET', '/logging')).toMatchObject(current('info'))
    expect(await call('POST', '/logging?level=debug')).toMatchObject(current('debug'))
    expect(admin.log.level).toBe('debug')
    expect(await call('POST', '/logging')).toMatchObject(current('debug'))
    expect((await call('POST', '/logging?level=loud')).status).toBe(400)
    expect(await call('POST', '/logging?reset')).toMatchObject(current('info'))
  })

  it('shuts down the process only on POST', async () => {
    const admin = parts()
    const call = await open(adminRoutes(admin))
    expect((await call('GET', '/quitquitquit')).status).toBe(405)
    expect(admin.quits).toEqual([])
    expect((await call('POST', '/quitquitquit')).status).toBe(200)
    expect(admin.quits).toEqual(['quit'])
  })
})

describe('requests from web pages to the admin address', () => {
  it.each<Record<string, string>>([
    { origin: 'https://evil.example.com' },
    { 'sec-fetch-site': 'cross-site' },
    { host: 'rebound.example.com:15000' },
  ])('are refused: %j', async (headers) => {
    const quits: string[] = []
    const quit = () => quits.push('quit')
    const call = await open(
      adminRoutes({ dump: () => '{}', rotateTickets: () => {}, quit, series: noSeries }),
    )
    expect((await call('POST', '/quitquitquit', headers)).status).toBe(403)
    expect((await call('GET', '/config_dump', headers)).status).toBe(403)
    expect(quits).toEqual([])
    for (const host of ['localhost:15000', '127.0.0.1', '[::1]:15000']) {
      expect((await call('GET', '/config_dump', { host })).status).toBe(200)
    }
  })
})

describe('admin addresses', () => {
  it('may be switched off', async () => expect(await serve('test', 'off', {})).toBeUndefined())

  it('may omit the host', async () => {
    const server = await serve(
      'test',
      ':0',
      statsRoutes(async () => expose({})),
    )
    if (server !== undefined) servers.push(server)
    const port = server?.address.split(':').at(-1)
    expect((await fetch(`http://127.0.0.1:${port}/metrics`)).status).toBe(200)
  })

  it('are reported with the name of their server if they are in use', async () => {
    await open({})
    const address = servers[0]?.address ?? ''
    await expect(serve('readiness', address, {})).rejects.toMatchObject({
      code: 'port_in_use',
      message: `port is already in use: readiness address ${address}`,
    })
    // Reserved for documentation (RFC 5737).
    await expect(serve('stats', '192.0.2.1:1', {})).rejects.toMatchObject({
      code: 'address_unusable',
      message:
        'address cannot be listened on: stats address 192.0.2.1:1: this machine does not have that address',
    })
  })
})

describe('the configuration dump', () => {
  const policy = (config: string): VersionedResource => ({
    version: 'v1',
    resource: {
      type: 'policy',
      key: 'policy/traffic/ns/p/auth/x',
      created: 0,
      order: 1,
      policy: { namespace: 'ns', name: 'p' },
      section: 'traffic',
      field: 'auth',
      phase: 'PostRouting',
      target: { kind: 'Gateway', namespace: 'ns', name: 'gw' },
      configVersion: 1,
      config,
    } satisfies PolicyResource,
  })
  const facts = {
    version: '1.2.3',
    sequence: 4,
    rejected: [],
    workers: [{ index: 0, sequence: 4 }],
  }

  it('shows versions, resources by type and the compiled form of policies, without credentials', () => {
    const ignore = () => undefined
    const channel = new InProcessChannel({ onAck: ignore, onReject: ignore, onRecover: ignore })
    const config = {
      mode: 'Strict',
      key: 'hunter2',
      set: [
        { name: 'Authorization', value: 'Bearer hunter2' },
        { name: 'x-team', value: 'blue' },
      ],
    }
    channel.publish({ sequence: 4, upserted: [policy(JSON.stringify(config))], removed: [] })
    const text = configDump(channel, facts)
    expect(text).not.toContain('hunter2')
    expect(JSON.parse(text)).toMatchObject({
      version: '1.2.3',
      published: 4,
      sequence: 4,
      workers: [{ index: 0, sequence: 4 }],
      resources: {
        policy: [
          {
            key: 'policy/traffic/ns/p/auth/x',
            version: 'v1',
            field: 'auth',
            config: {
              mode: 'Strict',
              key: '<redacted>',
              set: [
                { name: 'Authorization', value: '<redacted>' },
                { name: 'x-team', value: 'blue' },
              ],
            },
          },
        ],
      },
    })
  })

  it('is available before the first configuration', () => {
    const ignore = () => undefined
    const channel = new InProcessChannel({ onAck: ignore, onReject: ignore, onRecover: ignore })
    expect(JSON.parse(configDump(channel, facts))).toMatchObject({ published: -1, resources: {} })
  })
})
