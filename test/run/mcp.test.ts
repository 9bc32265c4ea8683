/** MCP backends on real traffic: SDK clients through a running gateway to SDK servers. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import {
  CreateMessageRequestSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { Collected, collectingServer, hex } from '../support/collected-spans.ts'
import { useFixture, useGateway, useListening } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { manifest, policy, staticBackend, toBackend } from '../support/manifests.ts'
import { connectClient, type McpSession, mcpManifests, rawSession } from '../support/mcp-client.ts'
import { OrderedEventStore, useMcpServer } from '../support/mcp-server.ts'
import { waitFor } from '../support/wait-for.ts'

const collected = new Collected()

function offer(server: McpServer): void {
  server.registerTool(
    'echo',
    { description: 'says it again', inputSchema: { text: z.string() } },
    ({ text }) => ({ content: [{ type: 'text', text }] }),
  )
  server.registerTool('any', { inputSchema: z.looseObject({}) }, () => ({ content: [] }))
  server.registerTool('steps', {}, async (extra) => {
    for (let progress = 1; progress <= 3; progress++) {
      await extra.sendNotification({
        method: 'notifications/progress',
        params: { progressToken: extra._meta?.progressToken ?? 0, progress },
      })
    }
    return { content: [{ type: 'text', text: 'done' }] }
  })
}

const at = (name: string, port: number) => ({
  targets: [{ name, static: { host: '127.0.0.1', port } }],
})

const port = await freePort()
const everythingPort = await freePort()
const program = '../../node_modules/@modelcontextprotocol/server-everything/dist/index.js'
useFixture(
  () =>
    spawn(process.execPath, [join(import.meta.dirname, program), 'streamableHttp'], {
      env: { ...process.env, PORT: `${everythingPort}` },
      stdio: 'ignore',
    }),
  (everything) => everything.kill(),
)
const server = useMcpServer({ offer })
const json = useMcpServer({ offer, json: true })
const resumable = useMcpServer({ offer, eventStore: () => new OrderedEventStore() })
const collector = useListening(collectingServer(collected))
const gateway = useGateway(() => ({
  manifests: {
    'tracing.yaml': manifest(
      staticBackend('collector', collector.port),
      policy('cors', 'HTTPRoute/json', {
        traffic: { cors: { allowOrigins: ['https://app.example.com'] } },
      }),
      policy('tracing', 'Gateway/edge', {
        frontend: { tracing: { backendRef: toBackend('collector'), clientSampling: 'true' } },
      }),
    ),
    'all.yaml': mcpManifests(port, {
      one: at('only', server.port),
      json: at('only', json.port),
      resumable: at('only', resumable.port),
      pair: {
        targets: [...at('a', resumable.port).targets, ...at('b', server.port).targets],
      },
      everything: at('everything', everythingPort),
      nobody: {
        targets: [{ name: 'none', selector: { services: { matchLabels: { a: 'b' } } } }],
      },
    }),
  },
}))

beforeAll(() =>
  waitFor('the server of everything', () =>
    fetch(`http://127.0.0.1:${everythingPort}/mcp`).then(
      () => true,
      () => false,
    ),
  ),
)

describe('a single MCP target', () => {
  it('[BackendSpec.mcp] is used as if it were the gateway itself', async () => {
    const client = await connectClient(port, '/one')
    expect(client.getServerVersion()?.name).toBe('test')
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(['echo', 'any', 'steps'])
    const result = await client.callTool({ name: 'echo', arguments: { text: 'hello' } })
    expect(result.content).toEqual([{ type: 'text', text: 'hello' }])
    await client.close()
  })

  it('can send notifications to the client', async () => {
    const client = await connectClient(port, '/one')
    const changed = new Promise<void>((resolve) => {
      client.setNotificationHandler(ToolListChangedNotificationSchema, () => resolve())
    })
    const [newest] = server.sessions.slice(-1)
    await waitFor('the stream', () => server.received.at(-1)?.method === 'GET')
    newest?.sendToolListChanged()
    await changed
    await client.close()
  })

  it('has its JSON answers forwarded as JSON', async () => {
    const session = await rawSession(port, '/json')
    const { headers, message } = await call(session, 'echo', { text: 'ä€😀' })
    expect(headers.get('content-type')).toBe('application/json')
    expect(message).toMatchObject({ result: { content: [{ text: 'ä€😀' }] } })
  })

  it('receives each message byte for byte as the client sent it', async () => {
    const session = await rawSession(port, '/json')
    const text =
      '{ "id" : 70,\t"jsonrpc":"2.0", "method":"tools/call" , "params":{"arguments":{"__proto__":{"x":1},"n":1e400,"\\u0061":"\\ud83d\\ude00"},"name":"any","_meta":{ } } }'
    const { status } = await session.send(port, text)
    expect(status).toBe(200)
    expect(json.received.at(-1)?.body).toBe(text)
  })

  it('is answered with 503 if its Service does not exist', async () => {
    const url = `http://127.0.0.1:${port}/nobody`
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
    expect((await fetch(url, { method: 'POST', headers, body })).status).toBe(503)
  })
})

const call = (session: McpSession, name: string, args: object) =>
  session.send(port, {
    jsonrpc: '2.0',
    id: 'x',
    method: 'tools/call',
    params: { name, arguments: args },
  })

describe('the MCP server "everything"', () => {
  let client: Client
  beforeAll(async () => {
    client = await connectClient(port, '/everything', {
      capabilities: { sampling: {}, elicitation: {}, roots: {} },
    })
    client.setRequestHandler(CreateMessageRequestSchema, () => ({
      model: 'test',
      role: 'assistant',
      content: { type: 'text', text: 'sampled' },
    }))
  })
  afterAll(() => client?.close())

  it('[MCPProtocol=StreamableHTTP] offers all its features through the gateway', async () => {
    const { tools } = await client.listTools()
    expect(tools.length).toBeGreaterThan(5)
    const echo = await client.callTool({ name: 'echo', arguments: { message: 'hi' } })
    expect(JSON.stringify(echo.content)).toContain('hi')
    const { resources } = await client.listResources()
    const [first] = resources
    expect((await client.readResource({ uri: first?.uri ?? '' })).contents).toHaveLength(1)
    expect((await client.listPrompts()).prompts.length).toBeGreaterThan(0)
    await client.setLoggingLevel('debug')
  })
})

describe('checks before a request is read', () => {
  const good = {
    'content-type': 'application/json',
    accept: 'application/json, text/event-stream',
  }
  const ping = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })

  it.each([
    ['a client that does not accept event streams', 406, { accept: 'application/json' }],
    ['a client that does not accept JSON', 406, { accept: 'text/event-stream' }],
    ['a body of another content type', 415, { 'content-type': 'text/plain' }],
    ['a compressed body', 415, { 'content-encoding': 'gzip' }],
    ['an unknown version', 400, { 'mcp-protocol-version': '1999-01-01' }],
    ['a header with another method than the body', 400, { 'mcp-method': 'tools/call' }],
    ['a missing session', 400, {}],
    ['a web page of another origin', 403, { origin: 'http://evil.example.com' }],
    ['a web page whose origin looks local', 403, { origin: 'http://localhost.evil.com' }],
  ])('refuse %s with %d', async (_what, status, headers) => {
    const before = server.received.length
    const url = `http://127.0.0.1:${port}/one`
    const all = { ...good, ...headers } as Record<string, string>
    const answer = await fetch(url, { method: 'POST', headers: all, body: ping })
    expect(answer.status).toBe(status)
    expect(server.received).toHaveLength(before)
  })

  it('refuse other methods, and list the allowed ones', async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/one`, { method: 'PUT' })
    expect(answer.status).toBe(405)
    expect(answer.headers.get('allow')).toBe('GET, POST, DELETE')
  })

  it('allow web pages of this machine', async () => {
    const session = await rawSession(port, '/one')
    const headers = { origin: 'http://localhost:6274' }
    expect((await session.send(port, ping, headers)).status).toBe(200)
  })

  it('allow web pages that a CORS policy allows', async () => {
    const session = await rawSession(port, '/json')
    const allowed = await session.send(port, ping, { origin: 'https://app.example.com' })
    expect(allowed.status).toBe(200)
    expect(allowed.headers.get('access-control-allow-origin')).toBe('https://app.example.com')
    const other = await session.send(port, ping, { origin: 'https://evil.example.com' })
    expect(other.status).toBe(403)
  })

  it.each([
    ['invalid JSON', '{"jsonrpc":"2.0","id":1,', -32700],
    ['a repeated key', '{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}', -32700],
    [
      'a repeated name with an escaped letter',
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","n\\u0061me":"any"}}',
      -32700,
    ],
    ['a key in the wrong case', '{"jsonrpc":"2.0","id":1,"method":"ping","Method":"x"}', -32600],
    [
      'a parameter name in the wrong case',
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","NAME":"any"}}',
      -32600,
    ],
    ['a message of another protocol', '{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600],
    ['an invalid id', '{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600],
    ['an id that is an object', '{"jsonrpc":"2.0","id":{},"method":"ping"}', -32600],
    [
      'a message with method and result',
      '{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}',
      -32600,
    ],
    [
      'values that are nested too deeply',
      `{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":${'['.repeat(200)}${']'.repeat(200)}}}`,
      -32700,
    ],
    ['invalid UTF-8', Buffer.from([0x22, 0xff, 0x22]), -32700],
    ['a control character', '{"jsonrpc":"2.0","id":1,"method":"pi\nng"}', -32700],
  ])('refuse %s', async (_what, body, code) => {
    const before = server.received.length
    const session = await rawSession(port, '/one')
    const answer = await fetch(`http://127.0.0.1:${port}/one`, {
      method: 'POST',
      headers: { ...good, 'mcp-session-id': session.id },
      body,
    })
    expect(answer.status).toBe(400)
    expect(await answer.json()).toMatchObject({ jsonrpc: '2.0', error: { code } })
    expect(server.received.slice(before).every(({ body: got }) => !got.includes('echo'))).toBe(true)
  })

  it('refuse a body beyond the limit with 413', async () => {
    const session = await rawSession(port, '/one')
    const { status } = await call(session, 'echo', { text: 'x'.repeat(2_200_000) })
    expect(status).toBe(413)
  })
})

describe('versions of MCP', () => {
  it.each(['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25'])(
    'speaks %s',
    async (version) => {
      const session = await rawSession(port, '/one', version)
      const headers = { 'mcp-protocol-version': version }
      const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
      const { message } = await session.send(port, ping, headers)
      expect(message).toEqual({ jsonrpc: '2.0', id: 1, result: {} })
      expect(server.received.at(-1)?.headers['mcp-protocol-version']).toBe(version)
    },
  )

  it('accepts batches in 2025-03-26 only', async () => {
    const batch = [
      { jsonrpc: '2.0', id: 1, method: 'ping' },
      { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 77 } },
      { jsonrpc: '2.0', id: 2, method: 'tools/list' },
    ]
    const session = await rawSession(port, '/one', '2025-03-26')
    const { messages } = await session.send(port, JSON.stringify(batch))
    expect(messages).toHaveLength(2)
    expect(messages).toContainEqual({ jsonrpc: '2.0', id: 1, result: {} })
    const later = await rawSession(port, '/one', '2025-06-18')
    expect((await later.send(port, JSON.stringify(batch))).status).toBe(400)
  })
})

describe('resumed MCP streams', () => {
  it.each([
    ['one target', '/resumable', 'steps'],
    ['several', '/pair', 'a_steps'],
  ])('continue after the last event that the client saw, with %s', async (_what, path, name) => {
    const session = await rawSession(port, path, '2025-11-25')
    const url = `http://127.0.0.1:${port}${path}`
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-session-id': session.id,
      'mcp-protocol-version': '2025-11-25',
    }
    const params = { name, _meta: { progressToken: 't' } }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 5, method: 'tools/call', params })
    const text = await (await fetch(url, { method: 'POST', headers, body })).text()
    const ids = [...text.matchAll(/^id: (.*)$/gm)].map(([, id]) => id ?? '')
    expect(ids.length).toBeGreaterThanOrEqual(4)
    const again = await fetch(url, {
      headers: { ...headers, 'last-event-id': ids.at(-3) ?? '' },
    })
    expect(again.status).toBe(200)
    let replayed = ''
    const reader = again.body?.pipeThrough(new TextDecoderStream()).getReader()
    while (!replayed.includes('"id":5')) {
      const piece = await reader?.read()
      if (piece === undefined || piece.done) break
      replayed += piece.value
    }
    await reader?.cancel()
    expect(replayed).toContain('"progress":3')
    expect(replayed).toContain('"id":5')
    expect(replayed).not.toContain('"progress":1,')
  })
})

describe('telemetry of MCP requests', () => {
  it('has a span for each call to a target, with its context propagated', async () => {
    const session = await rawSession(port, '/json')
    const traceId = 'ab'.repeat(16)
    const headers = { traceparent: `00-${traceId}-${'cd'.repeat(8)}-01` }
    const params = { name: 'echo', arguments: { text: 'x' } }
    const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params }
    await session.send(port, message, headers)
    const got = json.received.at(-1)?.headers.traceparent as string
    const span = await waitFor('the span', () =>
      collected.spans.find((one) => hex(one.span.traceId) === traceId && one.span.kind === 3),
    )
    expect(got).toBe(`00-${traceId}-${hex(span.span.spanId)}-01`)
    expect(span.span.name).toBe('tools/call only_echo')
    expect(span.attributes).toMatchObject({ 'mcp.method.name': 'tools/call', 'mcp.target': 'only' })
    const root = await waitFor('the span of the request', () =>
      collected.spans.find((one) => hex(one.span.spanId) === hex(span.span.parentSpanId)),
    )
    expect(root.attributes).toMatchObject({ protocol: 'mcp', 'gen_ai.tool.name': 'echo' })
  })

  it('has method, target and tool in the access log, and metrics without names from clients', async () => {
    const session = await rawSession(port, '/pair')
    await call(session, 'b_echo', { text: 'x' })
    await call(session, 'b_no-such-tool', {})
    await session.send(port, { jsonrpc: '2.0', id: 1, method: 'made/up' })
    const line = await waitFor('the line', () =>
      gateway.stdout.split('\n').find((one) => one.includes('mcp.target=b ')),
    )
    expect(line).toMatch(
      / protocol=mcp mcp\.method\.name=tools\/call mcp\.session\.id=[0-9a-f]+ mcp\.target=b mcp\.resource\.type=tool gen_ai\.tool\.name=echo /,
    )
    const metrics = /metrics: (\S+)/.exec(gateway.stderr)?.[1] ?? ''
    const text = await (await fetch(metrics)).text()
    const counts = text.split('\n').filter((one) => one.startsWith('sluice_mcp_requests_total{'))
    expect(counts.some((one) => /method="tools\/call",target="b",type="tool"/.test(one))).toBe(true)
    expect(counts.some((one) => /method="other".*result="error"/.test(one))).toBe(true)
    expect(text).not.toContain('made/up')
    expect(text).not.toContain('no-such-tool')
    const calls = text.split('\n').filter((one) => /mcp_tool_call_duration\w+_count/.test(one))
    expect(calls.some((one) => /target="b",tool="echo",result="ok"/.test(one))).toBe(true)
    expect(calls.some((one) => /tool="_OTHER",result="error"/.test(one))).toBe(true)
  })
})
