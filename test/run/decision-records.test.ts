/** What a running gateway records of its decisions, and when. */
import { existsSync, rmSync } from 'node:fs'
import { connect } from 'node:http2'
import { join } from 'node:path'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect as connectNats } from '@nats-io/transport-node'
import { describe, expect, it } from 'vitest'
import { readFolder } from '../../src/past/decisions/read.ts'
import type { RecordedDecision } from '../../src/past/decisions/record.ts'
import { ClusterRig, stablePort } from '../support/cluster-rig.ts'
import { useFixture, useFolder, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, sluice } from '../support/gateway.ts'
import { send } from '../support/http-client.ts'
import { gateway, httpRoute, manifest, staticBackend, toBackend } from '../support/manifests.ts'
import { startNatsServer } from '../support/nats-server.ts'
import { describeWithParts } from '../support/parts.ts'
import { waitFor } from '../support/wait-for.ts'

const upstream = useUpstream('main', ({ path }, response) => {
  if (path.startsWith('/vendor')) response.setHeader('x-request-id', 'req_vendor-1')
  response.end()
})

const objects = (port: number, host = 'shop.example') => [
  gateway(port),
  staticBackend('main', upstream.port),
  httpRoute('shop', {
    hostnames: [host],
    rules: [
      {
        matches: [{ headers: [{ name: 'X-Tenant', value: 'blue' }] }],
        backendRefs: [toBackend('main')],
      },
    ],
  }),
]

const read = (folder: string): RecordedDecision[] =>
  existsSync(folder)
    ? [...readFolder(folder)].flatMap((result) => ('decision' in result ? [result.decision] : []))
    : []

/** Waits for the record with an id. */
const recordOf = (folder: string, id: unknown) =>
  waitFor(`the record ${id}`, () => read(folder).find((decision) => decision.id === id))

const blue = { host: 'shop.example', 'x-tenant': 'blue' }

describe('records of decisions', async () => {
  const port = await freePort()
  const stats = await freePort()
  const folder = join(useFolder('sluice-records-'), 'decisions')
  const gw = useGateway(() => ({
    manifests: { 'all.yaml': manifest(...objects(port)) },
    args: ['--record', 'all', '--record-dir', folder, '--stats-address', `127.0.0.1:${stats}`],
    env: { SLUICE_RECORD_HIDE: 'X-Session,session' },
  }))

  it('describe the request, its route and its response', async () => {
    const { headers } = await gw.send(port, { path: '/cart?item=1', headers: blue })
    const record = await recordOf(folder, headers['x-request-id'])
    expect(record).toMatchObject({
      proxy: 'local',
      worker: 0,
      request: { method: 'GET', host: 'shop.example', path: '/cart', query: 'item=1', port },
      route: {
        gateway: 'default/edge',
        listener: 'http',
        route: 'HTTPRoute default/shop',
        rule: 0,
      },
      response: { status: 200, reason: 'Upstream', ending: 'complete' },
    })
    expect(record.route.endpoint).toBe(`127.0.0.1:${upstream.port}`)
  })

  it('keep a valid id of the client, and replace others', async () => {
    const ids = ['trace-1.a', 'no spaces', 'x'.repeat(129)]
    const answers = await Promise.all(
      ids.map((id) => gw.send(port, { headers: { ...blue, 'x-request-id': id } })),
    )
    const [kept, ...made] = answers.map(({ headers }) => headers['x-request-id'])
    expect(kept).toBe('trace-1.a')
    for (const id of made) expect(id).toMatch(/^[0-9a-f]{12}-\d+$/)
  })

  it('keep the id of the upstream if the client sends none', async () => {
    const [vendors, clients] = await Promise.all([
      gw.send(port, { path: '/vendor', headers: blue }),
      gw.send(port, { path: '/vendor', headers: { ...blue, 'x-request-id': 'mine' } }),
    ])
    expect(vendors.headers['x-request-id']).toBe('req_vendor-1')
    expect(clients.headers['x-request-id']).toBe('mine')
    expect((await recordOf(folder, 'req_vendor-1')).request.path).toBe('/vendor')
  })

  it('contain the values of headers only if the configuration refers to them', async () => {
    const sent = { ...blue, 'x-other': 'other', authorization: 'Bearer t0ken', 'x-session': 's3ss' }
    const path = '/?session=s3ss&key=k3y&q=1'
    const { headers } = await gw.send(port, { path, headers: sent })
    const { request } = await recordOf(folder, headers['x-request-id'])
    const fields = Object.fromEntries(request.headers.map(({ name, ...rest }) => [name, rest]))
    expect(fields['x-tenant']).toMatchObject({ value: 'blue' })
    expect(fields['x-other']).toEqual({ digest: expect.stringMatching(/^[0-9a-f]{16}$/) })
    expect(fields.authorization).toEqual({})
    expect(fields['x-session']).toEqual({})
    expect(request.query).toBe('session=<redacted>&key=k3y&q=1')
  })

  it('have one digest for one value', async () => {
    const ask = async (value: string) => {
      const { headers } = await gw.send(port, { headers: { ...blue, 'x-other': value } })
      const { request } = await recordOf(folder, headers['x-request-id'])
      return request.headers.find(({ name }) => name === 'x-other')?.digest
    }
    const [first, second, third] = [await ask('a'), await ask('b'), await ask('a')]
    expect(first).toBe(third)
    expect(first).not.toBe(second)
  })

  it('have the fields of their own request, although clients send the same ones again', async () => {
    const ask = async (value: string) => {
      const sent = { ...blue, accept: `text/${value}`, 'x-other': value }
      const { headers } = await gw.send(port, { headers: sent })
      return headers['x-request-id']
    }
    const ids: unknown[] = []
    // Faster than a block is written, so that the fields are repeated in one block.
    for (const value of ['a', 'b', 'a', 'b', 'A', 'a']) ids.push(await ask(value))
    const [a, b, a2, b2, upper, a3] = await Promise.all(
      ids.map(async (id) => (await recordOf(folder, id)).request.headers),
    )
    expect(a?.map(({ name }) => name)).toEqual(expect.arrayContaining(['accept', 'x-other']))
    expect(a2).toEqual(a)
    expect(a3).toEqual(a)
    expect(b2).toEqual(b)
    const differing = (other: typeof a) =>
      a?.flatMap((field, at) => (field.digest === other?.[at]?.digest ? [] : field.name))
    expect(differing(b)?.sort()).toEqual(['accept', 'x-other'])
    expect(differing(upper)?.sort()).toEqual(['accept', 'x-other'])
  })

  it('describe requests over HTTP/2', async () => {
    const session = connect(`http://127.0.0.1:${port}`)
    try {
      const stream = session.request({
        ':path': '/h2',
        ':authority': 'shop.example',
        'x-tenant': 'blue',
      })
      const id = await new Promise<unknown>((resolve, reject) => {
        stream.on('response', (headers) => resolve(headers['x-request-id'])).on('error', reject)
      })
      const { request } = await recordOf(folder, id)
      expect(request).toMatchObject({ protocol: 'HTTP/2', host: 'shop.example', path: '/h2' })
      expect(request.headers).toContainEqual(
        expect.objectContaining({ name: 'x-tenant', value: 'blue' }),
      )
    } finally {
      session.close()
    }
  })

  it('say that they are incomplete if a request has more fields or longer texts than they keep', async () => {
    const session = connect(`http://127.0.0.1:${port}`)
    const headers = { ':authority': 'shop.example', 'x-tenant': 'blue' }
    const many = Object.fromEntries(Array.from({ length: 140 }, (_, n) => [`x-${n}`, `${n}`]))
    try {
      const asked = [
        { ...headers, ':path': `/${'p'.repeat(9_000)}` },
        { ...headers, ...many, ':path': '/many' },
      ].map((request) => {
        const stream = session.request(request)
        return new Promise<unknown>((resolve, reject) => {
          stream.on('response', (answer) => resolve(answer['x-request-id'])).on('error', reject)
        })
      })
      for (const id of await Promise.all(asked)) {
        expect(await recordOf(folder, id)).toMatchObject({ isCut: true })
      }
    } finally {
      session.close()
    }
  })

  it('name the log position of the configuration that was in force', async () => {
    const before = await gw.send(port, { headers: blue })
    gw.write('all.yaml', manifest(...objects(port, 'new.example')))
    const changed = { headers: { ...blue, host: 'new.example' } }
    const after = await gw.sendUntil(port, changed, ({ status }) => status === 200)
    const old = await recordOf(folder, before.headers['x-request-id'])
    const { position } = await recordOf(folder, after.headers['x-request-id'])
    expect(position).toBeGreaterThan(old.position)
    gw.write('all.yaml', manifest(...objects(port)))
    await gw.sendUntil(port, { headers: blue }, ({ status }) => status === 200)
  })

  it('survive a crash of the process', async () => {
    const { headers } = await gw.send(port, { headers: blue })
    const id = headers['x-request-id']
    await recordOf(folder, id)
    await gw.kill()
    await gw.start()
    const later = await gw.send(port, { headers: blue })
    await recordOf(folder, later.headers['x-request-id'])
    expect(read(folder).map((record) => record.id)).toContain(id)
  })

  it('are lost, and counted, if they cannot be written, while requests are served', async () => {
    await gw.stop()
    await gw.start()
    rmSync(folder, { recursive: true })
    expect((await gw.send(port, { headers: blue })).status).toBe(200)
    const lost = await waitFor('the metric', async () => {
      const { body } = await gw.send(stats, { path: '/metrics' })
      return /^sluice_decisions_lost_total ([1-9]\d*)$/m.exec(body)?.[1]
    })
    expect(Number(lost)).toBeGreaterThan(0)
  })
})

describe('records by default', async () => {
  const port = await freePort()
  const gw = useGateway(() => ({ manifests: objects(port) }))

  it('contain only requests that fail, in a folder next to the event log', async () => {
    const good = await gw.send(port, { headers: blue })
    expect(good.headers['x-request-id']).toBeUndefined()
    const refused = await gw.send(port, { headers: { host: 'unknown.example' } })
    const folder = `${gw.logFile}.decisions`
    const record = await recordOf(folder, refused.headers['x-request-id'])
    expect(record.response).toMatchObject({ status: 404, error: expect.stringContaining('route') })
    expect(read(folder)).toHaveLength(1)
  })
})

describe('records that are off', async () => {
  const port = await freePort()
  const gw = useGateway(() => ({ manifests: objects(port), args: ['--record', 'off'] }))

  it('leave no folder and no header', async () => {
    const refused = await gw.send(port, { headers: { host: 'unknown.example' } })
    expect(refused.headers['x-request-id']).toBeUndefined()
    expect(existsSync(`${gw.logFile}.decisions`)).toBe(false)
  })
})

describe('a folder for records that cannot be made', async () => {
  const port = await freePort()
  const gw = useGateway(() => ({ manifests: objects(port), args: ['--record-dir', '/proc/none'] }))

  it('is reported, and requests are served', async () => {
    expect((await gw.send(port, { headers: blue })).status).toBe(200)
    expect(gw.stderr).toMatch(/decisions are not recorded: .*\/proc\/none/)
  })
})

describe('records of a proxy that a controller configures', () => {
  it("name the position in the controller's log", async () => {
    const port = await stablePort()
    const rig = new ClusterRig({ 'all.yaml': manifest(...objects(port)) })
    try {
      const plane = await rig.controlPlane()
      const folder = join(rig.folder, 'decisions')
      const args = ['--record', 'all', '--record-dir', folder]
      await rig.proxy({ name: 'edge-1', addresses: [plane.address], args }).start()
      const { headers } = await send(port, { headers: blue })
      const { proxy, position } = await recordOf(folder, headers['x-request-id'])
      expect(proxy).toBe('edge-1')
      const { stdout } = await sluice('status', '--log-file', plane.logFile, '--at', `${position}`)
      expect(stdout).toContain('HTTPRoute default/shop')
    } finally {
      await rig.dispose()
    }
  }, 60_000)
})

describeWithParts(
  ['nats-server'],
  'records of a gateway whose log is on a NATS server',
  async () => {
    const port = await freePort()
    const server = useFixture(startNatsServer, (started) => started.remove())
    const gw = useGateway(() => ({
      manifests: objects(port),
      nats: server.url,
      args: ['--record', 'all'],
      env: { XDG_STATE_HOME: server.folder },
    }))

    it('are published to the stream SLUICE_DECISIONS', async () => {
      const { headers } = await gw.send(port, { headers: blue })
      const connection = await connectNats({ servers: server.url })
      try {
        const manager = await jetstreamManager(connection)
        await waitFor('a block', async () => {
          const found = await manager.streams.info('SLUICE_DECISIONS').catch(() => undefined)
          return (found?.state.messages ?? 0) > 0
        })
        const consumer = await jetstream(connection).consumers.get('SLUICE_DECISIONS')
        const message = await consumer.next()
        const block = Buffer.from(message?.data ?? [])
        expect(block.toString('latin1', 0, 4)).toBe('SLD1')
        expect(block.includes(String(headers['x-request-id']))).toBe(true)
      } finally {
        await connection.close()
      }
    })

    it('never delay requests when the server is gone', async () => {
      await server.kill()
      for (let round = 0; round < 20; round++) {
        expect((await gw.send(port, { headers: blue })).status).toBe(200)
      }
    })
  },
)
