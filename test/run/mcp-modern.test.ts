/** Modern clients through the gateway to one modern server: revision 2026-07-28. */
import { describe, expect, it } from 'vitest'
import { useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { policy } from '../support/manifests.ts'
import { mcpManifests } from '../support/mcp-client.ts'
import { modernRequest, openModern, sendModern } from '../support/mcp-modern-client.ts'
import { type ModernAnswer, useModernServer } from '../support/mcp-modern-server.ts'
import { waitFor } from '../support/wait-for.ts'

/** Valid in JSON and in a header only if nothing touches it. */
const oddState = 'a"b\\c/\u00e9\u2028 =?base64?x?='

const call: ModernAnswer = ({ params }, { send }) => {
  switch (params.name) {
    case 'steps':
      for (const progress of [1, 2, 3]) {
        send({
          jsonrpc: '2.0',
          method: 'notifications/progress',
          params: { progressToken: 'p', progress },
        })
      }
      return { content: [] }
    case 'log':
      send({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 1 } })
      return { content: [] }
    case 'ask': {
      const key = 'key "1"'
      const responses = params.inputResponses as Record<string, unknown> | undefined
      if (responses?.[key] !== undefined) return { content: [], structuredContent: params }
      const inputRequests = { [key]: { method: 'roots/list', params: {} } }
      return { resultType: 'input_required', inputRequests, requestState: oddState }
    }
    case 'slow':
      send({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: 1 } })
      return undefined
    case 'silent':
      return undefined
    case 'refuse':
      return {
        status: 400,
        error: { code: -32021, message: 'no', data: { requiredCapabilities: {} } },
      }
    case 'missing-1':
      return { status: 404, error: { code: -32602, message: 'Tool missing-1 not found' } }
    case 'missing-2':
      return { isError: true, content: [{ type: 'text', text: 'Tool missing-2 not found' }] }
    case 'fail':
      return { status: 200, error: { code: -32602, message: 'bad', data: [1] } }
    default:
      return {
        content: [],
        structuredContent: [params],
        unknown: { kept: true },
        _meta: { 'x.y/z': 1 },
      }
  }
}
const server = useModernServer({
  answers: {
    'tools/call': call,
    'resources/read': () => ({ contents: [], ttlMs: 5, cacheScope: 'public' }),
    'completion/complete': () => ({ completion: { values: ['a'] } }),
    'prompts/get': () => ({ messages: [] }),
    'x/extension': ({ params }) => ({ params }),
    'tasks/update': () => ({}),
  },
  capabilities: { tools: { listChanged: true }, extensions: { 'x.y/z': {} } },
  discover: { supportedVersions: ['2026-07-28', '2099-01-01'], instructions: 'hello' },
})
const port = await freePort()
useGateway(() => {
  const targets = [{ name: 'only', static: { host: '127.0.0.1', port: server.port } }]
  const authorization = {
    policy: {
      matchExpressions: [
        'mcp.tool.name == "echo"',
        'mcp.tool.name.startsWith("missing-")',
        'mcp.resource.uri == "test://a"',
      ],
    },
  }
  return {
    manifests: {
      'all.yaml': mcpManifests(port, { one: { targets }, ruled: { targets } }, [
        policy('ruled', 'GatewayBackend/ruled', { backend: { mcp: { authorization } } }),
      ]),
    },
  }
})
const at = (path: string) => `http://127.0.0.1:${port}${path}`
const url = at('/one')
const callOf = (name: string, more: object = {}) =>
  modernRequest('tools/call', { name, arguments: {}, ...more })

describe('a modern request', () => {
  it('reaches the server byte for byte, with headers for its body', async () => {
    const message = modernRequest('tools/call', { name: 'echo', arguments: { a: [1, 'x'] } })
    const body = JSON.stringify(message, undefined, 2)
    const headers = { 'mcp-param-region': 'eu', 'mcp-session-id': 'ignored', 'last-event-id': '1' }
    const { status } = await sendModern(url, message, { body, headers })
    expect(status).toBe(200)
    expect(server.last?.text).toBe(body)
    expect(server.last?.headers).toMatchObject({
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'echo',
      'mcp-param-region': 'eu',
    })
    expect(server.last?.headers).not.toHaveProperty('mcp-session-id')
    expect(server.last?.headers).not.toHaveProperty('last-event-id')
  })

  it.each(['eché', ' padded ', '=?base64?x?=', 'a\nb'])(
    'names %j in base64 to the server',
    async (name) => {
      const encoded = `=?base64?${Buffer.from(name).toString('base64')}?=`
      const { status } = await sendModern(url, callOf(name), { headers: { 'mcp-name': encoded } })
      expect(status).toBe(200)
      expect(server.last?.headers['mcp-name']).toBe(encoded)
    },
  )

  it('gets results with structured content, unknown members and unknown _meta', async () => {
    const { message, headers } = await sendModern(url, callOf('echo'))
    expect(message?.result).toMatchObject({
      resultType: 'complete',
      structuredContent: [{ name: 'echo' }],
      unknown: { kept: true },
      _meta: { 'x.y/z': 1 },
    })
    expect(headers.get('mcp-session-id')).toBeNull()
  })

  it('gets progress and log messages before the response', async () => {
    const steps = await sendModern(url, callOf('steps'))
    expect(steps.headers.get('content-type')).toBe('text/event-stream')
    expect(steps.headers.get('x-accel-buffering')).toBe('no')
    expect(steps.messages.map((one) => one.method)).toEqual([
      ...Array.from({ length: 3 }, () => 'notifications/progress'),
      undefined,
    ])
    const logged = await sendModern(url, callOf('log'))
    expect(logged.messages[0]).toMatchObject({ method: 'notifications/message' })
  })

  it('gets input_required and sends the state back byte for byte', async () => {
    const first = await sendModern(url, callOf('ask'))
    expect(first.message?.result).toMatchObject({
      resultType: 'input_required',
      inputRequests: { 'key "1"': { method: 'roots/list' } },
      requestState: oddState,
    })
    const more = { requestState: oddState, inputResponses: { 'key "1"': { roots: [] } } }
    const second = await sendModern(url, callOf('ask', more))
    expect(second.message?.result).toMatchObject({ structuredContent: more })
  })

  it.each(['slow', 'silent'])('is cancelled at the server if the client goes: %s', async (name) => {
    const controller = new AbortController()
    const sent = openModern(url, callOf(name), controller).catch(() => undefined)
    await waitFor('the call', () => server.last?.params.name === name)
    controller.abort()
    await sent
    await waitFor('the end of the call', () => server.last?.isClosed === true)
  })

  it('gets errors of the server with their status', async () => {
    const refused = await sendModern(url, callOf('refuse'))
    expect(refused.status).toBe(400)
    expect(refused.message).toMatchObject({
      error: { code: -32021, data: { requiredCapabilities: {} } },
    })
    const failed = await sendModern(url, callOf('fail'))
    expect(failed.status).toBe(200)
    expect(failed.message).toMatchObject({ error: { code: -32602, data: [1] } })
    const unknown = await sendModern(url, modernRequest('prompts/list'))
    expect(unknown.status).toBe(404)
    expect(unknown.message).toMatchObject({ error: { code: -32601 } })
  })

  it.each([
    ['tools/list', {}],
    ['resources/read', { uri: 'test://a' }],
    ['prompts/get', { name: 'p' }],
    ['completion/complete', { ref: { type: 'ref/prompt', name: 'p' }, argument: {} }],
    ['x/extension', { a: 1 }],
  ])('may have the method %s', async (method, params) => {
    const { status, message } = await sendModern(url, modernRequest(method, params))
    expect(status).toBe(200)
    expect(message).toHaveProperty('result')
    expect(server.last?.headers['mcp-method']).toBe(method)
  })

  it('names its task in Mcp-Name', async () => {
    const message = modernRequest('tasks/update', { taskId: 't1' })
    expect((await sendModern(url, message)).status).toBe(400)
    const headers = { 'mcp-name': 't1' }
    expect((await sendModern(url, message, { headers })).status).toBe(200)
    expect(server.last?.headers['mcp-name']).toBe('t1')
  })

  it('learns with server/discover only versions that the gateway supports', async () => {
    const { message } = await sendModern(url, modernRequest('server/discover'))
    expect(message?.result).toMatchObject({
      supportedVersions: ['2026-07-28'],
      capabilities: { tools: { listChanged: true }, extensions: { 'x.y/z': {} } },
      instructions: 'hello',
      ttlMs: 60_000,
      cacheScope: 'public',
    })
  })
})

describe('authorization of modern requests', () => {
  const ruled = at('/ruled')

  it('lets allowed items pass and answers others as unknown, without asking the server', async () => {
    expect((await sendModern(ruled, callOf('echo'))).message).toHaveProperty('result')
    const before = server.received.length
    const read = modernRequest('resources/read', { uri: 'test://b' })
    for (const message of [callOf('steps'), read, modernRequest('x/extension')]) {
      expect((await sendModern(ruled, message)).message).toMatchObject({ id: 1, error: {} })
    }
    expect(server.received.length).toBe(before)
  })

  it('answers items that the server does not have exactly like refused ones', async () => {
    const answers = await Promise.all(
      ['missing-1', 'missing-2', 'refused'].map(async (name) => {
        const { status, text } = await sendModern(ruled, callOf(name))
        return [status, text.replaceAll(name, 'x')]
      }),
    )
    expect(new Set(answers.map(String)).size).toBe(1)
  })

  it('judges every round of a request', async () => {
    const retry = callOf('ask', { requestState: 's', inputResponses: {} })
    const { message } = await sendModern(ruled, retry)
    expect(message).toMatchObject({ error: { code: -32602, message: 'Unknown tool: ask' } })
  })

  it('makes lists private, because other clients may see other items', async () => {
    const open = await sendModern(url, modernRequest('tools/list'))
    expect(open.message?.result).toMatchObject({ ttlMs: 60_000, cacheScope: 'public' })
    const filtered = await sendModern(ruled, modernRequest('tools/list'))
    expect(filtered.message?.result).toMatchObject({ ttlMs: 60_000, cacheScope: 'private' })
  })

  it('leaves resources out of subscriptions that the client may not read', async () => {
    const notifications = { resourceSubscriptions: ['test://a', 'test://b'] }
    const stream = await openModern(ruled, modernRequest('subscriptions/listen', { notifications }))
    await waitFor('the acknowledgement', () => stream.messages.length > 0)
    expect(stream.messages[0]?.params).toMatchObject({
      notifications: { resourceSubscriptions: ['test://a'] },
    })
    server.notify('notifications/resources/updated', { uri: 'test://b' })
    server.notify('notifications/resources/updated', { uri: 'test://a' })
    await waitFor('the notification', () => stream.messages.length > 1)
    expect(stream.messages[1]?.params).toMatchObject({ uri: 'test://a' })
    stream.close()
    await waitFor('the end of the stream', () => server.subscriptions === 0)
  })
})
