/** Several MCP servers as one, on real traffic. */
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js'
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  ResourceUpdatedNotificationSchema,
  SubscribeRequestSchema,
  ToolListChangedNotificationSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { connectClient, mcpManifests } from '../support/mcp-client.ts'
import { useMcpServer } from '../support/mcp-server.ts'
import { waitFor } from '../support/wait-for.ts'

function offer(name: string): (server: McpServer) => void {
  return (server) => {
    server.registerTool('who', { inputSchema: { text: z.string() } }, ({ text }) => ({
      content: [
        { type: 'text', text: `${name}: ${text}` },
        { type: 'resource_link', uri: `test://${name}/notes`, name: 'notes' },
        {
          type: 'resource',
          resource: { uri: `test://${name}/notes`, text: 'embedded', mimeType: 'text/plain' },
        },
      ],
    }))
    server.registerTool('sample', {}, async () => {
      const answer = await server.server.createMessage({
        messages: [{ role: 'user', content: { type: 'text', text: `from ${name}` } }],
        maxTokens: 10,
      })
      return { content: [{ type: 'text', text: JSON.stringify(answer.content) }] }
    })
    server.registerTool('elicit', {}, async () => {
      const answer = await server.server.elicitInput({
        message: `${name} asks`,
        requestedSchema: { type: 'object', properties: { ok: { type: 'boolean' } } },
      })
      return { content: [{ type: 'text', text: answer.action }] }
    })
    server.registerTool('roots', {}, async () => {
      const { roots } = await server.server.listRoots()
      return { content: [{ type: 'text', text: roots.map(({ uri }) => uri).join() }] }
    })
    server.registerTool('steps', {}, async (extra) => {
      const token = extra._meta?.progressToken
      for (let progress = 1; token !== undefined && progress <= 3; progress++) {
        await extra.sendNotification({
          method: 'notifications/progress',
          params: { progressToken: token, progress, total: 3 },
        })
      }
      return { content: [{ type: 'text', text: 'done' }] }
    })
    server.registerTool('wait', {}, (extra) => {
      return new Promise((resolve) => {
        extra.signal.addEventListener('abort', () => {
          cancelled.push(name)
          resolve({ content: [] })
        })
      })
    })
    server.registerPrompt('greet', { argsSchema: { who: z.string() } }, ({ who }) => ({
      messages: [
        { role: 'user', content: { type: 'text', text: `${name} greets ${who}` } },
        {
          role: 'user',
          content: {
            type: 'resource',
            resource: { uri: `test://${name}/notes`, text: 'embedded', mimeType: 'text/plain' },
          },
        },
      ],
    }))
    server.registerResource('notes', `test://${name}/notes`, {}, (uri) => ({
      contents: [{ uri: uri.href, text: `notes of ${name}` }],
    }))
    const template = new ResourceTemplate(`test://${name}/{page}`, {
      list: undefined,
      complete: { page: (value) => [`${value}-${name}`] },
    })
    server.registerResource('pages', template, {}, (uri, { page }) => ({
      contents: [{ uri: uri.href, text: `page ${String(page)} of ${name}` }],
    }))
    server.server.registerCapabilities({ resources: { subscribe: true } })
    server.server.setRequestHandler(SubscribeRequestSchema, ({ params }) => {
      subscribed.push(params.uri)
      return {}
    })
    server.server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => {
      subscribed.splice(subscribed.indexOf(params.uri), 1)
      return {}
    })
  }
}

const subscribed: string[] = []
const cancelled: string[] = []

const backends = () => ({
  both: {
    targets: [
      { name: 'alpha', static: { host: '127.0.0.1', port: alpha.port } },
      { name: 'beta-2', static: { host: '127.0.0.1', port: beta.port } },
    ],
  },
  halved: {
    targets: [
      { name: 'alpha', static: { host: '127.0.0.1', port: alpha.port } },
      { name: 'dead', static: { host: '127.0.0.1', port: 1 } },
    ],
  },
})

const port = await freePort()
const alpha = useMcpServer({ offer: offer('alpha'), instructions: 'be kind' })
const beta = useMcpServer({
  offer: offer('beta'),
  json: true,
  instructions: 'be quick',
})
const gateway = useGateway(() => ({ manifests: { 'all.yaml': mcpManifests(port, backends()) } }))
const client = useFixture(() =>
  connectClient(port, '/both', {
    capabilities: { sampling: {}, elicitation: {}, roots: { listChanged: true } },
  }),
)

beforeAll(async () => {
  client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => ({
    model: 'test',
    role: 'assistant',
    content: { type: 'text', text: `answer to ${JSON.stringify(params.messages[0]?.content)}` },
  }))
  client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'decline' }))
  client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: [{ uri: 'file:///home' }] }))
})

describe('several MCP targets', () => {
  it('[MCPBackend.targets] answer initialize as one server', () => {
    expect(client.getServerVersion()?.name).toBe('sluice')
    const instructions = client.getInstructions() ?? ''
    expect(instructions).toContain('[alpha]\nbe kind')
    expect(instructions).toContain('[beta-2]\nbe quick')
    expect(client.getServerCapabilities()).toMatchObject({
      tools: { listChanged: true },
      resources: { subscribe: true },
      prompts: { listChanged: true },
      logging: {},
      completions: {},
    })
  })

  it('[McpTargetSelector.name] have their tools and prompts called by target and name', async () => {
    const { tools } = await client.listTools()
    const names = tools.map(({ name }) => name)
    expect(names).toContain('alpha_who')
    expect(names).toContain('beta-2_who')
    const result = await client.callTool({ name: 'beta-2_who', arguments: { text: 'x' } })
    expect(result.content).toMatchObject([
      { text: 'beta: x' },
      { uri: 'beta-2+test://beta/notes' },
      { resource: { uri: 'beta-2+test://beta/notes' } },
    ])
    const { prompts } = await client.listPrompts()
    expect(prompts.map(({ name }) => name)).toEqual(['alpha_greet', 'beta-2_greet'])
    const prompt = await client.getPrompt({ name: 'alpha_greet', arguments: { who: 'you' } })
    expect(prompt.messages[0]?.content).toMatchObject({ text: 'alpha greets you' })
    expect(prompt.messages[1]?.content).toMatchObject({
      resource: { uri: 'alpha+test://alpha/notes' },
    })
  })

  it('have resources and templates whose URIs can be read', async () => {
    const { resources } = await client.listResources()
    expect(resources.map(({ uri }) => uri)).toEqual([
      'alpha+test://alpha/notes',
      'beta-2+test://beta/notes',
    ])
    const read = await client.readResource({ uri: 'beta-2+test://beta/notes' })
    expect(read.contents).toEqual([{ uri: 'beta-2+test://beta/notes', text: 'notes of beta' }])
    const { resourceTemplates } = await client.listResourceTemplates()
    expect(resourceTemplates.map(({ uriTemplate }) => uriTemplate)).toEqual([
      'alpha+test://alpha/{page}',
      'beta-2+test://beta/{page}',
    ])
    const page = await client.readResource({ uri: 'alpha+test://alpha/7' })
    expect(page.contents).toMatchObject([{ text: 'page 7 of alpha' }])
  })

  it('complete arguments of the template or prompt that is named', async () => {
    const { completion } = await client.complete({
      ref: { type: 'ref/resource', uri: 'beta-2+test://beta/{page}' },
      argument: { name: 'page', value: 'p' },
    })
    expect(completion.values).toEqual(['p-beta'])
  })

  it('send sampling, elicitation and roots requests to the client, and get the answers', async () => {
    const sample = await client.callTool({ name: 'alpha_sample' })
    expect(JSON.stringify(sample.content)).toContain('from alpha')
    const elicit = await client.callTool({ name: 'alpha_elicit' })
    expect(elicit.content).toEqual([{ type: 'text', text: 'decline' }])
    const roots = await client.callTool({ name: 'alpha_roots' })
    expect(roots.content).toEqual([{ type: 'text', text: 'file:///home' }])
  })

  it('report progress, and receive the cancellation of a request', async () => {
    const seen: number[] = []
    await client.callTool({ name: 'alpha_steps' }, undefined, {
      onprogress: ({ progress }) => seen.push(progress),
    })
    expect(seen).toEqual([1, 2, 3])
    const abort = new AbortController()
    const waiting = client.callTool({ name: 'alpha_wait' }, undefined, { signal: abort.signal })
    setImmediate(() => abort.abort('enough'))
    await expect(waiting).rejects.toThrow()
    await waitFor('the cancellation', () => cancelled.includes('alpha'))
  })

  it('send updates of subscribed resources, with the URIs of the client', async () => {
    const updated = new Promise<string>((resolve) => {
      client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) =>
        resolve(params.uri),
      )
    })
    await client.subscribeResource({ uri: 'alpha+test://alpha/notes' })
    expect(subscribed).toEqual(['test://alpha/notes'])
    const [session] = alpha.sessions
    await session?.server.sendResourceUpdated({ uri: 'test://alpha/notes' })
    expect(await updated).toBe('alpha+test://alpha/notes')
    await client.unsubscribeResource({ uri: 'alpha+test://alpha/notes' })
    expect(subscribed).toEqual([])
  })

  it('set their logging level, and answer a ping', async () => {
    await client.setLoggingLevel('warning')
    await client.ping()
    expect(alpha.received.some(({ body }) => body.includes('"warning"'))).toBe(true)
    expect(beta.received.some(({ body }) => body.includes('"warning"'))).toBe(true)
  })

  it('refuse calls of tools that none of them has', async () => {
    for (const name of ['alpha_', 'gamma_who', 'who', '_who']) {
      const call = client.callTool({ name, arguments: { text: '' } })
      const outcome = await call.then(
        (result) => result,
        (error: unknown) => error,
      )
      expect(JSON.stringify(outcome) + String(outcome)).toMatch(/unknown|not found|-32602/i)
    }
  })
})

describe('an MCP target that fails', () => {
  it('leaves the lists of the others intact, and is named in the answer', async () => {
    const half = await connectClient(port, '/halved')
    const answer = await half.listTools()
    expect(answer.tools.every(({ name }) => name.startsWith('alpha_'))).toBe(true)
    expect(answer.tools.length).toBeGreaterThan(0)
    expect(answer._meta).toEqual({ 'sluice.dev/unavailable': ['dead'] })
    await expect(half.callTool({ name: 'dead_x' })).rejects.toThrow(/dead/)
    await half.close()
  })
})

describe('MCP targets that are added and removed', () => {
  it('change the lists of open sessions', async () => {
    const live = await connectClient(port, '/halved')
    const changed = new Promise<void>((resolve) => {
      live.setNotificationHandler(ToolListChangedNotificationSchema, () => resolve())
    })
    const [first] = backends().halved.targets
    const more = { name: 'new', static: { host: '127.0.0.1', port: beta.port } }
    const changedBackends = { ...backends(), halved: { targets: first ? [first, more] : [] } }
    await waitFor(
      'the stream',
      () => alpha.received.filter(({ method }) => method === 'GET').length >= 3,
    )
    gateway.write('all.yaml', mcpManifests(port, changedBackends))
    await changed
    const { tools } = await live.listTools()
    expect(tools.map(({ name }) => name)).toContain('new_who')
    const result = await live.callTool({ name: 'new_who', arguments: { text: 'hi' } })
    expect(result.content).toMatchObject([{ text: 'beta: hi' }, {}, {}])
    await live.close()
  })
})
