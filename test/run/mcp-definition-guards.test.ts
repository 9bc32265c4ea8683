/** Guards of MCP with the scope `Definitions`: descriptions and schemas in lists, and instructions. */
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { recordsIn } from '../support/decision-records.ts'
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
import { connectClient } from '../support/mcp-client.ts'
import { modernRequest, sendModern } from '../support/mcp-modern-client.ts'
import { useModernServer } from '../support/mcp-modern-server.ts'
import { useMcpServer } from '../support/mcp-server.ts'
import { acts, shown as shownTo, startWebhook } from '../support/vendors/guard-services.ts'

const mail = 'ada@example.com'
const masked = '<EMAIL_ADDRESS>'

function offer(server: McpServer): void {
  const inputSchema = {
    [`to ${mail}`]: z.string().describe(`such as ${mail}`),
    kind: z.enum(['a', mail]),
  }
  const described = { title: `Title ${mail}`, description: `Ask ${mail}`, inputSchema }
  server.registerTool('send', described, () => ({ content: [{ type: 'text', text: mail }] }))
  server.registerTool('bad', { description: 'is forbidden' }, () => ({ content: [] }))
  server.registerTool('fine', { description: 'does no harm' }, () => ({ content: [] }))
  const argsSchema = { who: z.string().describe(`not ${mail}`) }
  server.registerPrompt('p', { description: `Prompt of ${mail}`, argsSchema }, () => ({
    messages: [],
  }))
  server.registerResource(`r ${mail}`, `mail://${mail}`, { description: `Box of ${mail}` }, () => ({
    contents: [],
  }))
}
const instructions = `Never write to ${mail}`
const server = useMcpServer({ offer, instructions })
const tool = (name: string, description: string) => ({
  name,
  description,
  inputSchema: { type: 'object' },
})
const modern = useModernServer({
  discover: { instructions },
  answers: {
    'tools/list': () => ({
      tools: [tool('x', `Ask ${mail}`), tool('y', 'is forbidden')],
      ttlMs: 60_000,
      cacheScope: 'public',
    }),
  },
})
const hook = useFixture(startWebhook)

const folder = useFolder('sluice-mcp-definitions-')
const port = await freePort()
const scope = ['Definitions']
const guards = {
  response: [
    { scope, regex: { builtins: ['Email'] } },
    { scope, regex: { matches: ['forbidden'], action: 'Reject' } },
  ],
}
const running = useGateway(() => {
  const target = (name: string, { port: at }: { readonly port: number }) => ({
    ...{ name, static: { host: '127.0.0.1', port: at } },
  })
  const served = (name: string, targets: readonly Manifest[], promptGuard: object, more = {}) => [
    mcpBackend(name, targets, more),
    routeByPath(name),
    policy(name, `GatewayBackend/${name}`, { backend: { mcp: { promptGuard } } }),
  ]
  const webhook = { backendRef: toBackend('hook') }
  return {
    manifests: [
      gateway(port),
      staticBackend('hook', hook.port),
      ...served('one', [target('only', server)], guards),
      ...served('unnamed', [target('only', server)], {
        response: [{ regex: { builtins: ['Email'] } }],
      }),
      ...served('both', [target('a', server), target('b', modern)], guards),
      ...served('searched', [target('a', server)], guards, { toolSearch: {} }),
      ...served('hooked', [target('only', server)], { response: [{ scope, webhook }] }),
      ...served('request', [target('only', server)], {
        request: [{ scope, regex: { builtins: ['Email'] } }],
      }),
    ],
    args: ['--record', 'all', '--record-dir', folder],
  }
})

const schema = {
  properties: {
    [`to ${masked}`]: { description: `such as ${masked}` },
    kind: { enum: ['a', masked] },
  },
}

describe('a scope of definitions', () => {
  it('masks descriptions, titles and schemas, keeps names and URIs, and hides only refused items', async () => {
    const client = await connectClient(port, '/one')
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(['send', 'fine'])
    const shown = { title: `Title ${masked}`, description: `Ask ${masked}`, inputSchema: schema }
    expect(tools[0]).toMatchObject(shown)
    const { prompts } = await client.listPrompts()
    expect(prompts).toMatchObject([
      { description: `Prompt of ${masked}`, arguments: [{ description: `not ${masked}` }] },
    ])
    const { resources } = await client.listResources()
    const uri = `mail://${mail}`
    expect(resources).toMatchObject([{ uri, description: `Box of ${masked}` }])
    expect(client.getInstructions()).toBe(`Never write to ${masked}`)
    // Results are out of the scope.
    const args = { [`to ${mail}`]: 'x', kind: 'a' }
    const { content } = await client.callTool({ name: 'send', arguments: args })
    expect(content).toEqual([{ type: 'text', text: mail }])
    await client.close()
  })

  it('is not part of a guard without a scope', async () => {
    const client = await connectClient(port, '/unnamed')
    const { tools } = await client.listTools()
    expect(tools[0]).toMatchObject({ description: `Ask ${mail}` })
    expect(client.getInstructions()).toBe(instructions)
    await client.close()
  })

  it('applies to each target of several, in both eras, and to lists from the cache', async () => {
    const client = await connectClient(port, '/both')
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(['a_send', 'a_fine', 'b_x'])
    expect(tools[2]?.description).toBe(`Ask ${masked}`)
    expect(client.getInstructions()).not.toContain(mail)
    await client.close()
    for (const _ of ['asked', 'cached']) {
      const { text } = await sendModern(
        `http://127.0.0.1:${port}/both`,
        modernRequest('tools/list'),
      )
      expect(text).toContain('b_x')
      expect(text).not.toMatch(/ada@|forbidden/)
    }
    expect(modern.asked.filter(({ method }) => method === 'tools/list')).toHaveLength(2)
  })

  it('applies to what a search for tools finds', async () => {
    const client = await connectClient(port, '/searched')
    const find = async (query: string) => {
      const found = await client.callTool({ name: 'search_tools', arguments: { query } })
      return JSON.stringify(found.content)
    }
    const sent = await find('send title ask')
    expect(sent).toContain(masked)
    expect(sent).not.toContain(mail)
    expect(await find('forbidden')).not.toContain('is forbidden')
    await client.close()
  })

  it('sends each definition to a webhook as a text, and hides refused ones from clients', async () => {
    hook.answer = (call, response) => {
      const isBad = shownTo(call).some(({ content }) => content === 'is forbidden')
      acts(isBad ? { status_code: 403, body: 'no' } : {})(call, response)
    }
    const client = await connectClient(port, '/hooked')
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(['send', 'fine'])
    await client.close()
  })

  it('is refused for guards of requests, which have no definitions', async () => {
    const { message } = await running.condition('GatewayPolicy', 'request', 'Accepted', 'False')
    expect(message).toContain('have no Definitions: use Arguments, Prompts')
  })
})

it('records what guards have found in definitions, without the texts', async () => {
  await running.stop()
  const all = JSON.stringify([...recordsIn(folder).values()])
  expect(all).toContain(
    'tools/list: tool bad: response guard 1 (regex, scope Definitions): Reject, 1 match of pattern 0',
  )
  expect(all).toContain('instructions: response guard 0 (regex, scope Definitions): Mask')
  expect(all).not.toMatch(/is forbidden/)
})
