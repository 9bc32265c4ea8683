/** Modern clients through the gateway to several modern servers. */
import { describe, expect, it } from 'vitest'
import { useGateway } from '../support/fixture.ts'
import { freePort, startGateway } from '../support/gateway.ts'
import { policy } from '../support/manifests.ts'
import { mcpManifests } from '../support/mcp-client.ts'
import { modernRequest, openModern, sendModern } from '../support/mcp-modern-client.ts'
import {
  type ModernAnswer,
  type ModernServer,
  useModernServer,
} from '../support/mcp-modern-server.ts'
import { waitFor } from '../support/wait-for.ts'

const list: ModernAnswer = ({ params }) =>
  params.cursor === undefined
    ? { tools: [{ name: 'one' }], nextCursor: 'next', ttlMs: 50_000, cacheScope: 'public' }
    : { tools: [{ name: `after ${params.cursor}` }], ttlMs: 40_000, cacheScope: 'public' }

const a = useModernServer({
  answers: {
    'tools/list': list,
    'resources/read': ({ params }) => ({ contents: [{ uri: params.uri, text: 'a' }] }),
    'tools/call': ({ params }) =>
      params.name === 'link'
        ? { content: [{ type: 'resource_link', uri: 'test://x', name: 'x' }] }
        : { content: [], structuredContent: params },
    'completion/complete': ({ params }) => ({ completion: { values: [] }, params }),
  },
  capabilities: { tools: {}, completions: {}, extensions: { 'x.y/z': {} } },
  discover: { instructions: 'from a', ttlMs: 9, cacheScope: 'public' },
})
const b = useModernServer({
  capabilities: { tools: {}, resources: { subscribe: true } },
  discover: { instructions: 'from b', ttlMs: 5, cacheScope: 'private' },
})
/** Has the same names as the servers above, and is stopped by tests. */
const down = useModernServer()
const port = await freePort()
const secondPort = await freePort()
const target = (name: string, { port }: ModernServer) => ({
  name,
  static: { host: '127.0.0.1', port },
})
const manifests = (port: number) =>
  mcpManifests(
    port,
    {
      pair: { targets: [target('a', a), target('b', b)] },
      'with-down': { targets: [target('a', a), target('down', down)] },
      ruled: { targets: [target('a', a), target('b', b)] },
      cached: { targets: [target('a', a), target('b', b)] },
      teams: { targets: [target('a', a), target('b', b)] },
    },
    [
      policy('teams', 'GatewayBackend/teams', {
        backend: {
          mcp: {
            authorization: {
              policy: {
                matchExpressions: ['mcp.tool.target in request.headers["x-teams"].split(" ")'],
              },
            },
          },
        },
      }),
      policy('ruled', 'GatewayBackend/ruled', {
        backend: {
          mcp: { authorization: { policy: { matchExpressions: ['mcp.tool.target == "a"'] } } },
        },
      }),
    ],
  )
useGateway(() => ({ manifests: { 'all.yaml': manifests(port) } }))
useGateway(() => ({ manifests: { 'all.yaml': manifests(secondPort) } }))
const url = `http://127.0.0.1:${port}/pair`
const resultOf = (message: Record<string, unknown> | undefined) =>
  message?.result as Record<string, unknown>

describe('server/discover of several servers', () => {
  it('merges what they offer, with the shortest time to keep it', async () => {
    const { message } = await sendModern(url, modernRequest('server/discover'))
    expect(resultOf(message)).toMatchObject({
      resultType: 'complete',
      supportedVersions: ['2026-07-28'],
      ttlMs: 5,
      cacheScope: 'private',
      instructions: expect.stringMatching(/\[a\]\nfrom a\n\n\[b\]\nfrom b/),
      _meta: { 'io.modelcontextprotocol/serverInfo': { name: 'sluice' } },
    })
    // Extensions need a single server, so they are not offered.
    expect(resultOf(message).capabilities).toEqual({
      tools: { listChanged: true },
      resources: { listChanged: true, subscribe: true },
      completions: {},
    })
  })
})

describe('a modern request to several servers', () => {
  it('goes to the server in its name, without the prefix in body and header', async () => {
    const message = modernRequest('tools/call', { name: 'a_öne_1', arguments: {} })
    const encoded = (name: string) => `=?base64?${Buffer.from(name).toString('base64')}?=`
    const headers = { 'mcp-name': encoded('a_öne_1') }
    const answer = await sendModern(url, message, { headers })
    expect(resultOf(answer.message).structuredContent).toMatchObject({ name: 'öne_1' })
    expect(a.last?.headers['mcp-name']).toBe(encoded('öne_1'))
    expect(a.last?.headers['mcp-method']).toBe('tools/call')
  })

  it('gets URIs with the prefix, in contents and links', async () => {
    const read = await sendModern(url, modernRequest('resources/read', { uri: 'a+test://x' }))
    expect(a.last?.headers['mcp-name']).toBe('test://x')
    expect(resultOf(read.message)).toMatchObject({ contents: [{ uri: 'a+test://x' }] })
    const link = modernRequest('tools/call', { name: 'a_link', arguments: {} })
    const linked = await sendModern(url, link)
    expect(resultOf(linked.message)).toMatchObject({ content: [{ uri: 'a+test://x' }] })
  })

  it('completes the arguments of the item in its reference', async () => {
    const ref = { type: 'ref/resource', uri: 'a+test://{x}' }
    const { message } = await sendModern(url, modernRequest('completion/complete', { ref }))
    expect(resultOf(message)).toMatchObject({ params: { ref: { uri: 'test://{x}' } } })
  })

  it.each([
    ['tools/call', { name: 'c_echo' }],
    ['tools/call', { name: 'echo' }],
    ['resources/read', { uri: 'test://x' }],
  ])('is answered -32602 if no server has the item: %s %j', async (method, params) => {
    const { status, message } = await sendModern(url, modernRequest(method, params))
    expect(status).toBe(200)
    expect(message).toMatchObject({ error: { code: -32602 } })
  })

  it.each(['x/extension', 'tasks/get'])(
    'is answered 404 with -32601 if only a single server could serve %s',
    async (method) => {
      const headers = { 'mcp-name': method === 'tasks/get' ? 't' : undefined }
      const message = modernRequest(method, { taskId: 't' })
      const answer = await sendModern(url, message, { headers })
      expect(answer.status).toBe(404)
      expect(answer.message).toMatchObject({ error: { code: -32601 } })
    },
  )

  it('passes errors of the server with their status', async () => {
    const { status, message } = await sendModern(
      url,
      modernRequest('resources/read', { uri: 'b+test://x' }),
    )
    expect(status).toBe(404)
    expect(message).toMatchObject({ error: { code: -32601 } })
  })
})

describe('lists of several modern servers', () => {
  it('are joined, and continued by a cursor that any process understands', async () => {
    const first = resultOf((await sendModern(url, modernRequest('tools/list'))).message)
    expect(first).toMatchObject({
      resultType: 'complete',
      tools: [{ name: 'a_one' }, { name: 'b_echo' }],
      ttlMs: 50_000,
      cacheScope: 'public',
    })
    const other = `http://127.0.0.1:${secondPort}/pair`
    const next = modernRequest('tools/list', { cursor: first.nextCursor })
    const second = resultOf((await sendModern(other, next)).message)
    expect(second).toMatchObject({ tools: [{ name: 'a_after next' }], ttlMs: 40_000 })
    expect(second).not.toHaveProperty('nextCursor')
  })

  it('are private if rules may hide items', async () => {
    const ruled = `http://127.0.0.1:${port}/ruled`
    const { message } = await sendModern(ruled, modernRequest('tools/list'))
    expect(resultOf(message)).toMatchObject({ tools: [{ name: 'a_one' }], cacheScope: 'private' })
  })

  it('are asked for once in the time that servers allow, until one reports a change', async () => {
    const cached = `http://127.0.0.1:${port}/cached`
    const lists = ({ asked }: ModernServer) =>
      asked.filter(({ method }) => method === 'tools/list').length
    const list = async () => {
      const before = [lists(a), lists(b)] as const
      const { message } = await sendModern(cached, modernRequest('tools/list'))
      expect(resultOf(message)).toMatchObject({ tools: [{ name: 'a_one' }, { name: 'b_echo' }] })
      return { ttlMs: resultOf(message).ttlMs, asked: [lists(a) - before[0], lists(b) - before[1]] }
    }
    expect(await list()).toEqual({ ttlMs: 50_000, asked: [1, 1] })
    const again = await list()
    expect(again.asked).toEqual([0, 0])
    expect(again.ttlMs).toBeLessThan(50_000)
    const notifications = { toolsListChanged: true }
    const stream = await openModern(
      cached,
      modernRequest('subscriptions/listen', { notifications }),
    )
    await waitFor('the acknowledgement', () => stream.messages.length > 0)
    a.notify('notifications/tools/list_changed')
    await waitFor('the notification', () => stream.messages.length > 1)
    expect((await list()).asked).toEqual([1, 0])
    stream.close()
    await waitFor('the end of both streams', () => a.subscriptions + b.subscriptions === 0)
  })

  it('have what rules leave for each client, also from the cache', async () => {
    const listFor = async (teams: string, id: number | string) => {
      const asked = modernRequest('tools/list', {}, { id })
      const options = { headers: { 'x-teams': teams } }
      const { message } = await sendModern(`http://127.0.0.1:${port}/teams`, asked, options)
      expect(message?.id).toBe(id)
      const { tools, nextCursor } = resultOf(message) as {
        tools: { name: string }[]
        nextCursor?: string
      }
      expect(nextCursor).toBeDefined()
      return tools.map(({ name }) => name)
    }
    const all = { a: ['a_one'], b: ['b_echo'], 'a b': ['a_one', 'b_echo'], '': [] }
    const before = a.asked.length
    for (const round of [1, 'two', 3]) {
      for (const [teams, names] of Object.entries(all)) {
        expect(await listFor(teams, round)).toEqual(names)
      }
    }
    expect(a.asked.slice(before).filter(({ method }) => method === 'tools/list')).toHaveLength(1)
  })

  it('are empty if the server lacks the method', async () => {
    const { message } = await sendModern(url, modernRequest('prompts/list'))
    expect(resultOf(message)).toMatchObject({ resultType: 'complete', prompts: [] })
  })
})

describe('a server that is down', () => {
  const withDown = `http://127.0.0.1:${port}/with-down`

  it('is named in results of the others, which must not be cached', async () => {
    await down.kill()
    for (const method of ['tools/list', 'server/discover']) {
      const { status, message } = await sendModern(withDown, modernRequest(method))
      expect(status).toBe(200)
      expect(resultOf(message)).toMatchObject({
        ttlMs: 0,
        _meta: { 'sluice.dev/unavailable': ['down'] },
      })
    }
    const call = modernRequest('tools/call', { name: 'a_x', arguments: {} })
    expect((await sendModern(withDown, call)).message).toHaveProperty('result')
    await down.start()
  })
})

describe('a subscription to several modern servers', () => {
  it('has one acknowledgement first, and notifies each server only of its own resources', async () => {
    const notifications = {
      toolsListChanged: true,
      resourceSubscriptions: ['a+test://1', 'b+test://2', 'c+test://3'],
    }
    const listen = modernRequest('subscriptions/listen', { notifications }, { id: 's-1' })
    const stream = await openModern(url, listen)
    await waitFor('the acknowledgement', () => stream.messages.length > 0)
    const _meta = { 'io.modelcontextprotocol/subscriptionId': 's-1' }
    expect(stream.messages).toEqual([
      {
        jsonrpc: '2.0',
        method: 'notifications/subscriptions/acknowledged',
        params: {
          _meta,
          notifications: {
            toolsListChanged: true,
            resourceSubscriptions: ['a+test://1', 'b+test://2'],
          },
        },
      },
    ])
    expect(a.last?.params.notifications).toEqual({
      toolsListChanged: true,
      resourceSubscriptions: ['test://1'],
    })
    b.notify('notifications/resources/updated', { uri: 'test://2' })
    await waitFor('the notification', () => stream.messages.length > 1)
    expect(stream.messages[1]).toMatchObject({ params: { _meta, uri: 'b+test://2' } })
    b.notify('notifications/prompts/list_changed')
    a.notify('notifications/tools/list_changed')
    await waitFor('the second notification', () => stream.messages.length > 2)
    expect(stream.messages[2]).toMatchObject({ method: 'notifications/tools/list_changed' })
    stream.close()
    await waitFor('the end of both streams', () => a.subscriptions + b.subscriptions === 0)
  })

  it('keeps a number as its id', async () => {
    const notifications = { toolsListChanged: true }
    const listen = modernRequest('subscriptions/listen', { notifications }, { id: 12 })
    const stream = await openModern(url, listen)
    await waitFor('the acknowledgement', () => stream.messages.length > 0)
    expect(stream.messages[0]?.params).toMatchObject({
      _meta: { 'io.modelcontextprotocol/subscriptionId': 12 },
    })
    stream.close()
  })

  it('goes on without a server that ends, and reports changes when it is back', async () => {
    const withDown = `http://127.0.0.1:${port}/with-down`
    const notifications = { toolsListChanged: true }
    const stream = await openModern(
      withDown,
      modernRequest('subscriptions/listen', { notifications }),
    )
    await waitFor('the acknowledgement', () => stream.messages.length > 0)
    await down.kill()
    a.notify('notifications/tools/list_changed')
    await waitFor('a notification', () => stream.messages.length > 1)
    await down.start()
    await waitFor('the server that is back', () => down.subscriptions === 1)
    await waitFor('its notification', () => stream.messages.length > 2)
    stream.close()
  })

  it.each([[undefined], [{ toolsListChanged: 'yes' }], [{ resourceSubscriptions: [1] }]])(
    'is refused with -32602 if its filter is %j',
    async (notifications) => {
      const listen = modernRequest('subscriptions/listen', { notifications })
      const { status, message } = await sendModern(url, listen)
      expect(status).toBe(400)
      expect(message).toMatchObject({ error: { code: -32602 } })
    },
  )

  it('that honours nothing ends at once', async () => {
    const listen = modernRequest('subscriptions/listen', { notifications: {} })
    const { messages } = await sendModern(url, listen)
    expect(messages).toMatchObject([
      { method: 'notifications/subscriptions/acknowledged' },
      { id: 1, result: { resultType: 'complete' } },
    ])
  })
})

describe('a subscription', () => {
  it('ends with a result when the gateway stops', async () => {
    const own = await freePort()
    const gateway = await startGateway({ manifests: { 'all.yaml': manifests(own) } })
    const notifications = { toolsListChanged: true }
    const listen = modernRequest('subscriptions/listen', { notifications }, { id: 'end' })
    const stream = await openModern(`http://127.0.0.1:${own}/pair`, listen)
    await waitFor('the acknowledgement', () => stream.messages.length > 0)
    const stopped = gateway.stop()
    expect(await stream.ended).toBe(true)
    expect(stream.messages.at(-1)).toEqual({
      jsonrpc: '2.0',
      id: 'end',
      result: {
        resultType: 'complete',
        _meta: { 'io.modelcontextprotocol/subscriptionId': 'end' },
      },
    })
    await stopped
  })
})
