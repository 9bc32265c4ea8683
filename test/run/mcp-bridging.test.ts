/** Clients and servers of different eras: the gateway translates between them. */
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import {
  ElicitRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
  SubscribeRequestSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { connectClient, mcpManifests } from '../support/mcp-client.ts'
import { modernRequest, openModern, sendModern } from '../support/mcp-modern-client.ts'
import { useModernServer } from '../support/mcp-modern-server.ts'
import { TestMcpServer, useMcpServer } from '../support/mcp-server.ts'
import { waitFor } from '../support/wait-for.ts'

/** Names of tools whose call was cancelled. */
const cancelled: string[] = []
function offer(server: McpServer): void {
  server.registerTool('echo', { inputSchema: { text: z.string() } }, ({ text }) => ({
    content: [{ type: 'text', text }],
  }))
  server.registerTool('steps', {}, async (extra) => {
    const progressToken = extra._meta?.progressToken ?? 'none'
    const params = { progressToken, progress: 1 }
    await extra.sendNotification({ method: 'notifications/progress', params })
    for (const level of ['debug', 'error'] as const) {
      const params = { level, data: level }
      await extra.sendNotification({ method: 'notifications/message', params })
    }
    return { content: [] }
  })
  server.registerTool('ask', {}, async (extra) => {
    const requestedSchema = { type: 'object' as const, properties: {} }
    const params = { message: 'what?', requestedSchema }
    const first = await extra.sendRequest({ method: 'elicitation/create', params }, z.any())
    const second = await extra.sendRequest({ method: 'elicitation/create', params }, z.any())
    return { content: [{ type: 'text', text: JSON.stringify([first, second]) }] }
  })
  server.registerTool('wait', {}, async (extra) => {
    await new Promise<void>((resolve) => {
      extra.signal.addEventListener('abort', () => resolve())
    })
    cancelled.push('wait')
    return { content: [] }
  })
  server.registerResource('r', 'test://r', {}, (uri) => ({
    contents: [{ uri: uri.href, text: '' }],
  }))
  server.server.registerCapabilities({ resources: { subscribe: true } })
  server.server.setRequestHandler(SubscribeRequestSchema, () => ({}))
}

const old = useMcpServer({ offer, instructions: 'old' })
const modern = useModernServer({
  answers: {
    // A modern server knows no sessions.
    initialize: () => ({ status: 400, error: { code: -32022, message: 'no', data: {} } }),
    'tools/call': ({ params }, { send }) => {
      if (params.name === 'wait') return undefined
      if (params.name === 'log') {
        const params = { level: 'error', data: 'broken' }
        send({ jsonrpc: '2.0', method: 'notifications/message', params })
      }
      const responses = params.inputResponses as Record<string, unknown> | undefined
      if (params.name !== 'ask') return { content: [], structuredContent: params }
      if (responses === undefined) {
        const elicit = {
          method: 'elicitation/create',
          params: { message: 'what?', requestedSchema: { type: 'object', properties: {} } },
        }
        return {
          resultType: 'input_required',
          inputRequests: { k: elicit },
          requestState: 'st"ate',
        }
      }
      return { content: [{ type: 'text', text: JSON.stringify(params) }] }
    },
    'resources/read': () => ({ status: 404, error: { code: -32601, message: 'Method not found' } }),
  },
  capabilities: { tools: { listChanged: true }, resources: { subscribe: true }, logging: {} },
  discover: { instructions: 'new' },
})
const port = await freePort()
useGateway(() => {
  const target = (name: string, { port }: { readonly port: number }) => ({
    name,
    static: { host: '127.0.0.1', port },
  })
  const both = [target('old', old), target('new', modern)]
  return {
    manifests: {
      'all.yaml': mcpManifests(port, {
        old: { targets: [target('only', old)], sessionRouting: 'Stateless' },
        modern: { targets: [target('only', modern)] },
        mixed: { targets: both },
        requests: { targets: both, sessionRouting: 'Stateless' },
      }),
    },
  }
})
const at = (path: string) => `http://127.0.0.1:${port}${path}`
const elicitation = { 'io.modelcontextprotocol/clientCapabilities': { elicitation: {} } }
const call = (name: string, more: object = {}, meta = {}) =>
  modernRequest('tools/call', { name, arguments: {}, ...more }, { meta })
const resultOf = (message: Record<string, unknown> | undefined): unknown => message?.result ?? {}
interface Needed {
  readonly inputRequests: Record<string, { readonly method: string }>
  readonly requestState: string
}

describe('a modern client of a legacy server', () => {
  it('learns what the server offers, and that it may not be cached', async () => {
    const { message } = await sendModern(at('/old'), modernRequest('server/discover'))
    expect(message?.result).toMatchObject({
      resultType: 'complete',
      supportedVersions: ['2026-07-28'],
      capabilities: { tools: { listChanged: true }, logging: {} },
      instructions: 'old',
      ttlMs: 0,
      cacheScope: 'private',
    })
  })

  it('gets results of the modern form, and leaves no session behind', async () => {
    const listed = await sendModern(at('/old'), modernRequest('tools/list'))
    expect(listed.message?.result).toMatchObject({ resultType: 'complete', ttlMs: 0 })
    const echo = call('echo', { arguments: { text: 'hi' } })
    const { status, message, headers } = await sendModern(at('/old'), echo)
    expect(status).toBe(200)
    expect(message).toMatchObject({
      id: 1,
      result: { resultType: 'complete', content: [{ text: 'hi' }] },
    })
    expect(headers.get('mcp-session-id')).toBeNull()
    const calls = old.received.filter(({ body }) => body.includes('"tools/call"'))
    expect(calls.some(({ body }) => body.includes('clientCapabilities'))).toBe(false)
    await waitFor('the end of the sessions', () => old.sessions.length === 0)
  })

  it('gets 404 for a method that the server does not know', async () => {
    const { status, message } = await sendModern(at('/old'), modernRequest('prompts/list'))
    expect(status).toBe(404)
    expect(message).toMatchObject({ id: 1, error: { code: -32601 } })
  })

  it('gets progress with its own token, and only the log messages that it wants', async () => {
    const plain = await sendModern(at('/old'), call('steps', {}, { progressToken: 'mine' }))
    expect(plain.messages).toMatchObject([{ params: { progressToken: 'mine' } }, { id: 1 }])
    const meta = { 'io.modelcontextprotocol/logLevel': 'warning' }
    const logged = await sendModern(at('/old'), call('steps', {}, meta))
    expect(logged.messages).toMatchObject([{ params: { data: 'error' } }, { id: 1 }])
    const wrong = { 'io.modelcontextprotocol/logLevel': 'loud' }
    const refused = await sendModern(at('/old'), call('steps', {}, wrong))
    expect(refused.message).toMatchObject({ error: { code: -32602 } })
  })

  it('gets requests of the server as rounds of input', async () => {
    let more = {}
    for (const n of [1, 2]) {
      const { message } = await sendModern(at('/old'), call('ask', more, elicitation))
      const { inputRequests, requestState } = resultOf(message) as Needed
      const [[key = '', asked] = []] = Object.entries(inputRequests)
      expect(asked).toMatchObject({ method: 'elicitation/create', params: { message: 'what?' } })
      const inputResponses = { [key]: { action: 'accept', content: { n } } }
      more = { requestState, inputResponses }
    }
    const { message } = await sendModern(at('/old'), call('ask', more, elicitation))
    const text = [1, 2].map((n) => ({ action: 'accept', content: { n } }))
    expect(message?.result).toMatchObject({ content: [{ text: JSON.stringify(text) }] })
    await waitFor('the end of the sessions', () => old.sessions.length <= 2)
  })

  it('is asked again for input that is missing', async () => {
    const first = await sendModern(at('/old'), call('ask', {}, elicitation))
    const { inputRequests, requestState } = resultOf(first.message) as Needed
    const more = { requestState, inputResponses: {} }
    const again = await sendModern(at('/old'), call('ask', more, elicitation))
    expect(again.message?.result).toMatchObject({ resultType: 'input_required', inputRequests })
  })

  it('cannot continue the call of another client, or another call', async () => {
    const headers = { authorization: 'Bearer one' }
    const first = await sendModern(at('/old'), call('ask', {}, elicitation), { headers })
    const { inputRequests, requestState } = resultOf(first.message) as Needed
    const [key = ''] = Object.keys(inputRequests)
    const more = { requestState, inputResponses: { [key]: { action: 'accept' } } }
    const other = { headers: { authorization: 'Bearer two' } }
    const asked = [
      sendModern(at('/old'), call('ask', more, elicitation), other),
      sendModern(at('/old'), call('steps', more, elicitation), { headers }),
      sendModern(at('/old'), call('ask', { ...more, requestState: 'made up' }, elicitation)),
    ]
    for (const { status, message } of await Promise.all(asked)) {
      const error = { code: -32602, message: expect.stringContaining('no longer') }
      expect({ status, message }).toMatchObject({ status: 400, message: { id: 1, error } })
    }
    const own = await sendModern(at('/old'), call('ask', more, elicitation), { headers })
    expect(own.message?.result).toMatchObject({ resultType: 'input_required' })
  }, 30_000)

  it('is not asked for what it did not declare', async () => {
    const { message } = await sendModern(at('/old'), call('ask'))
    expect(message?.result).toMatchObject({ resultType: 'complete', isError: true })
  })

  it('cancels the call if it closes the response', async () => {
    const controller = new AbortController()
    const sent = openModern(at('/old'), call('wait'), controller).catch(() => undefined)
    await waitFor('the call', () => old.received.some(({ body }) => body.includes('"wait"')))
    controller.abort()
    await sent
    await waitFor('the end of the call', () => cancelled.includes('wait'))
  })

  it('can subscribe to lists and resources', async () => {
    const notifications = { toolsListChanged: true, resourceSubscriptions: ['test://r'] }
    const listen = modernRequest('subscriptions/listen', { notifications }, { id: 'sub' })
    const stream = await openModern(at('/old'), listen)
    await waitFor('the acknowledgement', () => stream.messages.length > 0)
    expect(stream.messages[0]?.params).toMatchObject({ notifications })
    for (const server of old.sessions) await server.server.sendResourceUpdated({ uri: 'test://r' })
    await waitFor('the notification', () => stream.messages.length > 1)
    expect(stream.messages[1]?.params).toEqual({
      uri: 'test://r',
      _meta: { 'io.modelcontextprotocol/subscriptionId': 'sub' },
    })
    stream.close()
    const listening = () => old.received.filter(({ method }) => method === 'DELETE').length
    await waitFor('the end of its session', () => listening() > 0)
  })
})

describe('a legacy client of a modern server', () => {
  it('gets a session from the gateway, with what the server offers', async () => {
    const client = await connectClient(port, '/modern')
    expect(client.getServerCapabilities()).toMatchObject({ tools: { listChanged: true } })
    expect(client.getInstructions()).toBe('new')
    await client.ping()
    await client.setLoggingLevel('warning')
    const result = await client.callTool({ name: 'echo', arguments: { a: 1 } })
    expect(result.structuredContent).toMatchObject({
      name: 'echo',
      arguments: { a: 1 },
      _meta: {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientInfo': { name: 'test' },
        'io.modelcontextprotocol/logLevel': 'warning',
      },
    })
    expect(modern.last?.headers).toMatchObject({ 'mcp-method': 'tools/call', 'mcp-name': 'echo' })
    await client.close()
  })

  it('keeps its session if the server does not know a method', async () => {
    const client = await connectClient(port, '/modern')
    await expect(client.readResource({ uri: 'test://x' })).rejects.toMatchObject({ code: -32601 })
    await expect(client.listTools()).resolves.toHaveProperty('tools')
    await client.close()
  })

  it('is asked for input with requests on the stream of its response', async () => {
    const client = await connectClient(port, '/modern', { capabilities: { elicitation: {} } })
    client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: { a: 'b' } }))
    const { content } = await client.callTool({ name: 'ask', arguments: {} })
    const [{ text }] = content as [{ text: string }]
    expect(JSON.parse(text)).toMatchObject({
      requestState: 'st"ate',
      inputResponses: { k: { action: 'accept', content: { a: 'b' } } },
    })
    const ids = modern.asked.filter(({ params }) => params.name === 'ask').map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    await client.close()
  })

  it('gets log messages of the level that it has set', async () => {
    const client = await connectClient(port, '/modern')
    const logged: unknown[] = []
    client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
      logged.push(params)
    })
    await client.setLoggingLevel('error')
    await client.callTool({ name: 'log' })
    expect(logged).toEqual([{ level: 'error', data: 'broken' }])
    const call = modern.asked.find(({ params }) => params.name === 'log')
    expect(call?.params).toHaveProperty(['_meta', 'io.modelcontextprotocol/logLevel'], 'error')
    await client.close()
  })

  it('cancels the request to the server with notifications/cancelled', async () => {
    const client = await connectClient(port, '/modern')
    const controller = new AbortController()
    const waits = client.callTool({ name: 'wait' }, undefined, { signal: controller.signal })
    const failed = expect(waits).rejects.toThrow()
    const request = await waitFor('the call', () =>
      modern.asked.find(({ params }) => params.name === 'wait'),
    )
    expect(request.isClosed).toBe(false)
    controller.abort()
    await failed
    await waitFor('the end of the request', () => request.isClosed)
    await client.close()
  })

  it('gets an error if it cannot give the input', async () => {
    const client = await connectClient(port, '/modern')
    await expect(client.callTool({ name: 'ask', arguments: {} })).rejects.toThrow(/support/)
    await client.close()
  })

  it('is notified of lists and of the resources to which it subscribes', async () => {
    const client = await connectClient(port, '/modern')
    const seen: string[] = []
    client.setNotificationHandler(ToolListChangedNotificationSchema, ({ method }) => {
      seen.push(method)
    })
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => {
      seen.push(params.uri)
    })
    await waitFor('the subscription', () => modern.subscriptions > 0)
    await waitFor('the notification', () => {
      modern.notify('notifications/tools/list_changed')
      return seen.includes('notifications/tools/list_changed')
    })
    await client.subscribeResource({ uri: 'test://x' })
    const uris = () => modern.last?.params.notifications as { resourceSubscriptions?: string[] }
    await waitFor('the other subscription', () => uris()?.resourceSubscriptions?.[0] === 'test://x')
    await waitFor('the update', () => {
      modern.notify('notifications/resources/updated', { uri: 'test://x' })
      return seen.includes('test://x')
    })
    await client.close()
    await waitFor('the end of the subscription', () => modern.subscriptions === 0)
  })
})

describe('servers of both eras behind one address', () => {
  it('are joined for modern clients if each request has its own session', async () => {
    const { message } = await sendModern(at('/requests'), modernRequest('tools/list'))
    const { tools } = resultOf(message) as { tools: { name: string }[] }
    expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(['old_echo', 'new_echo']))
    const discovered = await sendModern(at('/requests'), modernRequest('server/discover'))
    expect(discovered.message?.result).toMatchObject({
      instructions: expect.stringMatching(/\[old\]\nold\n\n\[new\]\nnew/),
    })
    const result = await sendModern(at('/requests'), call('old_echo', { arguments: { text: 'x' } }))
    expect(result.message?.result).toMatchObject({ content: [{ text: 'x' }] })
  })

  it('are joined for legacy clients', async () => {
    const client = await connectClient(port, '/mixed', { capabilities: { elicitation: {} } })
    client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: {} }))
    const { tools } = await client.listTools()
    const names = tools.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['old_echo', 'new_echo']))
    for (const name of ['old_ask', 'new_ask']) {
      const { content } = await client.callTool({ name, arguments: {} })
      expect(JSON.stringify(content)).toContain('accept')
    }
    await client.close()
  })
})

describe('a server that changes its era', () => {
  /** A call is not repeated if the kept connection to the server that was killed breaks under it. */
  const answered = (...[url, request]: Parameters<typeof sendModern>) =>
    waitFor('an answer of the new server', async () => {
      const answer = await sendModern(url, request)
      return answer.status === 200 ? answer : undefined
    })

  it('is noticed by the next request of a modern client', async () => {
    const url = at('/modern')
    expect((await sendModern(url, call('echo'))).status).toBe(200)
    await modern.kill()
    const replaced = await new TestMcpServer({ offer, port: modern.port }).start()
    await waitFor('an answer of the new server', async () => {
      const { message } = await sendModern(url, call('echo', { arguments: { text: 'old now' } }))
      return (message?.error as { code?: number } | undefined)?.code === -32022
    })
    await replaced.kill()
    await modern.start()
    const back = await answered(url, call('echo'))
    expect(back.message?.result).toHaveProperty('structuredContent')
  })
})
