/** Every message of an MCP client is judged and logged by its method, whatever its shape. */
import { describe, expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { policy } from '../support/manifests.ts'
import { type McpSession, mcpManifests, rawSession } from '../support/mcp-client.ts'
import { type LenientServer, startLenientServer } from '../support/mcp-lenient-server.ts'
import { waitFor } from '../support/wait-for.ts'

const guarded = ['single', 'pair', 'stateless', 'sse']
const paths = guarded.map((name) => `/${name}`)

const rule = {
  authorization: {
    action: 'Deny',
    policy: {
      matchExpressions: [
        'mcp.tool.name == "delete"',
        'mcp.prompt.name == "secret"',
        'mcp.resource.uri == "test://secret"',
        'mcp.tool.name == "team" && request.headers["x-team"] != "sales"',
      ],
    },
  },
}

const manifests = () => {
  const target = (name: string, { port }: LenientServer) => ({
    name,
    static: { host: '127.0.0.1', port },
  })
  const both = [target('one', one), target('two', two)]
  return mcpManifests(
    port,
    {
      single: { targets: [target('one', one)] },
      pair: { targets: both },
      stateless: { targets: [target('one', one)], sessionRouting: 'Stateless' },
      sse: { targets: [target('one', one)] },
      open: { targets: [target('one', one)] },
      counted: { targets: [target('one', one)] },
    },
    guarded.map((name) => policy(name, `GatewayBackend/${name}`, { backend: { mcp: rule } })),
  )
}

const one = useFixture(startLenientServer)
const two = useFixture(startLenientServer)
const port = await freePort()
const stats = `127.0.0.1:${await freePort()}`
const gateway = useGateway(() => {
  one.results.set('tools/list', { tools: [{ name: 'search' }, { name: 'delete' }] })
  return {
    manifests: { 'all.yaml': manifests() },
    args: ['--workers', '2', '--stats-address', stats],
  }
})

const receivedSince = (marks: readonly number[]) =>
  [one, two].flatMap(({ received }, at) => received.slice(marks[at]))
const marks = () => [one.received.length, two.received.length]
const messagesBut = (method: string, bodies: readonly string[]) =>
  bodies.filter((body) => !body.includes(`"${method}"`))

const message = (more: object) => ({ jsonrpc: '2.0', ...more })
const call = (name: string, more: object = {}) =>
  message({ method: 'tools/call', params: { name, arguments: {} }, ...more })

/** Lines of the access log. */
const logged = (text: string) =>
  waitFor(`a line with ${text}`, () =>
    gateway.stdout.split('\n').findLast((line) => line.includes(text)),
  )

describe('MCP messages without an id', () => {
  it.each(paths)('are refused at %s, unless they are notifications', async (path) => {
    const session = await rawSession(port, path)
    const params = { name: 'delete', uri: 'test://secret', ref: { type: 'ref/prompt', name: 'x' } }
    const methods = [
      'tools/call',
      'tools/list',
      'prompts/get',
      'prompts/list',
      'resources/read',
      'resources/list',
      'resources/templates/list',
      'resources/subscribe',
      'resources/unsubscribe',
      'completion/complete',
      'logging/setLevel',
      'initialize',
      'ping',
      'tasks/get',
      'tasks/result',
      'tasks/cancel',
      'Tools/Call',
      'Notifications/initialized',
      'notification/x',
      'notifications',
      'x/notifications/y',
      'anything',
      '',
    ]
    const before = marks()
    for (const method of methods) {
      const { status, message: answer } = await session.send(port, message({ method, params }))
      expect([method, status]).toEqual([method, 400])
      expect(answer).toMatchObject({ id: null, error: { code: -32600 } })
    }
    expect(receivedSince(before)).toEqual([])
  })

  it('are refused in a batch, together with the rest of the batch', async () => {
    const session = await rawSession(port, '/single', '2025-03-26')
    const before = marks()
    for (const batch of [
      [call('delete')],
      [call('search', { id: 1 }), call('delete')],
      [message({ method: 'notifications/cancelled', params: { requestId: 1 } }), call('delete')],
      [[call('delete', { id: 1 })]],
      [],
    ]) {
      expect((await session.send(port, JSON.stringify(batch))).status).toBe(400)
    }
    expect(receivedSince(before)).toEqual([])
  })

  it('are refused when clients of the older transport send them', async () => {
    const client = await olderClient()
    const before = marks()
    expect(await client.post(call('delete'))).toBe(400)
    expect(await client.post(call('search', { id: 5 }))).toBe(202)
    await client.read('"id":5')
    expect(receivedSince(before)).toHaveLength(1)
    await client.close()
  })

  it('are in the access log with their method', async () => {
    const session = await rawSession(port, '/single')
    await session.send(port, message({ method: 'prompts/get', params: { name: 'delete' } }))
    const line = await logged('mcp.method.name=prompts/get')
    expect(line).toContain('http.status=400')
    expect(line).toContain('mcp.error.code=-32600')
  })

  it('are in the access log if their session is refused', async () => {
    const session = await rawSession(port, '/single')
    const asked = message({ id: 1, method: 'resources/subscribe', params: { uri: 'test://x' } })
    await session.as('unknown').send(port, asked)
    const line = await logged('mcp.error.code=-32001')
    expect(line).toContain('http.status=404')
    expect(line).toContain('mcp.method.name=resources/subscribe')
  })

  it.each(paths)('pass at %s if they are notifications or answers', async (path) => {
    const session = await rawSession(port, path)
    for (const one of [
      message({ method: 'notifications/progress', params: { progressToken: 1, progress: 1 } }),
      message({ method: 'notifications/of-tomorrow' }),
      message({ id: 1, result: {} }),
      message({ id: null, error: { code: 1, message: 'x' } }),
    ]) {
      expect((await session.send(port, one)).status).toBe(202)
    }
  })
})

describe('MCP messages of unknown shape', () => {
  it.each([
    ['an id that is null', { id: null, ...call('delete') }],
    ['an id that is a boolean', { ...call('delete'), id: true }],
    ['an id that is a list', { ...call('delete'), id: [1] }],
    ['no version of JSON-RPC', { id: 1, method: 'tools/call', params: { name: 'delete' } }],
    ['a version that is a number', { ...call('delete', { id: 1 }), jsonrpc: 2.0 }],
    ['a method that is not a string', { ...call('delete', { id: 1 }), method: ['tools/call'] }],
    ['a method that is null', { ...call('delete', { id: 1 }), method: null }],
    ['a method and a result', { ...call('delete', { id: 1 }), result: {} }],
    ['a method and an error', { ...call('delete'), error: { code: 1, message: '' } }],
    ['params that are a list', { ...call('delete', { id: 1 }), params: ['delete'] }],
    ['a notification with an id', message({ id: 1, method: 'notifications/cancelled' })],
    ['an answer without an id', message({ result: {} })],
    ['a string as message', 'tools/call'],
    ['a number as message', 1],
    ['nothing', null],
    ['an empty object', {}],
  ])('with %s are refused', async (_what, body) => {
    for (const path of paths) {
      const session = await rawSession(port, path)
      const before = marks()
      const text = JSON.stringify(body)
      expect((await session.send(port, text)).status).toBe(400)
      expect(receivedSince(before)).toEqual([])
    }
  })

  it('are refused if a reference is written in two ways', async () => {
    const session = await rawSession(port, '/single')
    const before = marks()
    const ref = { type: 'ref/prompt', name: 'public', Name: 'secret' }
    const { status } = await session.send(
      port,
      message({ id: 1, method: 'completion/complete', params: { ref } }),
    )
    expect(status).toBe(400)
    expect(receivedSince(before)).toEqual([])
  })
})

describe('methods under authorization rules', () => {
  it.each(paths.slice(0, 3))(
    'are refused at %s if the gateway does not know them',
    async (path) => {
      const session = await rawSession(port, path)
      const before = marks()
      for (const method of ['Tools/Call', 'tools/call ', 'tools//call', 'tools/run', 'x']) {
        const params = { name: 'delete' }
        const { message: answer } = await session.send(port, message({ id: 1, method, params }))
        expect(answer).toMatchObject({ id: 1, error: { code: -32601 } })
      }
      const ref = { type: 'ref/tool', name: 'secret', uri: 'test://public' }
      const asked = message({ id: 2, method: 'completion/complete', params: { ref } })
      expect((await session.send(port, asked)).message).toMatchObject({ error: { code: -32602 } })
      expect(messagesBut('initialize', receivedSince(before))).toEqual([])
    },
  )

  it('pass to a single server if no rules apply', async () => {
    const session = await rawSession(port, '/open')
    one.results.set('tools/run', { done: true })
    const asked = await session.send(port, message({ id: 1, method: 'tools/run' }))
    expect(asked.message).toMatchObject({ id: 1, result: { done: true } })
  })

  it('about tasks pass to a single server, since the call was already authorized', async () => {
    const session = await rawSession(port, '/single')
    one.results.set('tasks/get', { taskId: 'a', status: 'working' })
    const asked = message({ id: 1, method: 'tasks/get', params: { taskId: 'a' } })
    expect((await session.send(port, asked)).message).toMatchObject({ result: { taskId: 'a' } })
  })

  it('are refused if the header Mcp-Name differs from the message', async () => {
    const session = await rawSession(port, '/open')
    const params = { name: 'public', uri: 'test://secret' }
    const read = message({ id: 1, method: 'resources/read', params })
    expect((await session.send(port, read, { 'mcp-name': 'public' })).status).toBe(400)
    expect((await session.send(port, read, { 'mcp-name': 'test://secret' })).status).toBe(200)
    const answer = message({ id: 1, result: {} })
    expect((await session.send(port, answer, { 'mcp-method': 'tools/list' })).status).toBe(400)
  })
})

describe('MCP messages in a batch', () => {
  it('are authorized and logged one by one', async () => {
    const session = await rawSession(port, '/single', '2025-03-26')
    const before = marks()
    const { messages } = await session.send(
      port,
      JSON.stringify([
        call('delete', { id: 1 }),
        call('batched', { id: 2 }),
        message({ id: 3, method: 'tools/list' }),
        message({ id: 4, method: 'ping' }),
      ]),
    )
    expect(messages).toHaveLength(4)
    expect(messages).toContainEqual({
      jsonrpc: '2.0',
      id: 1,
      error: { code: -32602, message: 'Unknown tool: delete' },
    })
    expect(messages).toContainEqual({
      jsonrpc: '2.0',
      id: 3,
      result: { tools: [{ name: 'search' }] },
    })
    expect(receivedSince(before).join()).not.toContain('"delete"')
    const line = await logged('batched')
    expect(line).toContain('mcp.method.name=tools/call,tools/list,ping')
    expect(line).toContain('gen_ai.tool.name=delete,batched')
    expect(line).toContain('mcp.error.code=-32602')
  })

  it('are counted one by one', async () => {
    const session = await rawSession(port, '/counted', '2025-03-26')
    const batch = ['tools/list', 'ping', 'ping'].map((method, id) => message({ id, method }))
    await session.send(port, JSON.stringify(batch))
    const counted = async (method: string) => {
      const text = await (await fetch(`http://${stats}/metrics`)).text()
      const line = text
        .split('\n')
        .find((one) => one.includes('/counted"') && one.includes(`method="${method}"`))
      return Number(line?.split(' ').at(-1))
    }
    await waitFor('the counters', async () => {
      return (await counted('tools/list')) === 1 && (await counted('ping')) === 2
    })
  })
})

describe('streams of MCP servers', () => {
  const listed = { tools: [{ name: 'search' }, { name: 'delete' }] }
  const list = message({ id: 7, result: listed })
  const updated = (uri: string) =>
    message({ method: 'notifications/resources/updated', params: { uri } })
  const event = (data: object) => `data: ${JSON.stringify(data)}\n\n`

  it.each([
    ['/single', 'search'],
    ['/pair', 'one_search'],
  ])('filter a resumed list at %s like a direct answer', async (path, name) => {
    const session = await rawSession(port, path)
    one.stream = event(list) + event(message({ method: 'notifications/end' }))
    const text = await streamOf(session, path, 'notifications/end', { 'last-event-id': 'x' })
    expect(text).toContain(`"tools":[{"name":"${name}"}]`)
    expect(text).not.toContain('delete')
  })

  it('omit notifications about resources that the client may not use', async () => {
    const session = await rawSession(port, '/single')
    one.stream = event(updated('test://secret')) + event(updated('test://public'))
    const text = await streamOf(session, '/single', 'test://public')
    expect(text).not.toContain('test://secret')
  })
})

describe('clients of the older transport', () => {
  it('are authorized by the request that brings a message, on whichever worker', async () => {
    const client = await olderClient()
    for (let id = 10; id < 20; id++) {
      const isSales = id % 2 === 0
      await client.post(call('team', { id }), { 'x-team': isSales ? 'sales' : 'other' })
      const text = await client.read(`"id":${id}`)
      const answer = text.slice(text.indexOf(`"id":${id}`))
      expect(answer.includes('Unknown tool')).toBe(!isSales)
    }
    await client.close()
  })
})

/** Text of a GET stream until something comes. */
async function streamOf(
  session: McpSession,
  path: string,
  until: string,
  headers: Record<string, string> = {},
): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    headers: { accept: 'text/event-stream', 'mcp-session-id': session.id, ...headers },
  })
  const reader = readerOf(response)
  const text = await reader.read(until)
  await reader.close()
  return text
}

function readerOf(response: Response) {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  return {
    read: async (until: string): Promise<string> => {
      while (!text.includes(until)) {
        const piece = await reader?.read()
        if (piece === undefined || piece.done) throw new Error(`the stream ends: ${text}`)
        text += piece.value
      }
      return text
    },
    close: () => reader?.cancel(),
  }
}

/** A client that begins with a stream; each of its messages comes over a connection of its own. */
async function olderClient() {
  const origin = `http://127.0.0.1:${port}`
  const headers = { accept: 'text/event-stream', connection: 'close' }
  const reader = readerOf(await fetch(`${origin}/sse`, { headers }))
  const [, place = ''] = /data: (\S+)\n/.exec(await reader.read('sessionId=')) ?? []
  const post = async (body: object, more: Record<string, string> = {}) => {
    const type = { 'content-type': 'application/json', connection: 'close' }
    const request = { method: 'POST', headers: { ...type, ...more }, body: JSON.stringify(body) }
    return (await fetch(`${origin}${place}`, request)).status
  }
  const params = { protocolVersion: '2024-11-05', capabilities: {}, clientInfo: { name: 'old' } }
  await post(message({ id: 0, method: 'initialize', params }))
  await reader.read('"id":0')
  return { post, read: reader.read, close: reader.close }
}
