import { fromBinary } from '@bufbuild/protobuf'
import { status } from '@grpc/grpc-js'
import { afterEach, describe, expect, it } from 'vitest'
import { ResourceSchema } from '../../../proto/gen/resource_pb.ts'
import { waitFor } from '../../../test/support/wait-for.ts'
import { BareClient, edgeNode } from '../../../test/support/xds-client.ts'
import type { ObjectName } from '../../ground/model/names.ts'
import type { Resource, RouteResource, VersionedResource } from '../../ground/model/resources.ts'
import { contentVersion } from '../wire/content-version.ts'
import type { DeltaResponse } from '../wire/discovery.ts'
import type { ProxyReports } from './delivery-recorder.ts'
import { XdsServer, type XdsServerOptions } from './server.ts'

const edge = { namespace: 'ns', name: 'edge' }
const other = { namespace: 'ns', name: 'other' }

const versioned = (resource: Resource, version = '1'): VersionedResource => ({ version, resource })

const listener = (gateway: ObjectName): VersionedResource =>
  versioned({
    type: 'listener',
    key: `listener/Gateway/ns/${gateway.name}/http`,
    gateway,
    owner: { kind: 'Gateway', ...gateway },
    section: 'http',
    port: 80,
    protocol: 'HTTP',
    hostname: '',
  })

const route = (name: string, gateway: ObjectName, service: string, version = '1') =>
  versioned(
    {
      type: 'route',
      key: `route/HTTPRoute/ns/${name}/0`,
      route: { kind: 'HTTPRoute', namespace: 'ns', name },
      created: 1,
      order: 0,
      ruleIndex: 0,
      attachments: [{ listener: `listener/Gateway/ns/${gateway.name}/http`, hostnames: [''] }],
      matches: [],
      filters: [],
      backends: [
        {
          weight: 1,
          target: { type: 'service', namespace: 'ns', name: service, port: 80 },
          filters: [],
        },
      ],
    },
    version,
  )

/** A route that listeners of several Gateways serve. */
function shared(gateways: readonly ObjectName[]): VersionedResource {
  const rules = gateways.map((gateway) => route('shared', gateway, 'a').resource as RouteResource)
  const attachments = rules.flatMap((rule) => rule.attachments)
  const resource = { ...(rules[0] as RouteResource), attachments }
  return versioned(resource, contentVersion(resource))
}

const service = (name: string, version = '1') =>
  versioned(
    {
      type: 'service',
      key: `service/ns/${name}`,
      namespace: 'ns',
      name,
      ports: [],
      publishNotReady: false,
    },
    version,
  )

const running: { close(): unknown }[] = []
afterEach(async () => {
  for (const one of running.splice(0).reverse()) await one.close()
})

async function start(options: Partial<XdsServerOptions> = {}) {
  const told: unknown[][] = []
  const reports: ProxyReports = {
    connected: (proxy, { gateway, address }) => told.push(['connected', proxy, gateway, address]),
    disconnected: (proxy) => told.push(['disconnected', proxy]),
    onAck: (...report) => told.push(['ack', ...report]),
    onReject: (...report) => told.push(['reject', ...report]),
    onRecover: (...report) => told.push(['recover', ...report]),
  }
  const server = await new XdsServer({ address: '127.0.0.1:0', reports, ...options }).start()
  running.push(server)
  const heard = (...event: unknown[]) =>
    waitFor(event.join(' '), () =>
      told.some((one) => JSON.stringify(one) === JSON.stringify(event)),
    )
  return { server, told, heard }
}

function connect(server: XdsServer, token?: string): BareClient {
  const client = new BareClient({ address: server.address, ...(token && { token }) })
  running.push(client)
  return client
}

const keys = ({ upserted }: DeltaResponse) => upserted.map(({ key }) => key)

/** Listeners that the routes of a response name. */
const listenersIn = ({ upserted }: DeltaResponse) =>
  upserted.flatMap(({ body }) => {
    const { kind } = fromBinary(ResourceSchema, body)
    return kind.case === 'route' ? kind.value.attachments.map((one) => one.listener) : []
  })

const state = (...upserted: VersionedResource[]) => ({ sequence: 1, upserted, removed: [] })

describe('the xDS server', () => {
  it('refuses streams before the first listing is published', async () => {
    const { server } = await start()
    expect((await connect(server).hello().end()).code).toBe(status.UNAVAILABLE)
  })

  it('sends only what the Gateway needs, dependencies first', async () => {
    const { server, heard } = await start()
    server.publish(
      state(
        route('r', edge, 'a'),
        listener(edge),
        listener(other),
        service('a'),
        service('b'),
        route('s', other, 'b'),
      ),
    )
    const client = connect(server).hello()
    const response = await client.next()
    expect(keys(response)).toEqual([
      'service/ns/a',
      'listener/Gateway/ns/edge/http',
      'route/HTTPRoute/ns/r/0',
    ])
    expect(response).toMatchObject({ position: '1', removed: [], isPartial: false })
    await heard('connected', 'edge-1', 'ns/edge', '10.0.0.1')
    client.accept(response)
    await heard('ack', 'edge-1', 1)
  })

  it('sends another state to the proxies that are diverted, and takes it back', async () => {
    const { server, heard, told } = await start()
    const old = [listener(edge), route('r', edge, 'a'), service('a')]
    server.publish(state(...old))
    const [first, second] = ['edge-1', 'edge-2'].map((name) =>
      connect(server).hello({ ...edgeNode, name }),
    )
    if (first === undefined || second === undefined) throw new Error('no clients')
    for (const client of [first, second]) client.accept(await client.next())
    await Promise.all([heard('ack', 'edge-1', 1), heard('ack', 'edge-2', 1)])
    const upserted = [listener(edge), route('r', edge, 'b', '2'), service('b')]
    const delta = { sequence: 2, upserted, removed: [] }
    server.publish({ ...delta, upserted: [] }, { proxies: new Set(['edge-1']), delta, isNew: true })
    const moved = await first.next()
    expect([keys(moved), moved.removed]).toEqual([
      ['service/ns/b', 'route/HTTPRoute/ns/r/0'],
      ['service/ns/a'],
    ])
    await heard('ack', 'edge-2', 2)
    expect(told).not.toContainEqual(['ack', 'edge-1', 2])
    first.accept(moved)
    await heard('ack', 'edge-1', 2)
    server.publish({ sequence: 3, upserted: [], removed: [] }, null)
    expect(keys(await first.next())).toEqual(['service/ns/a', 'route/HTTPRoute/ns/r/0'])
    expect(second.responses).toEqual([])
  })

  it('reports with an empty state', async () => {
    const { server } = await start()
    server.publish(state())
    expect(keys(await connect(server).hello().next())).toEqual([])
  })

  it('sends only differences to the versions of the proxy, and removals, when it resumes', async () => {
    const { server } = await start()
    server.publish(state(listener(edge), route('r', edge, 'a', '2'), service('a')))
    const response = await connect(server)
      .hello(edgeNode, {
        'listener/Gateway/ns/edge/http': '1',
        'route/HTTPRoute/ns/r/0': '1',
        'service/ns/a': '1',
        'service/ns/b': '1',
      })
      .next()
    expect(keys(response)).toEqual(['route/HTTPRoute/ns/r/0'])
    expect(response.removed).toEqual(['service/ns/b'])
  })

  it('removes what is no longer reachable from the Gateway, after additions', async () => {
    const { server } = await start()
    server.publish(state(listener(edge), route('r', edge, 'a'), service('a'), service('b')))
    const client = connect(server).hello()
    client.accept(await client.next())
    server.publish({ sequence: 2, upserted: [route('r', edge, 'b', '2')], removed: [] })
    const moved = await client.next()
    expect(keys(moved)).toEqual(['service/ns/b', 'route/HTTPRoute/ns/r/0'])
    expect(moved.removed).toEqual(['service/ns/a'])
  })

  it('counts a change for another Gateway as acknowledged at once, and sends nothing', async () => {
    const { server, heard } = await start()
    server.publish(state(listener(edge), listener(other)))
    const client = connect(server).hello()
    client.accept(await client.next())
    await heard('ack', 'edge-1', 1)
    server.publish({ sequence: 7, upserted: [route('x', other, 'b')], removed: [] })
    await heard('ack', 'edge-1', 7)
    expect(client.responses).toEqual([])
  })

  it('sends each Gateway of a shared route its own listeners only', async () => {
    const { server, heard } = await start()
    server.publish(state(listener(edge), listener(other), shared([edge, other]), service('a')))
    const client = connect(server).hello()
    const first = await client.next()
    expect(listenersIn(first)).toEqual(['listener/Gateway/ns/edge/http'])
    client.accept(first)
    await heard('ack', 'edge-1', 1)
    // Another Gateway gives the route up, which is nothing to this one.
    server.publish({ sequence: 2, upserted: [shared([edge])], removed: [] })
    await heard('ack', 'edge-1', 2)
    expect(client.responses).toEqual([])
    const whole = first.upserted.find(({ key }) => key.startsWith('route/'))?.version
    const resumed = connect(server).hello(edgeNode, { 'route/HTTPRoute/ns/shared/0': whole ?? '' })
    expect(keys(await resumed.next())).not.toContain('route/HTTPRoute/ns/shared/0')
  })

  it('sends a shared route again if one of its listeners moves to another Gateway', async () => {
    const { server } = await start()
    const moving = { namespace: 'ns', name: 'set' }
    const entry = (gateway: ObjectName, version: string): VersionedResource => {
      const { resource } = listener(moving)
      return versioned({ ...resource, gateway } as Resource, version)
    }
    const both = shared([edge, moving])
    server.publish(state(listener(edge), listener(other), entry(edge, '1'), both, service('a')))
    const client = connect(server).hello()
    const first = await client.next()
    expect(listenersIn(first)).toHaveLength(2)
    client.accept(first)
    server.publish({ sequence: 2, upserted: [entry(other, '2')], removed: [] })
    const second = await client.next()
    expect(listenersIn(second)).toEqual(['listener/Gateway/ns/edge/http'])
    expect(second.removed).toEqual(['listener/Gateway/ns/set/http'])
  })

  it('collects changes while an answer is pending, and sends the last version of each resource', async () => {
    const { server, heard, told } = await start()
    server.publish(state(listener(edge), route('r', edge, 'a'), service('a')))
    const client = connect(server).hello()
    const first = await client.next()
    for (let sequence = 2; sequence <= 9; sequence++) {
      server.publish({ sequence, upserted: [service('a', `${sequence}`)], removed: [] })
    }
    client.accept(first)
    const second = await client.next()
    expect(second).toMatchObject({ position: '9', upserted: [{ version: '9' }] })
    client.accept(second)
    await heard('ack', 'edge-1', 9)
    expect(told.filter(([what]) => what === 'ack')).toHaveLength(2)
  })

  it('sends a large state in parts, and reports only the ack of the last one', async () => {
    const { server, told, heard } = await start({ partBytes: 1_000 })
    const routes = Array.from({ length: 100 }, (_, n) => route(`r${n}`, edge, 'a'))
    server.publish(state(listener(edge), ...routes))
    const client = connect(server).hello()
    const all: string[] = []
    for (;;) {
      const part = await client.next()
      all.push(...keys(part))
      client.accept(part)
      if (!part.isPartial) break
      expect(told.map(([what]) => what)).not.toContain('ack')
    }
    expect(new Set(all).size).toBe(101)
    await heard('ack', 'edge-1', 1)
  })

  it('reports each rejection once, and its recovery', async () => {
    const { server, told, heard } = await start()
    server.publish(state(listener(edge)))
    const client = connect(server).hello()
    const { nonce } = await client.next()
    const key = 'listener/Gateway/ns/edge/http'
    const rejections = [{ key, code: 'port_in_use', message: 'taken' }]
    const rejected = { rejections, omitted: 0, message: 'one' }
    client.say({ nonce, rejected }).say({ nonce, rejected })
    await heard('reject', 'edge-1', 1, key, 'port_in_use', 'taken')
    client.say({ nonce })
    await heard('recover', 'edge-1', 1, key)
    expect(told.map(([what]) => what)).toEqual([
      'connected',
      'reject',
      'ack',
      'ack',
      'recover',
      'ack',
    ])
    expect(server.metrics()).toMatch(/^sluice_xds_rejects_total 1$/m)
  })

  it('attributes a rejection without a name to the whole Gateway', async () => {
    const { server, heard } = await start()
    server.publish(state(listener(edge)))
    const client = connect(server).hello()
    const { nonce } = await client.next()
    client.say({ nonce, rejected: { rejections: [], omitted: 0, message: 'no' } })
    await heard('reject', 'edge-1', 1, 'gateway/ns/edge', 'resource_unreadable', 'no')
    client.say({ nonce })
    await heard('recover', 'edge-1', 1, 'gateway/ns/edge')
  })

  it('refuses a first request without a node', async () => {
    const { server } = await start()
    server.publish(state())
    const { code } = await connect(server).say({}).end()
    expect(code).toBe(status.INVALID_ARGUMENT)
  })

  it('refuses proxies with an invalid identity or of another Gateway', async () => {
    const { server, told } = await start({
      verify: async ({ token }) => (token === 'right' ? { gateway: edge } : undefined),
    })
    server.publish(state(listener(edge)))
    expect((await connect(server).hello().end()).code).toBe(status.UNAUTHENTICATED)
    expect((await connect(server, 'wrong').hello().end()).code).toBe(status.UNAUTHENTICATED)
    const stranger = connect(server, 'right').hello({ ...edgeNode, gateway: other })
    expect((await stranger.end()).code).toBe(status.PERMISSION_DENIED)
    expect(told).toEqual([])
    expect(keys(await connect(server, 'right').hello().next())).toHaveLength(1)
  })

  it('replaces the stream of a proxy that reconnects', async () => {
    const { server, told, heard } = await start()
    server.publish(state())
    const first = connect(server).hello()
    await first.next()
    const second = connect(server).hello()
    await second.next()
    expect((await first.end()).code).toBe(status.ABORTED)
    second.close()
    await heard('disconnected', 'edge-1')
    expect(told.map(([what]) => what)).toEqual(['connected', 'connected', 'disconnected'])
  })

  it('reports a duplicate proxy name, and refuses the name for another Gateway', async () => {
    const notices: string[] = []
    const { server, told } = await start({ onNotice: (text) => notices.push(text) })
    server.publish(state(listener(edge), listener(other)))
    const first = connect(server).hello()
    await first.next()
    const stranger = connect(server).hello({ ...edgeNode, gateway: other })
    expect(await stranger.end()).toMatchObject({
      code: status.ALREADY_EXISTS,
      details: expect.stringContaining('SLUICE_PROXY_NAME'),
    })
    expect(first.ended).toBeUndefined()
    await connect(server).hello().next()
    await first.end()
    expect(notices).toEqual([
      expect.stringContaining('a proxy of another Gateway has the name edge-1'),
      expect.stringContaining('Proxy edge-1 reconnected from'),
    ])
    expect(told.map(([what]) => what)).toEqual(['connected', 'connected'])
  })

  it('drops a proxy that does not answer in time', async () => {
    const { server, heard } = await start({ ackTimeoutMs: 50 })
    server.publish(state())
    const client = connect(server).hello()
    await client.next()
    expect((await client.end()).code).toBe(status.DEADLINE_EXCEEDED)
    await heard('disconnected', 'edge-1')
    expect(server.metrics()).toMatch(/^sluice_xds_dropped_streams_total 1$/m)
  })

  it('reports proxies that do not return after a restart', async () => {
    const { server, told, heard } = await start({ returnLimitMs: 1 })
    server.publish(state())
    await connect(server).hello().next()
    server.expect(['edge-1', 'edge-2'])
    await heard('disconnected', 'edge-2')
    expect(told.filter(([what]) => what === 'disconnected')).toHaveLength(1)
  })

  it('ends streams with UNAVAILABLE when it stops', async () => {
    const { server } = await start()
    server.publish(state())
    const client = connect(server).hello()
    await client.next()
    await server.close()
    expect((await client.end()).code).toBe(status.UNAVAILABLE)
  })
})
