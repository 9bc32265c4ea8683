/** What clients get of several targets: virtual servers, tool search, failureMode, and equal servers behind one target. */
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { useFixture, useFolder, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { policy } from '../support/manifests.ts'
import { connectClient, mcpManifests } from '../support/mcp-client.ts'
import { modernRequest, sendModern } from '../support/mcp-modern-client.ts'
import { useModernServer } from '../support/mcp-modern-server.ts'
import { useMcpServer } from '../support/mcp-server.ts'
import { sampleTools } from '../support/tool-set.ts'

const useNamed = (server: string, tools: readonly string[], isStateless = true) =>
  useMcpServer({
    isStateless,
    offer(mcp: McpServer) {
      for (const name of tools) {
        const about = {
          description: `About ${name}.`,
          inputSchema: { text: z.string().optional() },
        }
        mcp.registerTool(name, about, ({ text = '' }) => ({
          content: [{ type: 'text', text: `${server} ${name} ${text}`.trim() }],
        }))
      }
      mcp.registerResource('notes', `test://${server}`, {}, (uri) => ({
        contents: [{ uri: uri.href, text: server }],
      }))
    },
  })

const billing = useNamed('billing', ['pay', 'refund', 'report'])
const people = useNamed('people', ['hire', 'report', 'salary'])
const twins = [useNamed('one', ['who'], false), useNamed('two', ['who'], false)] as const
const large = useModernServer({
  answers: {
    'tools/list': () => ({
      tools: sampleTools.map(({ server, name, ...rest }) => ({
        name: `${server}-${name}`,
        ...rest,
      })),
    }),
    'tools/call': ({ params }) => ({ content: [{ type: 'text', text: JSON.stringify(params) }] }),
  },
  capabilities: { tools: {} },
})
const target = (name: string, { port }: { readonly port: number }, more: object = {}) => ({
  name,
  static: { host: '127.0.0.1', port, ...more },
})
const both = () => [target('billing', billing), target('people', people)]
const withDown = () => [target('billing', billing), target('down', { port: 1 })]

const port = await freePort()
const records = useFolder('sluice-mcp-federation-')
const deny = policy('no-salaries', 'GatewayBackend/searched', {
  backend: {
    mcp: {
      authorization: {
        action: 'Deny',
        policy: {
          matchExpressions: [
            'mcp.tool.name == "salary"',
            'mcp.tool.name == "stripe-create_refund"',
          ],
        },
      },
    },
  },
})
const denyByName = policy('no-refunds', 'HTTPRoute/named', {
  traffic: {
    authorization: {
      action: 'Deny',
      policy: { matchExpressions: ['request.headers["mcp-name"] == "refund"'] },
    },
  },
})
useGateway(() => ({
  manifests: {
    'all.yaml': mcpManifests(
      port,
      {
        virtual: {
          targets: both(),
          virtualServers: [
            { name: 'money', path: '/money', targets: ['billing'], exclude: ['billing_refund'] },
            {
              name: 'hr',
              path: '/hr',
              targets: ['people'],
              when: 'request.headers["x-team"] == "hr"',
            },
            { name: 'admins', when: 'request.headers["x-team"] == "admin"' },
            { name: 'reports', when: 'request.headers["x-team"] != ""', include: ['*_report'] },
          ],
        },
        searched: {
          targets: [...both(), target('large', large)],
          toolSearch: { pinned: ['billing_pay'], limit: 4 },
        },
        single: { targets: [target('billing', billing)], toolSearch: {} },
        named: { targets: [target('billing', billing)], toolSearch: {} },
        closed: { targets: withDown(), failureMode: 'FailClosed' },
        open: { targets: withDown() },
        twins: {
          targets: [
            target('twin', twins[0], { endpoints: [{ host: '127.0.0.1', port: twins[1].port }] }),
          ],
        },
      },
      [deny, denyByName],
    ),
  },
  args: ['--record', 'all', '--record-dir', records],
}))

type Client = Awaited<ReturnType<typeof connectClient>>
const connect = (path: string, team?: string) =>
  connectClient(port, path, {}, team === undefined ? {} : { 'x-team': team })
const useClient = (path: string, team?: string) => useFixture(() => connect(path, team))
const listed = async (client: Client) => (await client.listTools()).tools.map(({ name }) => name)
const call = async (client: Client, name: string, args: Record<string, unknown> = {}) => {
  const { content } = await client.callTool({ name, arguments: args })
  return (content as { text: string }[])[0]?.text ?? ''
}

describe('virtual servers', () => {
  const money = useClient('/virtual/money')
  const reports = useClient('/virtual', 'sales')
  const admins = useClient('/virtual', 'admin')

  it('[MCPBackend.virtualServers] have their own path, targets and tools', async () => {
    expect(await listed(money)).toEqual(['billing_pay', 'billing_report'])
    expect(await call(money, 'billing_pay')).toBe('billing pay')
    for (const name of ['billing_refund', 'people_report']) {
      await expect(call(money, name)).rejects.toThrow(`Unknown tool: ${name}`)
    }
    const { resources } = await money.listResources()
    expect(resources.map(({ uri }) => uri)).toEqual(['billing+test://billing'])
    await expect(money.readResource({ uri: 'people+test://people' })).rejects.toThrow('Unknown')
    expect(people.received.some(({ path }) => path.includes('money'))).toBe(false)
  })

  it('are chosen by the client: the first one that is for it, and 404 without one', async () => {
    expect(await listed(reports)).toEqual(['billing_report', 'people_report'])
    await expect(call(reports, 'people_salary')).rejects.toThrow('Unknown tool: people_salary')
    expect(await listed(admins)).toHaveLength(6)
    await expect(connect('/virtual')).rejects.toThrow('nothing is served here for this client')
    await expect(connect('/virtual/hr', 'sales')).rejects.toThrow('nothing is served here')
    const hr = await connect('/virtual/hr', 'hr')
    expect(await listed(hr)).toEqual(['people_hire', 'people_report', 'people_salary'])
    await hr.close()
    const url = `http://127.0.0.1:${port}/virtual/money`
    const modern = await sendModern(url, modernRequest('tools/list'))
    expect(modern.text).toContain('billing_pay')
    expect(modern.text).not.toContain('people')
    // Credentials of the client are for no single target, however few its virtual server has.
    await sendModern(url, modernRequest('tools/list'), { headers: { 'x-vault-token': 'secret' } })
    expect(billing.received.some(({ headers }) => 'x-vault-token' in headers)).toBe(false)
  })
})

it('[GHSA-g53w-w6mj-hrpp] takes no target, tool or virtual server from headers of clients', async () => {
  const headers = {
    'x-mcp-servername': 'people',
    'x-mcp-toolname': 'salary',
    'x-mcp-virtualserver': 'admins',
    'mcp-init-host': `127.0.0.1:${people.port}`,
    'x-gateway-destination-endpoint': `127.0.0.1:${people.port}`,
  }
  await expect(connectClient(port, '/virtual', {}, headers)).rejects.toThrow('nothing is served')
  const client = await connectClient(port, '/virtual/money', {}, headers)
  expect(await listed(client)).toEqual(['billing_pay', 'billing_report'])
  expect(await call(client, 'billing_report')).toBe('billing report')
  await expect(call(client, 'people_salary')).rejects.toThrow('Unknown tool: people_salary')
  await client.close()
})

describe('tool search', () => {
  const searched = useClient('/searched')
  const search = async (query: string, more: object = {}) => {
    const text = await call(searched, 'search_tools', { query, ...more })
    return text.startsWith('{') ? (JSON.parse(text) as { tools: { name: string }[] }).tools : text
  }
  const names = async (query: string, more?: object) => {
    const found = await search(query, more)
    return typeof found === 'string' ? found : found.map(({ name }) => name)
  }

  it('[MCPBackend.toolSearch] lists two tools and the pinned ones, and finds the others', async () => {
    expect(await listed(searched)).toEqual(['search_tools', 'call_tool', 'billing_pay'])
    expect(await names('hire somebody')).toEqual(['people_hire'])
    expect(await names('create an invoice')).toContain('large_quickbooks-create_invoice')
    expect(await names('invoice', { limit: 2 })).toHaveLength(2)
    expect(await search('invoice', { limit: 1 })).toMatchObject([
      { inputSchema: { type: 'object' } },
    ])
    expect(await names('qwertz')).toContain('No tool has these words')
    const empty = await searched.callTool({ name: 'search_tools', arguments: {} })
    expect(empty.isError).toBe(true)
  })

  it('calls a tool by the rules of that tool, and records that tool', async () => {
    const args = { name: 'people_report', arguments: { text: 'x' } }
    expect(await call(searched, 'call_tool', args)).toBe('people report x')
    const refused = { name: 'large_stripe-create_refund', arguments: {} }
    await expect(call(searched, 'call_tool', refused)).rejects.toThrow(
      `Unknown tool: ${refused.name}`,
    )
    await expect(call(searched, refused.name)).rejects.toThrow('Unknown tool')
    expect(await names('salary')).not.toContain('people_salary')
    expect(await names('give a refund', { limit: 4 })).not.toContain(refused.name)
    await expect(call(searched, 'call_tool', { name: 'call_tool' })).rejects.toThrow(
      'Unknown tool: call_tool',
    )
    expect(large.last?.method).not.toBe('tools/call')
  })

  it('works for modern clients, and for a single target', async () => {
    const ask = (name: string, args: object, path = 'searched') => {
      const message = modernRequest('tools/call', { name, arguments: args })
      return sendModern(`http://127.0.0.1:${port}/${path}`, message)
    }
    const found = await ask('search_tools', { query: 'create invoice' })
    expect(found.message).toMatchObject({ result: { resultType: 'complete' } })
    expect(found.text).toContain('large_quickbooks-create_invoice')
    const called = await ask('call_tool', { name: 'large_jira-get_ticket', arguments: { a: 1 } })
    expect(called.text).toContain('{\\"name\\":\\"jira-get_ticket\\",\\"arguments\\":{\\"a\\":1}')
    expect(large.last?.headers['mcp-name']).toBe('jira-get_ticket')
    const single = await connect('/single')
    expect(await listed(single)).toEqual(['search_tools', 'call_tool'])
    expect(await call(single, 'search_tools', { query: 'refund' })).toContain('"name":"refund"')
    expect(await call(single, 'call_tool', { name: 'refund' })).toBe('billing refund')
    await single.close()
  })
})

it('names the tool that call_tool calls in the header that policies of routes read', async () => {
  const client = await connect('/named')
  expect(await call(client, 'call_tool', { name: 'pay' })).toBe('billing pay')
  const refused = call(client, 'call_tool', { name: 'refund' })
  await expect(refused).rejects.toThrow('authorization failed')
  await client.close()
  const ask = (name: string, headers = {}) => {
    const message = modernRequest('tools/call', { name: 'call_tool', arguments: { name } })
    return sendModern(`http://127.0.0.1:${port}/named`, message, { headers })
  }
  expect((await ask('report')).text).toContain('billing report')
  expect((await ask('refund')).status).toBe(403)
  // A client cannot name another tool than the one it calls.
  expect((await ask('report', { 'mcp-name': 'report' })).status).toBe(400)
  expect((await ask('refund', { 'mcp-name': 'pay' })).status).toBe(400)
})

describe('failureMode', () => {
  it('[MCPBackend.failureMode] fails initialize and discovery closed, or leaves the target out', async () => {
    await expect(connect('/closed')).rejects.toThrow('servers could not be reached: down')
    const discover = modernRequest('server/discover')
    const closed = await sendModern(`http://127.0.0.1:${port}/closed`, discover)
    expect(closed.text).toContain('servers could not be asked: down')
    const list = await sendModern(`http://127.0.0.1:${port}/closed`, modernRequest('tools/list'))
    expect(list.text).toContain('servers could not be asked: down')
    const open = await connect('/open')
    expect(await listed(open)).toEqual(['billing_pay', 'billing_refund', 'billing_report'])
    await open.close()
  })
})

describe('equal servers behind a target', () => {
  it('[McpTarget.endpoints] share sessions, and take over if one is down', async () => {
    const clients = await Promise.all(Array.from({ length: 16 }, () => connect('/twins')))
    const answers = await Promise.all(
      clients.map(async (client) => {
        const all = [
          await call(client, 'who'),
          await call(client, 'who'),
          await call(client, 'who'),
        ]
        expect(new Set(all).size).toBe(1)
        return all[0]
      }),
    )
    expect(new Set(answers)).toEqual(new Set(['one who', 'two who']))
    await Promise.all(clients.map((client) => client.close()))
    await twins[0].kill()
    const late = await Promise.all(Array.from({ length: 8 }, () => connect('/twins')))
    for (const client of late) {
      expect(await call(client, 'who')).toBe('two who')
      await client.close()
    }
  })
})
