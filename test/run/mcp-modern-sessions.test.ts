/** Modern clients in front of servers that keep a session for each client, and what of a request reaches a server. */
import { createServer, type IncomingMessage } from 'node:http'
import { beforeEach, describe, expect, it } from 'vitest'
import { useGateway, useListening } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { gateway, mcpBackend, policy, routeByPath, secret } from '../support/manifests.ts'
import { rawSession } from '../support/mcp-client.ts'
import { modernRequest, sendModern } from '../support/mcp-modern-client.ts'
import { useModernServer } from '../support/mcp-modern-server.ts'
import { waitFor } from '../support/wait-for.ts'

interface Seen {
  readonly verb: string
  readonly method: string | undefined
  readonly session: string | undefined
  readonly headers: IncomingMessage['headers']
}

/** A legacy server that tells who began the session of a call, and what the request itself shows. */
function useNamingServer({ isStateful }: { isStateful: boolean }) {
  const seen: Seen[] = []
  const owners = new Map<string, string>()
  const http = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += String(chunk)
    const { headers, method: verb = '' } = request
    const { id, method } = (text === '' ? {} : JSON.parse(text)) as {
      id?: unknown
      method?: string
    }
    const session = headers['mcp-session-id'] as string | undefined
    seen.push({ verb, method, session, headers })
    if (verb === 'GET') return void response.writeHead(405).end()
    if (id === undefined) return void response.writeHead(202).end()
    const answer = (result: object, more = {}) => {
      response.writeHead(200, { 'content-type': 'application/json', ...more })
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result }))
    }
    const own = String(headers['private-token'] ?? 'nobody')
    if (method === 'server/discover') {
      response.writeHead(400, { 'content-type': 'application/json' })
      const error = { code: -32601, message: 'Method not found' }
      return void response.end(JSON.stringify({ jsonrpc: '2.0', id, error }))
    }
    if (method === 'initialize') {
      const name = `session-${owners.size + 1}`
      owners.set(name, own)
      return answer(
        {
          protocolVersion: '2025-06-18',
          capabilities: { tools: {} },
          serverInfo: { name: 'naming', version: '1' },
          instructions: `for ${own}`,
        },
        isStateful ? { 'mcp-session-id': name } : {},
      )
    }
    answer(
      method === 'tools/list'
        ? { tools: [{ name: 'who', inputSchema: { type: 'object' } }] }
        : { content: [{ type: 'text', text: owners.get(session ?? '') ?? own }] },
    )
  })
  return { server: useListening(http), seen }
}

const keeping = useNamingServer({ isStateful: true })
const plain = useNamingServer({ isStateful: false })
const modern = useModernServer({ capabilities: { tools: {} } })
const port = await freePort()
const at = (path: string) => `http://127.0.0.1:${port}/${path}`
const target = (name: string, { port }: { readonly port: number }, more: object = {}) => ({
  name,
  static: { host: '127.0.0.1', port, ...more },
})

useGateway(() => {
  const served = (name: string, targets: readonly Record<string, unknown>[], more = {}) => [
    mcpBackend(name, targets, more),
    routeByPath(name),
  ]
  const traffic = {
    apiKeyAuthentication: { mode: 'Strict', secretRef: { name: 'keys' } },
  }
  return {
    manifests: [
      gateway(port),
      secret('keys', { team: JSON.stringify({ key: 'team-key' }) }),
      ...served('keeping', [target('only', keeping.server)]),
      ...served('shared', [target('only', keeping.server)]),
      policy('shared', 'HTTPRoute/shared', { traffic }),
      ...served('each', [target('only', keeping.server)], { sessionRouting: 'Stateless' }),
      policy('each', 'HTTPRoute/each', { traffic }),
      ...served('plain', [target('only', plain.server)]),
      ...served('several', [target('a', modern), target('b', keeping.server)]),
      ...served('harmless', [target('a', modern), target('b', plain.server)]),
      ...served('older', [target('only', keeping.server, { protocol: 'SSE' })]),
    ],
  }
})

const call = (name = 'who') => modernRequest('tools/call', { name, arguments: {} })
const textOf = (message: Record<string, unknown> | undefined) =>
  (message?.result as { content?: { text: string }[] } | undefined)?.content?.[0]?.text
const key = { authorization: 'Bearer team-key' }
beforeEach(() => {
  keeping.seen.length = 0
  plain.seen.length = 0
})

describe('the modern era in front of a server that keeps sessions', () => {
  it.each(['keeping', 'several', 'older'])(
    'is not offered, so that clients fall back to initialize: %s',
    async (path) => {
      const { status, message } = await sendModern(at(path), modernRequest('server/discover'))
      expect(status).toBe(400)
      const supported = ['2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05', '2024-10-07']
      const data = { supported, requested: '2026-07-28' }
      expect(message).toMatchObject({ id: 1, error: { code: -32022, data } })
    },
  )

  it('leaves no session of the gateway at the server', async () => {
    await sendModern(at('keeping'), modernRequest('server/discover'))
    await sendModern(at('several'), modernRequest('tools/list'))
    const begun = keeping.seen.filter(({ method }) => method === 'initialize').length
    const ended = () => keeping.seen.filter(({ verb }) => verb === 'DELETE').length
    await waitFor('the end of the sessions', () => ended() === begun)
  })

  it.each([
    ['keeping', 'who'],
    ['several', 'b_who'],
    ['older', 'who'],
  ])('does not reach it with a call: %s', async (path, name) => {
    const { status, message } = await sendModern(at(path), call(name))
    expect(status).toBe(400)
    expect(message).toMatchObject({ id: 1, error: { code: -32022 } })
    expect(keeping.seen.some(({ method }) => method === 'tools/call')).toBe(false)
  })

  it('leaves lists and calls of the other servers', async () => {
    const { message } = await sendModern(at('several'), modernRequest('tools/list'))
    expect(message?.result).toMatchObject({
      tools: [{ name: 'a_echo' }],
      _meta: { 'sluice.dev/unavailable': ['b'] },
    })
    expect((await sendModern(at('several'), call('a_echo'))).message).toHaveProperty('result')
  })

  it('never shares a session between clients with the same key', async () => {
    for (const name of ['alice', 'bob']) {
      const headers = { ...key, 'private-token': name }
      const refused = await sendModern(at('shared'), call(), { headers })
      expect(refused.message).toMatchObject({ error: { code: -32022 } })
      const own = await sendModern(at('each'), call(), { headers })
      expect(textOf(own.message)).toBe(name)
    }
    const sessions = keeping.seen.flatMap(({ method, session }) =>
      method === 'tools/call' ? [session] : [],
    )
    expect(new Set(sessions).size).toBe(2)
  })

  it('is not asked again for each client', async () => {
    await sendModern(at('keeping'), modernRequest('server/discover'))
    keeping.seen.length = 0
    await sendModern(at('keeping'), modernRequest('server/discover'))
    expect(keeping.seen).toEqual([])
  })
})

describe('a server that gives no session ids', () => {
  const initialized = () => plain.seen.filter(({ method }) => method === 'initialize').length

  it('is initialized once for requests that look the same to it', async () => {
    const headers = (n: number) => ({
      'private-token': 'carol',
      traceparent: `${n}`,
      'x-request-id': `${n}`,
    })
    for (const n of [1, 2, 3]) {
      expect(textOf((await sendModern(at('plain'), call(), { headers: headers(n) })).message)).toBe(
        'carol',
      )
    }
    expect(initialized()).toBe(1)
  })

  it.each(['private-token', 'x-vault-token', 'x-my-own-thing'])(
    'tells no client what it told one with another %s',
    async (name) => {
      for (const value of ['dora', 'emil']) {
        const headers = { [name]: value, 'x-case': name }
        const { message } = await sendModern(at('plain'), modernRequest('server/discover'), {
          headers,
        })
        expect(message).toHaveProperty('result')
      }
      expect(initialized()).toBe(2)
    },
  )
})

describe('several servers', () => {
  const sent = {
    'private-token': 'p',
    'x-vault-token': 'v',
    'circle-token': 'c',
    authorization: 'Bearer x',
    cookie: 'a=b',
    'x-my-own-thing': 'o',
    'x-request-id': 'r',
    traceparent: 't',
    'user-agent': 'tests',
  }

  it('get no header that may be meant for one of them', async () => {
    await sendModern(at('harmless'), modernRequest('tools/list'), { headers: sent })
    const session = await rawSession(port, '/harmless')
    await session.send(port, { jsonrpc: '2.0', id: 1, method: 'tools/list' }, sent)
    const all = [modern.last?.headers, ...plain.seen.map(({ headers }) => headers)]
    expect(all.length).toBeGreaterThan(3)
    for (const headers of all) {
      for (const name of Object.keys(sent).slice(0, 6)) expect(headers).not.toHaveProperty(name)
    }
    const last = plain.seen.findLast(({ method }) => method === 'tools/list')
    expect(last?.headers).toMatchObject({
      'x-request-id': 'r',
      traceparent: 't',
      'user-agent': 'tests',
    })
  })

  it('are the only ones from which such headers are withheld', async () => {
    const session = await rawSession(port, '/keeping')
    await session.send(port, { jsonrpc: '2.0', id: 1, method: 'tools/list' }, sent)
    expect(keeping.seen.at(-1)?.headers).toMatchObject(sent)
  })
})
