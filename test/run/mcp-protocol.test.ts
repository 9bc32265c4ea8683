/** What the protocol asks of the gateway itself: versions, capabilities, discovery, ends of sessions. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { describe, expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { policy } from '../support/manifests.ts'
import { mcpManifests, rawSession } from '../support/mcp-client.ts'
import { type LenientServer, startLenientServer } from '../support/mcp-lenient-server.ts'

const rules = { authorization: { policy: { matchExpressions: ['true'] } } }

const one = useFixture(startLenientServer)
const two = useFixture(startLenientServer)
const port = await freePort()
useGateway(() => {
  const target = (name: string, { port }: LenientServer) => ({
    name,
    static: { host: '127.0.0.1', port },
  })
  const single = [target('one', one)]
  const both = [...single, target('two', two)]
  return {
    manifests: {
      'all.yaml': mcpManifests(
        port,
        {
          single: { targets: single },
          pair: { targets: both },
          stateless: { targets: single, sessionRouting: 'Stateless' },
          'stateless-pair': { targets: both, sessionRouting: 'Stateless' },
          ruled: { targets: single },
        },
        [policy('ruled', 'GatewayBackend/ruled', { backend: { mcp: rules } })],
      ),
    },
  }
})

const at = (path: string) => `http://127.0.0.1:${port}${path}`
const headers = {
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
}

async function initialize(path: string, params: object) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 0, method: 'initialize', params })
  const response = await fetch(at(path), { method: 'POST', headers, body })
  const { result } = (await response.json()) as { result: { protocolVersion: string } }
  return { id: response.headers.get('mcp-session-id') ?? undefined, result }
}

const hello = (protocolVersion: string, capabilities: object = {}) => ({
  protocolVersion,
  capabilities,
  clientInfo: { name: 'test', version: '1' },
})

describe('initialize', () => {
  const paths = ['/single', '/pair', '/stateless', '/stateless-pair']

  it.each(paths)('at %s answers an unknown version with the latest known one', async (path) => {
    for (const version of ['1999-01-01', '2099-01-01', 'x', '']) {
      const before = one.received.length
      const { result } = await initialize(path, hello(version))
      expect(result.protocolVersion).toBe('2025-11-25')
      const [begun = ''] = one.received.slice(before)
      expect(JSON.parse(begun)).toMatchObject({ params: { protocolVersion: '2025-11-25' } })
    }
  })

  it.each(paths)('at %s accepts a known version', async (path) => {
    for (const version of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']) {
      const { result } = await initialize(path, hello(version))
      expect(result.protocolVersion).toBe(version)
    }
  })

  it('begins a session whose messages are served in the version that was answered', async () => {
    const { id = '', result } = await initialize('/single', hello('2099-01-01'))
    const ping = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
    const response = await fetch(at('/single'), {
      method: 'POST',
      headers: {
        ...headers,
        'mcp-session-id': id,
        'mcp-protocol-version': result.protocolVersion,
      },
      body: ping,
    })
    expect(response.status).toBe(200)
    await response.text()
    expect(one.versions.at(-1)).toBe('2025-11-25')
  })
})

describe('requests of MCP servers', () => {
  /** What the server got for its question, and whether the client has seen that. */
  async function question(path: string, capabilities: object, asked: object) {
    one.question = asked
    const { id } = await initialize(path, hello('2025-11-25', capabilities))
    const name = path.endsWith('pair') ? 'one_ask' : 'ask'
    const post = (message: object) =>
      fetch(at(path), {
        method: 'POST',
        headers: { ...headers, ...(id !== undefined && { 'mcp-session-id': id }) },
        body: JSON.stringify({ jsonrpc: '2.0', ...message }),
      })
    const response = await post({ id: 1, method: 'tools/call', params: { name } })
    let text = ''
    let isSeen = false
    for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += piece
      const [, request] = /^data: (\{.*"method".*)$/m.exec(text) ?? []
      if (request === undefined || isSeen) continue
      isSeen = true
      const { id } = JSON.parse(request) as { id: string }
      await (await post({ id, result: { of: 'client' } })).text()
    }
    const answers = [...text.matchAll(/\{.*"content".*\}/g)].map(([json]) => JSON.parse(json))
    const answer = JSON.parse(answers.at(-1).result.content[0].text) as Record<string, unknown>
    return { isSeen, answer }
  }

  const sampling = { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } }
  const form = { method: 'elicitation/create', params: { message: 'x', requestedSchema: {} } }
  const url = { method: 'elicitation/create', params: { mode: 'url', message: 'x', url: 'x' } }
  const roots = { method: 'roots/list' }
  const task = { method: 'tasks/get', params: { taskId: 'x' } }
  const unable = { id: 'question', error: { code: -32601 } }
  const able = { id: 'question', result: { of: 'client' } }

  it.each(['/single', '/pair'])('reach only clients that can answer them (%s)', async (path) => {
    for (const [capabilities, asked, isAble] of [
      [{}, sampling, false],
      [{ roots: {}, elicitation: {} }, sampling, false],
      [{ sampling: {} }, sampling, true],
      [{ sampling: null }, sampling, false],
      [{}, roots, false],
      [{ roots: {} }, roots, true],
      [{}, form, false],
      [{ elicitation: {} }, form, true],
      [{ elicitation: { form: {} } }, form, true],
      [{ elicitation: { url: {} } }, form, false],
      [{ elicitation: {} }, url, false],
      [{ elicitation: { url: {} } }, url, true],
      [{}, task, false],
      [{}, { method: 'ping' }, true],
    ] as const) {
      const { isSeen, answer } = await question(path, capabilities, asked)
      expect([asked, capabilities, isSeen]).toEqual([asked, capabilities, isAble])
      expect(answer).toMatchObject(isAble ? able : unable)
    }
  })

  it.each(['/stateless', '/stateless-pair'])(
    'are answered by the gateway without sessions (%s)',
    async (path) => {
      for (const asked of [sampling, form, roots, { method: 'x/y' }]) {
        const { isSeen, answer } = await question(path, { sampling: {}, roots: {} }, asked)
        expect(isSeen).toBe(false)
        expect(answer).toMatchObject(unable)
      }
      const { isSeen, answer } = await question(path, {}, { method: 'ping' })
      expect([isSeen, answer]).toEqual([false, { jsonrpc: '2.0', id: 'question', result: {} }])
    },
  )
})

describe('OAuth metadata documents', () => {
  const paths = [
    '/.well-known/oauth-protected-resource/single',
    '/.well-known/oauth-authorization-server/single',
    '/.well-known/oauth-authorization-server/single?x=1',
    '/single/.well-known/openid-configuration',
  ]

  it('of a single server without authentication are forwarded from it', async () => {
    for (const path of paths) {
      one.documents.set(path, { of: path })
      const response = await fetch(at(path))
      expect([response.status, await response.json()]).toEqual([200, { of: path }])
      expect(one.asked.at(-1)).toBe(`GET ${path} 127.0.0.1:${one.port}`)
    }
    const path = '/.well-known/oauth-authorization-server/single/client-registration'
    one.documents.set(path, { client_id: 'x' })
    const response = await fetch(at(path), { method: 'POST', headers, body: '{}' })
    expect(await response.json()).toEqual({ client_id: 'x' })
  })

  it('do not bypass authorization rules', async () => {
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'delete' } }
    const before = one.received.length
    for (const [path, status] of [
      ['/.well-known/oauth-protected-resource/ruled', 405],
      ['/.well-known/oauth-authorization-server/ruled/client-registration', 404],
    ] as const) {
      const body = JSON.stringify(call)
      const response = await fetch(at(path), { method: 'POST', headers, body })
      expect(response.status).toBe(status)
    }
    expect(one.received).toHaveLength(before)
  })

  it('of several servers do not exist', async () => {
    const path = '/.well-known/oauth-protected-resource/pair'
    one.documents.set(path, {})
    expect((await fetch(at(path))).status).toBe(404)
  })
})

describe('streams of MCP servers', () => {
  const answer = '{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}'
  const progress = '{"jsonrpc":"2.0","method":"notifications/message","params":{"data":1}}'

  /** The stream that a client gets for one of a server. */
  async function streamed(path: string, stream: string): Promise<string> {
    const session = await rawSession(port, path, '2025-11-25')
    one.streams.set('streamed', stream)
    const name = path === '/pair' ? 'one_streamed' : 'streamed'
    const params = { name, arguments: {} }
    const response = await fetch(at(path), {
      method: 'POST',
      headers: { ...headers, 'mcp-session-id': session.id },
      body: JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/call', params }),
    })
    return response.text()
  }

  it.each(['/single', '/pair'])('forward a retry time without a message (%s)', async (path) => {
    const text = await streamed(path, `data: ${progress}\n\nretry: 700\n\ndata: ${answer}\n\n`)
    expect(text).toContain('retry: 700\n')
    const events = text.split('\n\n').filter((event) => event !== '')
    expect(events.filter((event) => /^data: ?$/m.test(event))).toEqual([])
    expect(events.filter((event) => event.includes('event:'))).toHaveLength(2)
    expect(events.at(-1)).toContain('"id":7')
  })

  it('cause no empty message at the official client', async () => {
    one.streams.set('timed', `retry: 700\n\ndata: ${progress}\n\nretry: 800\n\ndata: ${answer}\n\n`)
    const client = new Client({ name: 'test', version: '1' })
    const errors: Error[] = []
    client.onerror = (error) => errors.push(error)
    const transport = new StreamableHTTPClientTransport(new URL(at('/single')))
    await client.connect(transport as Parameters<Client['connect']>[0])
    expect(await client.callTool({ name: 'timed' })).toEqual({ content: [] })
    await client.close()
    expect(errors.map(({ message }) => message).filter((text) => /JSON/.test(text))).toEqual([])
  })

  it('keep events that have an id and no data: clients resume from them', async () => {
    const text = await streamed('/single', `id: first\ndata: \n\nid: second\ndata: ${answer}\n\n`)
    expect(text).toMatch(/id: first\ndata: \n\n/)
    expect(text).toMatch(/id: second\n/)
  })

  it.each([
    ['LF', '\n'],
    ['CR', '\r'],
    ['CRLF', '\r\n'],
  ])('are read to the last event with %s line ends', async (_name, end) => {
    const lines = [`data: ${progress}`, '', `data: ${answer}`, '', ''].join(end)
    for (const path of ['/single', '/pair']) {
      const text = await streamed(path, lines)
      expect(text).toContain('notifications/message')
      expect(text).toContain('"id":7')
    }
  })

  it.each([
    ['CR', '\r'],
    ['CRLF', '\r\n'],
  ])('forward each event as soon as it ends, with %s line ends', async (_name, end) => {
    one.stream = `data: ${progress}${end}${end}`
    const session = await rawSession(port, '/single')
    const response = await fetch(at('/single'), {
      headers: { accept: 'text/event-stream', 'mcp-session-id': session.id },
    })
    const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    while (!text.includes('notifications/message')) {
      const piece = await reader?.read()
      if (piece === undefined || piece.done) throw new Error(`the stream ends: ${text}`)
      text += piece.value
    }
    await reader?.cancel()
  })
})

describe('a DELETE request of an MCP client', () => {
  it('ends a session with 200, as the official client expects', async () => {
    const session = await rawSession(port, '/single')
    expect(await session.end(port)).toBe(200)
    expect(await session.end(port)).toBe(404)
    const client = new Client({ name: 'test', version: '1' })
    const errors: Error[] = []
    client.onerror = (error) => errors.push(error)
    const transport = new StreamableHTTPClientTransport(new URL(at('/single')))
    await client.connect(transport as Parameters<Client['connect']>[0])
    await transport.terminateSession()
    await client.close()
    expect(errors.filter(({ message }) => message.includes('terminate'))).toEqual([])
  })
})
