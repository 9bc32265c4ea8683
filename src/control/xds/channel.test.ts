import { describe, expect, it } from 'vitest'
import type {
  PolicyResource,
  RouteResource,
  ServiceResource,
  VersionedResource,
} from '../../ground/model/resources.ts'
import type { ConfigUpdate } from '../wire/channel.ts'
import { decodeDelta } from '../wire/decode.ts'
import { InProcessChannel } from './channel.ts'

const service = (name: string, port: number): VersionedResource => ({
  version: `${name}:${port}`,
  resource: {
    type: 'service',
    key: `service/ns/${name}`,
    namespace: 'ns',
    name,
    ports: [{ name: 'http', port }],
    publishNotReady: false,
  } satisfies ServiceResource,
})

const route = (n: number): VersionedResource => ({
  version: `route-${n}`,
  resource: {
    type: 'route',
    key: `route/HTTPRoute/ns/r${n}/0`,
    created: 1,
    order: 0,
    route: { kind: 'HTTPRoute', namespace: 'ns', name: `r${n}` },
    ruleIndex: 0,
    attachments: [],
    matches: [],
    filters: [],
    backends: [],
  } satisfies RouteResource,
})

function openChannel() {
  const acks: unknown[][] = []
  const channel = new InProcessChannel({
    onAck: (...ack) => acks.push(['ack', ...ack]),
    onReject: (...ack) => acks.push(['reject', ...ack]),
    onRecover: (...ack) => acks.push(['recover', ...ack]),
  })
  const subscribe = (worker?: number) => {
    const updates: ConfigUpdate[] = []
    const unsubscribe = channel.subscribe((update) => updates.push(update), worker)
    const keys = () =>
      updates.map(({ bytes }) => {
        const { sequence, upserted, removed } = decodeDelta(bytes)
        return [sequence, upserted.map(({ version }) => version), removed]
      })
    return { updates, keys, unsubscribe }
  }
  return { channel, acks, subscribe }
}

describe('the in-process channel', () => {
  it('sends nothing before the first publication, and then even an empty state', () => {
    const { channel, subscribe } = openChannel()
    const early = subscribe()
    expect(early.updates).toEqual([])
    channel.publish({ sequence: 3, upserted: [], removed: [] })
    expect(early.keys()).toEqual([[3, [], []]])
  })

  it('sends a late subscriber the full state first, and then change sets', () => {
    const { channel, subscribe } = openChannel()
    channel.publish({ sequence: 1, upserted: [service('a', 1), service('b', 1)], removed: [] })
    channel.publish({ sequence: 2, upserted: [service('a', 2)], removed: ['service/ns/b'] })
    const late = subscribe()
    channel.publish({ sequence: 3, upserted: [service('c', 1)], removed: ['service/ns/a'] })
    expect(late.keys()).toEqual([
      [2, ['a:2'], []],
      [3, ['c:1'], ['service/ns/a']],
    ])
  })

  it('sends the same shared memory to all subscribers', () => {
    const { channel, subscribe } = openChannel()
    channel.publish({ sequence: 1, upserted: [service('a', 1)], removed: [] })
    const [one, two] = [subscribe(), subscribe()]
    channel.publish({ sequence: 2, upserted: [service('b', 1)], removed: [] })
    expect(one.updates.map(({ bytes }) => bytes.buffer)).toEqual(
      two.updates.map(({ bytes }) => bytes.buffer),
    )
    expect(one.updates[0]?.bytes.buffer).toBe(two.updates[0]?.bytes.buffer)
    expect(one.updates[1]?.bytes.buffer).toBe(two.updates[1]?.bytes.buffer)
    expect(one.updates[1]?.bytes.buffer).toBeInstanceOf(SharedArrayBuffer)
  })

  it('sends the first state in parts, of which the first has everything that is no route', () => {
    const { channel, subscribe } = openChannel()
    const { updates, keys } = subscribe()
    const routes = Array.from({ length: 1_100 }, (_, n) => route(n))
    const upserted = [...routes, service('a', 1)]
    channel.publish({ sequence: 1, upserted, removed: [] })
    expect(updates.map(({ sequence, isPart }) => [sequence, isPart])).toEqual([
      [1, true],
      [1, true],
      [1, undefined],
    ])
    const [first, ...others] = keys().map(([, versions]) => versions as string[])
    expect(first?.slice(0, 2)).toEqual(['a:1', 'route-0'])
    const versionsOfRoutes = [...(first?.slice(1) ?? []), ...others.flat()]
    expect(versionsOfRoutes).toEqual(routes.map(({ version }) => version))
    channel.publish({ sequence: 2, upserted, removed: [] })
    expect(updates.slice(3).map(({ isPart }) => isPart)).toEqual([undefined])
    expect(subscribe().keys()).toHaveLength(1)
  })

  it('sends prepared resources before the first state, and then only what differs from them', () => {
    const { channel, subscribe } = openChannel()
    const early = subscribe()
    const [kept, changed, gone] = [service('a', 1), service('b', 1), route(0)]
    channel.prepare([kept, changed])
    channel.prepare([gone])
    const late = subscribe()
    const upserted = [kept, service('b', 2), service('c', 1)]
    channel.publish({ sequence: 5, upserted, removed: [gone.resource.key] })
    channel.prepare([service('d', 1)])
    const last = [5, ['b:2', 'c:1'], [gone.resource.key, 'service/ns/b']]
    const [one, two] = [['prepared', 'prepared'], ['prepared']]
    expect(early.keys()).toEqual([[0, one, []], [0, two, []], last])
    expect(late.keys()).toEqual([[0, ['a:1', 'b:1', 'route-0'], []], last])
    expect(late.updates.map(({ isPart }) => isPart)).toEqual([true, undefined])
    expect(subscribe().keys()).toEqual([[5, ['a:1', 'b:2', 'c:1'], []]])
  })

  it('prepares no resource that needs the value of a secret, and no policy', () => {
    const { channel, subscribe } = openChannel()
    const { updates } = subscribe()
    const { version, resource } = route(0)
    const session = { carrier: 'Cookie', name: 'sticky', isPermanent: false } as const
    const policy = {
      type: 'policy',
      key: 'policy/ns/p/traffic/cors',
      created: 1,
      order: 0,
      policy: { namespace: 'ns', name: 'p' },
      section: 'traffic',
      field: 'cors',
      phase: 'PostRouting',
      target: { kind: 'Gateway', namespace: 'ns', name: 'edge' },
      configVersion: 1,
      config: '{}',
    } satisfies PolicyResource
    channel.prepare([
      { version, resource: { ...(resource as RouteResource), session } },
      { version: 'policy', resource: policy },
    ])
    expect(updates).toEqual([])
  })

  it('reports a prepared resource that cannot be encoded once it is published', () => {
    const { channel, acks, subscribe } = openChannel()
    const broken = service('a', -1)
    channel.prepare([broken])
    expect(acks).toEqual([])
    channel.publish({ sequence: 2, upserted: [broken], removed: [] })
    expect(acks.map(([, , sequence]) => sequence)).toEqual([2])
    expect(subscribe().keys()).toEqual([[2, [], []]])
  })

  it('sends nothing after the end of a subscription', () => {
    const { channel, subscribe } = openChannel()
    const { updates, unsubscribe } = subscribe()
    unsubscribe()
    channel.publish({ sequence: 1, upserted: [], removed: [] })
    expect(updates).toEqual([])
  })

  it('omits a resource that cannot be encoded, reports it, and keeps its previous version', () => {
    const { channel, acks, subscribe } = openChannel()
    channel.publish({ sequence: 1, upserted: [service('a', 1)], removed: [] })
    channel.publish({ sequence: 2, upserted: [service('a', -1), service('b', 1)], removed: [] })
    expect(acks).toEqual([
      ['reject', 'publisher', 2, 'service/ns/a', 'bug', expect.stringContaining('encoded')],
    ])
    expect(subscribe().keys()).toEqual([[2, ['a:1', 'b:1'], []]])
  })

  it('passes on acks, rejections and recoveries of proxies', () => {
    const { channel, acks } = openChannel()
    channel.reject('local', 4, { key: 'k', code: 'port_in_use', message: 'taken' })
    channel.recover('local', 4, 'k')
    channel.ack('local', 4)
    expect(acks).toEqual([
      ['reject', 'local', 4, 'k', 'port_in_use', 'taken'],
      ['recover', 'local', 4, 'k'],
      ['ack', 'local', 4],
    ])
  })

  it('sends another state to the workers that are diverted, also to one that starts, and takes it back', () => {
    const { channel, subscribe } = openChannel()
    channel.publish({ sequence: 1, upserted: [service('a', 1), service('b', 1)], removed: [] })
    const [first, second] = [subscribe(0), subscribe(1)]
    const publish = (sequence: number, own: VersionedResource[], other: VersionedResource[]) => {
      const delta = { sequence, upserted: other, removed: [] }
      const diversion = { proxies: new Set(['local/0']), delta, isNew: sequence === 2 }
      channel.publish({ sequence, upserted: own, removed: [] }, diversion)
    }
    publish(2, [], [service('a', 2), service('c', 1)])
    publish(3, [service('d', 1)], [service('d', 1)])
    expect(subscribe(0).keys()).toEqual([[3, ['a:2', 'c:1', 'd:1'], []]])
    channel.publish({ sequence: 4, upserted: [service('b', 2)], removed: [] }, null)
    expect(first.keys().slice(1)).toEqual([
      [2, ['a:2', 'c:1'], ['service/ns/b']],
      [3, ['d:1'], []],
      [4, ['b:2', 'a:1'], ['service/ns/c']],
    ])
    expect(second.keys().slice(1)).toEqual([
      [2, [], []],
      [3, ['d:1'], []],
      [4, ['b:2'], []],
    ])
  })
})
