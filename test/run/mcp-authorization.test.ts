import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { afterEach, describe, expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import {
  gateway,
  mcpBackend,
  policy,
  routeByPath,
  staticBackend,
  toBackend,
} from '../support/manifests.ts'
import { type McpItemsServer, startMcpItemsServer } from '../support/mcp-items-server.ts'
import { startOAuthServer } from '../support/oauth-server.ts'

type Fields = Readonly<Record<string, unknown>>
const open: Client[] = []

const rule = (action: string, ...matchExpressions: string[]) => ({
  authorization: { action, policy: { matchExpressions } },
})

const target = (name: string, server: McpItemsServer, more: Fields = {}) => ({
  name,
  static: { host: '127.0.0.1', port: server.port, ...more },
})

/** A backend at a path of its own. */
const served = (name: string, targets: readonly Fields[], mcp?: Fields) => [
  mcpBackend(name, targets),
  routeByPath(name),
  ...(mcp === undefined ? [] : [policy(name, `GatewayBackend/${name}`, { backend: { mcp } })]),
]

const notes = useFixture(() =>
  startMcpItemsServer({
    tools: ['search', 'delete'],
    prompts: ['daily', 'secret'],
    resources: ['notes://public', 'notes://private'],
    templates: ['notes://public/{id}', 'notes://private/{id}'],
  }),
)
const orders = useFixture(() =>
  startMcpItemsServer({ tools: ['search', 'cancel'], prompts: ['daily'] }),
)
const idp = useFixture(() => startOAuthServer({ kind: 'IdpB' }))
const port = await freePort()
const running = useGateway(() => {
  const one = [target('notes', notes)]
  const both = [...one, target('orders', orders)]
  return {
    manifests: [
      gateway(port),
      staticBackend('idp', idp.port),
      ...served(
        'items',
        both,
        rule(
          'Allow',
          'mcp.tool.name == "search"',
          'mcp.tool.target == "orders" && request.headers["x-team"] == "sales"',
          'mcp.prompt.name == "daily" && mcp.prompt.target == "notes"',
          'mcp.resource.uri.startsWith("notes://public")',
        ),
      ),
      ...served('denied', one, rule('Deny', 'mcp.tool.name == "delete"')),
      ...served('careless', one, rule('Deny', 'mcp.tool.name == "delete" || mcp.tool.name > 1')),
      ...served('required', one, rule('Require', 'request.headers["x-team"] == "sales"')),
      ...served(
        'arguments',
        one,
        rule('Deny', 'mcp.tool.arguments.dry == false || mcp.tool.arguments.all == true'),
      ),
      ...served('tokens', one, {
        ...rule('Allow', 'jwt.group == "sales" || mcp.tool.name == "search"'),
        authentication: {
          mode: 'Optional',
          issuer: idp.issuer,
          jwks: { jwksPath: idp.keysPath, backendRef: toBackend('idp') },
        },
      }),
      ...served('levels', both, rule('Deny', 'mcp.tool.name == "search"')),
      policy('levels-orders', 'GatewayBackend/levels#orders', {
        backend: { mcp: rule('Deny', 'mcp.tool.name == "cancel"') },
      }),
      ...served('inline', [
        target('notes', notes, {
          policies: { mcp: rule('Deny', 'mcp.tool.name == "delete"') },
        }),
        target('orders', orders),
      ]),
      ...served('misspelled', one, rule('Deny', 'mcp.tool.nmae == "delete"')),
      ...served('impossible', one, rule('Deny', 'mcp.tool.result == "delete"')),
    ],
  }
})

afterEach(async () => {
  await Promise.all(open.splice(0).map((client) => client.close()))
})

async function connect(name: string, headers: Record<string, string> = {}): Promise<Client> {
  const url = new URL(`http://127.0.0.1:${port}/${name}`)
  const client = new Client({ name: 'test', version: '1.0.0' })
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers } }))
  open.push(client)
  return client
}

const toolsOf = async (client: Client) => (await client.listTools()).tools.map(({ name }) => name)

/** The message of a refusal; undefined if the call is not refused. */
const refusal = (used: Promise<unknown>) =>
  used.then(
    () => undefined,
    (error: { code?: number; message: string }) => [error.code, error.message],
  )

describe('authorization of MCP tools, prompts and resources [BackendMCP.authorization]', () => {
  it('[error.5] removes items that are not allowed from lists, without an error', async () => {
    const client = await connect('items')
    expect(await toolsOf(client)).toEqual(['notes_search', 'orders_search'])
    const { prompts } = await client.listPrompts()
    expect(prompts.map(({ name }) => name)).toEqual(['notes_daily'])
    const { resources } = await client.listResources()
    expect(resources.map(({ uri }) => uri)).toEqual(['notes+notes://public'])
    const { resourceTemplates } = await client.listResourceTemplates()
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual([
      'notes+notes://public/{id}',
    ])
    const sales = await connect('items', { 'x-team': 'sales' })
    expect(await toolsOf(sales)).toEqual(['notes_search', 'orders_search', 'orders_cancel'])
  })

  it('[error.5] refuses calls as if the item did not exist, without asking a server', async () => {
    const client = await connect('items')
    const before = [...notes.uses, ...orders.uses].length
    const refused = [
      refusal(client.callTool({ name: 'notes_delete' })),
      refusal(client.callTool({ name: 'notes_nothing' })),
      refusal(client.getPrompt({ name: 'orders_daily' })),
      refusal(client.readResource({ uri: 'notes+notes://private' })),
      refusal(client.subscribeResource({ uri: 'notes+notes://private' })),
      refusal(
        client.complete({
          ref: { type: 'ref/prompt', name: 'notes_secret' },
          argument: { name: 'a', value: '' },
        }),
      ),
    ]
    expect(await Promise.all(refused)).toEqual([
      [-32602, 'MCP error -32602: Unknown tool: notes_delete'],
      [-32602, 'MCP error -32602: Unknown tool: notes_nothing'],
      [-32602, 'MCP error -32602: Unknown prompt: orders_daily'],
      [-32602, 'MCP error -32602: Unknown resource: notes+notes://private'],
      [-32602, 'MCP error -32602: Unknown resource: notes+notes://private'],
      [-32602, 'MCP error -32602: Unknown prompt: notes_secret'],
    ])
    expect([...notes.uses, ...orders.uses]).toHaveLength(before)
    await client.callTool({ name: 'notes_search' })
    await client.getPrompt({ name: 'notes_daily' })
    await client.readResource({ uri: 'notes+notes://public' })
    expect(notes.uses.slice(-3)).toEqual([
      'tools/call search',
      'prompts/get daily',
      'resources/read notes://public',
    ])
  })

  it('denies on a match or an evaluation error, but not on a missing key', async () => {
    const client = await connect('denied')
    expect(await toolsOf(client)).toEqual(['search'])
    expect((await client.listPrompts()).prompts).toHaveLength(2)
    expect(await refusal(client.callTool({ name: 'delete' }))).toEqual([
      -32602,
      'MCP error -32602: Unknown tool: delete',
    ])
    const careless = await connect('careless')
    expect(await toolsOf(careless)).toEqual([])
    expect((await careless.listPrompts()).prompts).toHaveLength(2)
  })

  it('can require a match', async () => {
    expect(await toolsOf(await connect('required'))).toEqual([])
    const sales = await connect('required', { 'x-team': 'sales' })
    expect(await toolsOf(sales)).toEqual(['search', 'delete'])
  })

  it('can use the arguments of a call', async () => {
    const client = await connect('arguments')
    expect(await toolsOf(client)).toEqual(['search', 'delete'])
    const call = (args: Fields) => refusal(client.callTool({ name: 'delete', arguments: args }))
    expect(await call({ dry: true })).toBeUndefined()
    expect(await call({ dry: false })).toBeDefined()
    expect(await call({ dry: true, all: true })).toBeDefined()
  })

  it('can use the claims of the token that MCP authentication has verified', async () => {
    expect(await toolsOf(await connect('tokens'))).toEqual(['search'])
    const as = async (group: string) =>
      toolsOf(await connect('tokens', { authorization: `Bearer ${await idp.token({ group })}` }))
    expect(await as('sales')).toEqual(['search', 'delete'])
    expect(await as('other')).toEqual(['search'])
  })

  it('of a target replaces that of the backend as a whole', async () => {
    expect(await toolsOf(await connect('levels'))).toEqual(['notes_delete', 'orders_search'])
    expect(await toolsOf(await connect('inline'))).toEqual([
      'notes_search',
      'orders_search',
      'orders_cancel',
    ])
  })

  it('refuses everything and reports the reason if it cannot be evaluated', async () => {
    for (const [name, why] of [
      ['misspelled', 'mcp.tool has no field nmae'],
      ['impossible', 'mcp.tool has no field result'],
    ] as const) {
      const { message } = await running.condition('GatewayPolicy', name, 'Accepted', 'False')
      expect(message).toContain(why)
      expect(await refusal(connect(name))).toBeDefined()
    }
  })
})
