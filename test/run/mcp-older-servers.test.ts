/** Servers of the older MCP transport (HTTP with SSE): timeouts, and one session for all workers. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  CreateMessageRequestSchema,
  CreateMessageResultSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { afterEach, describe, expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { mcpManifests, rawSession } from '../support/mcp-client.ts'
import { startOlderServer } from '../support/mcp-older-server.ts'
import { TestSseServer, useMcpServer } from '../support/mcp-server.ts'
import { waitFor } from '../support/wait-for.ts'

const older = useFixture(startOlderServer)
const newer = useMcpServer({
  offer: (one) => {
    one.registerTool('who', {}, () => ({ content: [] }))
  },
})
/** A server of the official SDK, whose tool asks the client. */
const official = useFixture(
  () =>
    new TestSseServer((one) => {
      one.registerTool('ask', {}, async (extra) => {
        const params = { messages: [], maxTokens: 1 }
        const request = { method: 'sampling/createMessage' as const, params }
        const { content } = await extra.sendRequest(request, CreateMessageResultSchema)
        return { content: [{ type: 'text', text: JSON.stringify(content) }] }
      })
    }).start(),
  (server) => server.kill(),
)
const port = await freePort()

const target = (more: object = {}) => ({
  name: 'older',
  static: { host: '127.0.0.1', port: older.port, protocol: 'SSE', ...more },
})
const limited = () => target({ policies: { http: { requestTimeout: '1s' } } })
const other = () => ({ name: 'newer', static: { host: '127.0.0.1', port: newer.port } })

/** A route whose rule has a timeout. */
const limitedRoute = {
  apiVersion: 'gateway.networking.k8s.io/v1',
  kind: 'HTTPRoute',
  metadata: { name: 'limited' },
  spec: {
    parentRefs: [{ name: 'edge' }],
    rules: [
      {
        matches: [{ path: { value: '/by-route' } }],
        timeouts: { request: '1s' },
        backendRefs: [{ group: 'sluice.dev', kind: 'GatewayBackend', name: 'plain' }],
      },
    ],
  },
}

useGateway(() => ({
  manifests: {
    'all.yaml': mcpManifests(
      port,
      {
        plain: { targets: [target()] },
        official: { targets: [target({ port: official.port })] },
        'by-policy': { targets: [limited()] },
        several: { targets: [limited(), other()] },
        stateless: { targets: [limited()], sessionRouting: 'Stateless' },
      },
      [limitedRoute],
    ),
  },
  args: ['--workers', '2'],
}))

const call = (name: string, more: object = {}) => ({
  jsonrpc: '2.0',
  id: 7,
  method: 'tools/call',
  params: { name, arguments: {}, ...more },
})

afterEach(() => older.silent.clear())

describe('a timeout with a server of the older transport', () => {
  it.each(['/by-route', '/by-policy'])(
    'ends a call that has no answer with 504: %s',
    async (path) => {
      const session = await rawSession(port, path)
      const { status, message } = await session.send(port, call('never'))
      expect(status).toBe(504)
      expect(message).toMatchObject({ id: 7, error: { code: -32603 } })
      // The session goes on.
      expect((await session.send(port, call('who'))).status).toBe(200)
      await session.end(port)
    },
  )

  it.each(['/by-route', '/by-policy'])('is not extended by progress: %s', async (path) => {
    const session = await rawSession(port, path)
    const asked = call('steps', { _meta: { progressToken: 'steps' } })
    const { messages, message } = await session.send(port, asked)
    expect(messages.length).toBeGreaterThan(1)
    expect(message).toMatchObject({ id: 7, error: { message: 'upstream call timeout' } })
    await session.end(port)
  })

  it('ends a call with an error if there are several servers', async () => {
    const session = await rawSession(port, '/several')
    const { status, message } = await session.send(port, call('older_never'))
    expect(status).toBe(200)
    expect(message).toMatchObject({ id: 7, error: { code: -32603 } })
    await session.end(port)
  })

  it('omits the server from a joined list', async () => {
    const session = await rawSession(port, '/several')
    older.silent.add('tools/list')
    const { message } = await session.send(port, { jsonrpc: '2.0', id: 3, method: 'tools/list' })
    expect(message).toMatchObject({
      result: { tools: [{ name: 'newer_who' }], _meta: { 'sluice.dev/unavailable': ['older'] } },
    })
    await session.end(port)
  })

  it.each(['/by-route', '/by-policy', '/stateless'])(
    'ends initialize with 504, and closes the connection: %s',
    async (path) => {
      await waitFor('the end of other sessions', () => older.open === 0)
      older.silent.add('initialize')
      await expect(rawSession(port, path)).rejects.toThrow('504')
      await waitFor('the end of the connection', () => older.open === 0)
    },
  )

  it('omits a server from initialize if it does not answer in time', async () => {
    older.silent.add('initialize')
    const session = await rawSession(port, '/several')
    older.silent.clear()
    expect((await session.send(port, call('older_who'))).status).toBe(200)
    await session.end(port)
  })
})

/** Connects a client whose requests may reach every worker. */
async function connect(path: string): Promise<Client> {
  const client = new Client({ name: 'test', version: '1' }, { capabilities: { sampling: {} } })
  client.setRequestHandler(CreateMessageRequestSchema, () => ({
    model: 'test',
    role: 'assistant',
    content: { type: 'text', text: 'sampled' },
  }))
  const url = new URL(`http://127.0.0.1:${port}${path}`)
  const requestInit = { headers: { connection: 'close' } }
  const transport = new StreamableHTTPClientTransport(url, { requestInit })
  await client.connect(transport as Parameters<Client['connect']>[0])
  return client
}

const textOf = ({ content }: Awaited<ReturnType<Client['callTool']>>): string =>
  (content as { text: string }[])[0]?.text ?? ''

describe('several workers with a server of the older transport', () => {
  it.each([
    ['/plain', ''],
    ['/several', 'older_'],
  ])(
    'share one session of a client, with its questions and its state: %s',
    async (path, prefix) => {
      const before = older.streams
      const client = await connect(path)
      const sessions = new Set<string>()
      for (let n = 0; n < 12; n++) {
        const sampled = textOf(await client.callTool({ name: `${prefix}ask` }))
        expect(sampled).toContain('sampled')
        sessions.add(sampled.split(':')[0] ?? '')
        sessions.add(textOf(await client.callTool({ name: `${prefix}who` })))
      }
      expect([...sessions]).toEqual([String(before + 1)])
      expect(older.streams).toBe(before + 1)
      await client.close()
    },
  )

  it('let a server of the official SDK ask the client', async () => {
    const client = await connect('/official')
    for (let n = 0; n < 8; n++) {
      expect(textOf(await client.callTool({ name: 'ask' }))).toContain('sampled')
    }
    await client.close()
  })

  it('begin one session again if the server has ended the stream', async () => {
    const client = await connect('/plain')
    const who = async () => textOf(await client.callTool({ name: 'who' }))
    const first = await who()
    older.drop()
    const again = await waitFor('another session', () => who().catch(() => undefined))
    expect(again).not.toBe(first)
    for (let n = 0; n < 12; n++) expect(await who()).toBe(again)
    await client.close()
  })

  it('close the stream when the client ends the session', async () => {
    await waitFor('the end of other sessions', () => older.open <= 2)
    const before = older.open
    const session = await rawSession(port, '/plain')
    for (let n = 0; n < 4; n++) {
      await session.send(port, call('who'), { connection: 'close' })
    }
    expect(older.open).toBe(before + 1)
    await session.end(port)
    await waitFor('the end of the stream', () => older.open === before)
  })
})
