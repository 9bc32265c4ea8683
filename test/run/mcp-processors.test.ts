/** Services that see MCP messages, and may change or refuse them (ExtMcp of agentgateway), over real gRPC. */
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { recordsIn } from '../support/decision-records.ts'
import { denied, ExtMcpServer, mutated, mutatedText } from '../support/ext-mcp-server.ts'
import { useFixture, useFolder, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import {
  gateway,
  type Manifest,
  mcpBackend,
  policy,
  routeByPath,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { connectClient, rawSession } from '../support/mcp-client.ts'
import { modernRequest, sendModern } from '../support/mcp-modern-client.ts'
import { useModernServer } from '../support/mcp-modern-server.ts'
import { useMcpServer } from '../support/mcp-server.ts'

function offer(server: McpServer): void {
  const shape = { text: z.string().optional() }
  server.registerTool('echo', { inputSchema: shape }, async ({ text }, extra) => {
    const logged = { level: 'error' as const, data: `log ${text}` }
    await extra.sendNotification({ method: 'notifications/message', params: logged })
    return { content: [{ type: 'text', text: `echo ${text}` }] }
  })
  server.registerTool('other', {}, () => ({ content: [{ type: 'text', text: 'other' }] }))
  server.registerTool('fails', {}, () => {
    throw new Error('broken tool')
  })
  server.registerResource('r', 'test://r', {}, (uri) => ({
    contents: [{ uri: uri.href, text: 'r' }],
  }))
}

const legacy = useMcpServer({ offer })
const modern = useModernServer({
  answers: {
    'resources/read': ({ params }) => ({
      contents: [{ uri: params.uri, text: 'r' }],
      ttlMs: 9,
      cacheScope: 'public',
    }),
    'tools/call': ({ params }) => ({
      content: [{ type: 'text', text: `modern ${JSON.stringify(params.arguments)}` }],
    }),
  },
})
const service = useFixture(() => new ExtMcpServer().start())
const folder = useFolder('sluice-mcp-processors-')
const [port, closed] = [await freePort(), await freePort()]

const running = useGateway(() => {
  const target = (name: string, server: { readonly port: number }) => ({
    name,
    static: { host: '127.0.0.1', port: server.port },
  })
  const served = (name: string, targets: readonly Manifest[], mcp: object) => [
    mcpBackend(name, targets),
    routeByPath(name),
    policy(name, `GatewayBackend/${name}`, { backend: { mcp } }),
  ]
  const remote = { backendRef: toBackend('service') }
  const processors = (methods: object, more: object = {}) => ({
    guardrails: { processors: [{ remote: { ...remote, ...more }, methods }] },
  })
  return {
    manifests: [
      gateway(port),
      staticBackend('service', service.port),
      staticBackend('closed', closed),
      ...served('all', [target('a', legacy), target('b', modern)], processors({ '*': 'Full' })),
      ...served('one', [target('only', legacy)], {
        promptGuard: { request: [{ regex: { builtins: ['Email'] } }] },
        authorization: {
          policy: {
            matchExpressions: [
              'mcp.tool.name in ["echo", "fails"] && mcp.tool.arguments.text != "root"',
              'mcp.tool.name == "echo" && !has(mcp.tool.arguments)',
            ],
          },
        },
        ...processors(
          { 'tools/*': 'Full', 'tools/list': 'Off' },
          {
            metadata: { tool: 'mcp.tool.name', user: 'request.headers["x-user"]' },
            allowedRequestHeaders: ['X-User', 'x-secret'],
            disallowedRequestHeaders: ['x-secret'],
          },
        ),
      }),
      ...served('modern', [target('only', modern)], processors({ 'tools/call': 'Full' })),
      mcpBackend('searched', [target('only', legacy)], { toolSearch: {} }),
      routeByPath('searched'),
      policy('searched', 'GatewayBackend/searched', {
        backend: { mcp: processors({ 'tools/list': 'Full' }) },
      }),
      ...served('asked', [target('only', modern)], processors({ '*': 'Request' })),
      ...served('ruled', [target('only', modern)], {
        authorization: { policy: { matchExpressions: ['true'] } },
      }),
      ...served(
        'down',
        [target('only', legacy)],
        processors({ '*': 'Full' }, { backendRef: toBackend('closed') }),
      ),
      ...served(
        'open',
        [target('only', legacy)],
        processors({ '*': 'Full' }, { failureMode: 'FailOpen' }),
      ),
      ...served(
        'broken',
        [target('only', legacy)],
        processors({ '*': 'Full' }, { backendRef: toBackend('missing') }),
      ),
      ...served('pattern', [target('only', legacy)], processors({ 'a*b*': 'Full' })),
    ],
    args: ['--record', 'all', '--record-dir', folder],
  }
})

const at = (path: string) => `http://127.0.0.1:${port}/${path}`
const call = (name: string, args: object = {}) =>
  modernRequest('tools/call', { name, arguments: args })

/** Calls of tools that have reached the legacy server. */
const calls = () => legacy.received.filter(({ body }) => body.includes('tools/call')).length

beforeEach(() => {
  service.requests.length = 0
  service.responses.length = 0
  service.onRequest = () => undefined
  service.onResponse = () => undefined
})

describe('processors of MCP messages [BackendMCP.guardrails]', () => {
  it('see lists of several targets once, and calls by the names that servers know', async () => {
    const client = await connectClient(port, '/all')
    await client.listTools()
    await client.callTool({ name: 'a_echo', arguments: { text: 'x' } })
    await client.readResource({ uri: 'a+test://r' })
    await client.close()
    const seen = service.requests.map(({ services, method, body }) => [services, method, body])
    expect(seen).toMatchObject([
      [['a', 'b'], 'initialize', { clientInfo: { name: 'test' } }],
      [['a', 'b'], 'tools/list', {}],
      [['a'], 'tools/call', { name: 'echo', arguments: { text: 'x' } }],
      [['a'], 'resources/read', { uri: 'test://r' }],
    ])
    const results = service.responses.map(({ method, body }) => [method, Object.keys(body)[0]])
    expect(results).toEqual([
      ['initialize', expect.any(String)],
      ['tools/list', 'tools'],
      ['tools/call', 'content'],
      ['resources/read', 'contents'],
    ])
    const list = service.responses[1]?.body.tools as { name: string }[]
    expect(list.map(({ name }) => name)).toContain('a_echo')
    expect(service.requests[2]?.headers).toMatchObject({ ':method': 'POST', ':path': '/all' })
  })

  it('get chosen headers, metadata and methods, after the guards of the gateway', async () => {
    const headers = { 'x-user': 'ann', 'x-secret': 's' }
    const client = await connectClient(port, '/one', {}, headers)
    await client.listTools()
    await client.callTool({ name: 'echo', arguments: { text: 'to ada@example.com' } })
    await client.close()
    expect(service.requests).toEqual([
      {
        services: ['only'],
        method: 'tools/call',
        metadata: { tool: 'echo', user: 'ann' },
        body: { name: 'echo', arguments: { text: 'to <EMAIL_ADDRESS>' } },
        headers: { 'x-user': 'ann' },
      },
    ])
  })

  it('change arguments, results, lists and headers, for clients and servers of both eras', async () => {
    service.onRequest = ({ body, method }) => {
      if (method !== 'tools/call') return undefined
      return {
        ...mutated({ ...body, arguments: { text: 'changed' }, _meta: { forged: true } }),
        headerMutation: { set: [{ key: 'x-tenant', value: Buffer.from('blue') }], remove: [] },
        metadata: { tier: 'gold' },
      }
    }
    service.onResponse = ({ method, body }) => {
      if (method === 'tools/list') return mutated({ tools: (body.tools as object[]).slice(0, 1) })
      const [block] = (body.content ?? []) as { text: string }[]
      if (block === undefined) return undefined
      return mutated({ content: [{ type: 'text', text: block.text.toUpperCase() }] })
    }
    const client = await connectClient(port, '/all')
    expect((await client.listTools()).tools).toHaveLength(1)
    const ofLegacy = await client.callTool({ name: 'a_echo', arguments: { text: 'x' } })
    expect(ofLegacy.content).toEqual([{ type: 'text', text: 'ECHO CHANGED' }])
    await client.close()
    const sent = legacy.received.findLast(({ body }) => body.includes('tools/call'))
    expect(sent?.headers).toMatchObject({ 'x-tenant': 'blue' })
    expect(sent?.body).not.toContain('forged')
    for (const path of ['modern', 'all']) {
      const name = path === 'all' ? 'b_t' : 't'
      const { message } = await sendModern(at(path), call(name, { text: 'x' }))
      const text = 'MODERN {"TEXT":"CHANGED"}'
      expect(message).toMatchObject({
        result: { resultType: 'complete', content: [{ type: 'text', text }] },
      })
    }
  })

  it('apply to searches for tools if they get tools/list', async () => {
    const client = await connectClient(port, '/searched')
    const search = async () => {
      const args = { name: 'search_tools', arguments: { query: 'echo other fails' } }
      const { content, isError } = await client.callTool(args)
      return { isError, text: (content as { text: string }[])[0]?.text ?? '' }
    }
    expect((await search()).text).toContain('"name":"other"')
    service.onResponse = ({ method, body }) => {
      if (method !== 'tools/list') return undefined
      const tools = body.tools as { name: string }[]
      const left = tools.filter(({ name }) => name !== 'other')
      return mutated({ tools: left.map((one) => ({ ...one, description: `seen ${one.name}` })) })
    }
    const { text } = await search()
    expect(text).toContain('seen echo')
    expect(text).not.toContain('"other"')
    service.onRequest = ({ method }) => (method === 'tools/list' ? denied(1, 'no') : undefined)
    expect(await search()).toEqual({ isError: true, text: 'The tools could not be listed.' })
    await client.close()
  })

  it('change the headers that repeat arguments, if they change the arguments', async () => {
    const sent = async (args: object, changed: object, headers: Record<string, string>) => {
      service.onRequest = ({ body }) => mutated({ ...body, arguments: changed })
      await sendModern(at('modern'), call('t', args), { headers })
      const found = Object.entries(modern.last?.headers ?? {})
      return Object.fromEntries(found.filter(([name]) => name.startsWith('mcp-param-')))
    }
    const secret = { text: 'secret', zone: { region: 'eu' }, count: 2 }
    const headers = { 'mcp-param-word': 'secret', 'mcp-param-region': 'eu', 'mcp-param-count': '2' }
    expect(await sent(secret, { ...secret, text: 'müde' }, headers)).toEqual({
      ...headers,
      'mcp-param-word': `=?base64?${Buffer.from('müde').toString('base64')}?=`,
    })
    expect(await sent(secret, { zone: { region: 'us' }, count: 2 }, headers)).toEqual({
      'mcp-param-region': 'us',
      'mcp-param-count': '2',
    })
    // If two arguments had the value of a header, the one with its name is meant; without one, the header is removed.
    const both = { word: 'same', other: 'same', third: 1 }
    const named = { 'mcp-param-word': 'same', 'mcp-param-unclear': 'same' }
    expect(await sent(both, { ...both, word: 'new' }, named)).toEqual({ 'mcp-param-word': 'new' })
    expect(await sent(secret, secret, { 'mcp-param-word': 'other' })).toEqual({
      'mcp-param-word': 'other',
    })
  })

  it('refuse messages with a reason that models read, or with an error of their own', async () => {
    const client = await connectClient(port, '/all')
    const before = calls()
    service.onRequest = () => denied(1, 'not for you')
    const refused = await client.callTool({ name: 'a_echo', arguments: {} })
    expect(refused).toEqual({ isError: true, content: [{ type: 'text', text: 'not for you' }] })
    await expect(client.listTools()).rejects.toMatchObject({ code: -32_001 })
    service.onRequest = () => denied(3, 'bad', { code: -32_050, message: 'own', data: { n: 1 } })
    await expect(client.callTool({ name: 'a_echo' })).rejects.toMatchObject({
      code: -32_050,
      data: { n: 1 },
    })
    expect(calls()).toBe(before)
    service.onRequest = () => undefined
    service.onResponse = () => denied(0, '')
    await expect(client.readResource({ uri: 'a+test://r' })).rejects.toMatchObject({
      code: -32_603,
    })
    await client.close()
    const { message } = await sendModern(at('all'), call('b_t'))
    expect(message).toMatchObject({ result: { resultType: 'complete', isError: true } })
    await expect(connectClient(port, '/all')).rejects.toThrow()
  })

  it('cannot name another tool, and rules apply to what they change', async () => {
    const client = await connectClient(port, '/one')
    const before = calls()
    service.onRequest = ({ body }) => mutated({ ...body, name: 'other' })
    const renamed = await client.callTool({ name: 'echo', arguments: { text: 'x' } })
    expect(renamed).toMatchObject({ isError: true, content: [{ text: /could not be checked/ }] })
    service.onRequest = ({ body }) => mutated({ ...body, arguments: { text: 'root' } })
    const forbidden = client.callTool({ name: 'echo', arguments: { text: 'x' } })
    await expect(forbidden).rejects.toThrow('Unknown tool: echo')
    expect(calls()).toBe(before)
    await client.close()
  })

  it('refuse messages if they fail, or if their answers or changes are not valid', async () => {
    const client = await connectClient(port, '/one')
    const before = calls()
    const text = (value: string) => ({
      headerMutation: { set: [{ key: 'x', value: Buffer.from(value) }] },
    })
    const bad = [
      14,
      {},
      mutatedText('no JSON'),
      mutatedText('[]'),
      mutatedText('{}},"method":"x","params":{'),
      mutatedText('{},"extra":1'),
      mutatedText('{"name":"echo","name":"other"}'),
      { ...mutated({ name: 'echo' }), ...text('a\r\nb: c') },
      { ...mutated({ name: 'echo' }), headerMutation: { remove: ['host'] } },
      {
        ...mutated({ name: 'echo' }),
        headerMutation: { set: [{ key: 'content-length', value: Buffer.from('1') }] },
      },
    ]
    for (const given of bad) {
      service.onRequest = () => given
      const result = await client.callTool({ name: 'echo', arguments: { text: 'x' } })
      expect(result, JSON.stringify(given)).toMatchObject({
        isError: true,
        content: [{ text: 'The request could not be checked' }],
      })
    }
    expect(calls()).toBe(before)
    service.onRequest = () => undefined
    for (const given of [13, {}, mutatedText('7'), mutatedText('{},"error":{}')]) {
      service.onResponse = () => given
      const result = await client.callTool({ name: 'echo', arguments: { text: 'x' } })
      expect(result).toMatchObject({ content: [{ text: 'The response could not be checked' }] })
    }
    // Errors of servers are not sent to processors; results with isError are.
    service.responses.length = 0
    expect(await client.callTool({ name: 'fails', arguments: { text: 'x' } })).toMatchObject({
      content: [{ text: 'The response could not be checked' }],
    })
    await client.close()
    await expect(connectClient(port, '/down')).rejects.toThrow('could not be checked')
    for (const path of ['broken', 'pattern']) {
      const response = await fetch(at(path), { method: 'POST' })
      expect(response.status).toBe(500)
    }
  })

  it('keep what one client may get out of caches for others, as rules do', async () => {
    const read = modernRequest('resources/read', { uri: 'test://r' })
    for (const path of ['asked', 'ruled']) {
      for (const message of [modernRequest('tools/list'), read]) {
        const answer = await sendModern(at(path), message)
        expect(answer.message?.result).toMatchObject({ cacheScope: 'private' })
      }
    }
  })

  it('let messages pass with failureMode FailOpen', async () => {
    service.onRequest = () => 14
    service.onResponse = () => mutatedText('broken')
    const client = await connectClient(port, '/open')
    const result = await client.callTool({ name: 'echo', arguments: { text: 'x' } })
    expect(result.content).toEqual([{ type: 'text', text: 'echo x' }])
    await client.close()
  })

  it('withhold progress that cannot wait, and give events no ids', async () => {
    const session = await rawSession(port, '/one')
    const params = { name: 'echo', arguments: { text: 'x' } }
    const { messages } = await session.send(port, {
      jsonrpc: '2.0',
      id: 7,
      method: 'tools/call',
      params,
    })
    expect(JSON.stringify(messages)).toContain('echo x')
    expect(JSON.stringify(messages)).not.toContain('log x')
  })
})

it('records which processor has refused a message, without its reason', async () => {
  await running.stop()
  const all = [...recordsIn(folder).values()]
  const notes = all.flatMap(({ steps }) => steps.flatMap(({ notes }) => notes)).join('\n')
  expect(notes).toContain('tools/call: request processor 0: Reject, code 1')
  expect(notes).toContain('request processor 0: Fail, the service failed')
  expect(notes).toContain('request processor 0: Mask')
  expect(notes).not.toContain('not for you')
  expect(all.some(({ details }) => details['sluice.mcp.refused.by'] === 'processor')).toBe(true)
})
