/** MCP Apps with several servers: hosts show only resources whose URI begins with `ui://`. */
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import {
  CreateMessageRequestSchema,
  ResourceUpdatedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { expect, it } from 'vitest'
import { useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { policy } from '../support/manifests.ts'
import { connectClient, mcpManifests } from '../support/mcp-client.ts'
import { modernRequest, sendModern } from '../support/mcp-modern-client.ts'
import { useModernServer } from '../support/mcp-modern-server.ts'
import { useMcpServer } from '../support/mcp-server.ts'

const view = 'ui://app/view.html'
const meta = (uri: string) => ({
  ui: { resourceUri: uri, visibility: ['model'] },
  'ui/resourceUri': uri,
  'openai/outputTemplate': uri,
  other: uri,
})
/** What clients see of `meta`. */
const shown = (target: string, rest = 'app/view.html') => ({
  ...meta(`ui://${target}+${rest}`),
  other: `ui://${rest}`,
})

function offer(server: McpServer): void {
  server.registerTool('app', { _meta: meta(view) }, () => ({
    _meta: meta(view),
    content: [
      { type: 'text', text: 'shown', _meta: meta(view) },
      { type: 'resource_link', uri: view, name: 'view', _meta: meta(view) },
    ],
  }))
  server.registerTool('sample', {}, async () => {
    const link = { type: 'resource_link' as const, uri: view, name: 'view' }
    const embedded = { type: 'resource' as const, resource: { uri: 'test://x', text: 'x' } }
    const result = { type: 'tool_result' as const, toolUseId: '1', content: [link, embedded] }
    const answer = await server.server.createMessage({
      messages: [
        { role: 'assistant', content: [{ type: 'tool_use', id: '1', name: 'x', input: {} }] },
        { role: 'user', content: [result] },
      ],
      maxTokens: 10,
      tools: [],
    })
    return { content: [{ type: 'text', text: JSON.stringify(answer.content) }] }
  })
  server.registerPrompt('greet', { argsSchema: {} }, () => ({
    messages: [
      {
        role: 'user',
        content: { type: 'resource', resource: { uri: view, text: 'x', _meta: meta(view) } },
      },
    ],
  }))
  const page = { mimeType: 'text/html;profile=mcp-app', _meta: meta(view) }
  for (const [name, uri] of Object.entries({
    view,
    plus: 'ui://b+app/x',
    secret: 'ui://secret/',
  })) {
    server.registerResource(name, uri, page, ({ href }) => ({
      contents: [{ uri: href, text: name, mimeType: page.mimeType, _meta: meta(view) }],
    }))
  }
  server.server.registerCapabilities({ resources: { subscribe: true } })
}

const legacy = useMcpServer({ offer })
const extension = { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } }
const modern = useModernServer({
  capabilities: { tools: {}, resources: {}, extensions: { ...extension, 'x.y/z': {} } },
  answers: {
    'tools/list': () => ({ tools: [{ name: 'app', _meta: meta(view) }] }),
    'tools/call': ({ params }) =>
      params.name === 'broken'
        ? { status: 200, error: { code: -32000, message: 'broken', data: { uri: view } } }
        : {
            resultType: 'input_required',
            requestState: view,
            inputRequests: {
              x: {
                method: 'sampling/createMessage',
                params: {
                  messages: [
                    { role: 'user', content: { type: 'resource_link', uri: view, name: 'v' } },
                  ],
                  maxTokens: 1,
                },
              },
            },
          },
    'resources/read': ({ params }) => ({
      status: 200,
      error: { code: -32602, message: 'Resource not found', data: { uri: params.uri } },
    }),
  },
})

const port = await freePort()
const targets = (...servers: (readonly [string, { readonly port: number }])[]) => ({
  targets: servers.map(([name, { port }]) => ({ name, static: { host: '127.0.0.1', port } })),
})
useGateway(() => ({
  manifests: {
    'all.yaml': mcpManifests(
      port,
      {
        both: targets(['a', legacy], ['ui', legacy]),
        ruled: targets(['a', legacy], ['b', legacy]),
        modern: targets(['m', modern], ['n', modern]),
        single: targets(['a', legacy]),
      },
      [
        policy('ruled', 'GatewayBackend/ruled', {
          backend: {
            mcp: {
              authorization: {
                action: 'Deny',
                policy: { matchExpressions: ['mcp.resource.uri.startsWith("ui://secret/")'] },
              },
            },
          },
        }),
      ],
    ),
  },
}))
const client = useFixture(() =>
  connectClient(port, '/both', { capabilities: { sampling: { tools: {} } } }),
)

it('are offered with URIs of the same scheme, in every spelling', async () => {
  const { tools } = await client.listTools()
  const apps = tools.filter(({ name }) => name.endsWith('_app'))
  expect(apps.map(({ _meta }) => _meta)).toEqual([shown('a'), shown('ui')])
  const { resources } = await client.listResources()
  expect(resources.map(({ uri }) => uri)).toEqual(
    ['a', 'ui'].flatMap((name) => [
      `ui://${name}+app/view.html`,
      `ui://${name}+b+app/x`,
      `ui://${name}+secret/`,
    ]),
  )
  expect(resources[3]?._meta).toEqual(shown('ui'))
})

it('are read at the server that offers them', async () => {
  for (const [uri, text] of [
    ['ui://ui+app/view.html', 'view'],
    ['ui://a+b+app/x', 'plus'],
    // The form of resources of other schemes.
    ['a+ui://app/view.html', 'view'],
  ] as const) {
    const { contents } = await client.readResource({ uri })
    const target = uri.includes('ui+') ? 'ui' : 'a'
    expect(contents).toMatchObject([{ text, _meta: shown(target) }])
    expect(contents[0]?.uri).toBe(uri.startsWith('a+') ? 'ui://a+app/view.html' : uri)
  }
  for (const uri of [view, 'ui://b+app/view.html', 'ui://+app/view.html', 'ui://']) {
    await expect(client.readResource({ uri })).rejects.toThrow('-32602')
  }
})

it('have URIs for the client in results, links, prompts and requests of servers', async () => {
  const result = await client.callTool({ name: 'ui_app' })
  expect(result).toMatchObject({
    _meta: shown('ui'),
    content: [
      { text: 'shown', _meta: shown('ui') },
      { uri: 'ui://ui+app/view.html', _meta: shown('ui') },
    ],
  })
  const { messages } = await client.getPrompt({ name: 'a_greet' })
  const resource = { uri: 'ui://a+app/view.html', _meta: shown('a') }
  expect(messages).toMatchObject([{ content: { resource } }])
  client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => ({
    model: 'test',
    role: 'assistant',
    content: { type: 'text', text: JSON.stringify(params.messages) },
  }))
  const sampled = await client.callTool({ name: 'a_sample' })
  const text = JSON.stringify(sampled.content)
  expect(text).toContain('ui://a+app/view.html')
  expect(text).toContain('a+test://x')
})

it('are announced with the URI of the client when they change', async () => {
  const updated = new Promise<string>((resolve) => {
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) =>
      resolve(params.uri),
    )
  })
  for (const { server } of legacy.sessions) await server.sendResourceUpdated({ uri: view })
  expect(await updated).toMatch(/^ui:\/\/(a|ui)\+app\/view\.html$/)
})

it('are judged by the URI of the server', async () => {
  const ruled = await connectClient(port, '/ruled')
  const { resources } = await ruled.listResources()
  expect(resources.map(({ name }) => name)).toEqual(['view', 'plus', 'view', 'plus'])
  for (const uri of ['ui://a+secret/', 'a+ui://secret/', 'ui://b+secret/']) {
    await expect(ruled.readResource({ uri })).rejects.toThrow('Unknown resource')
  }
  await ruled.close()
})

it('pass unchanged from a single server', async () => {
  const single = await connectClient(port, '/single')
  const { tools } = await single.listTools()
  expect(tools[0]?._meta).toEqual(meta(view))
  await single.close()
})

it('work with modern servers, whose requests for input and errors name resources too', async () => {
  const url = `http://127.0.0.1:${port}/modern`
  const ask = async (method: string, params = {}) =>
    (await sendModern(url, modernRequest(method, params))).message
  expect(await ask('server/discover')).toMatchObject({
    result: { capabilities: { extensions: extension } },
  })
  expect(await ask('tools/list')).toMatchObject({
    result: { tools: [{ _meta: shown('m') }, { _meta: shown('n') }] },
  })
  const link = { uri: 'ui://n+app/view.html' }
  expect(await ask('tools/call', { name: 'n_app', arguments: {} })).toMatchObject({
    result: {
      requestState: view,
      inputRequests: { x: { params: { messages: [{ content: link }] } } },
    },
  })
  expect(await ask('resources/read', { uri: 'ui://m+app/none' })).toMatchObject({
    error: { code: -32602, data: { uri: 'ui://m+app/none' } },
  })
  // Other errors have data of their own.
  expect(await ask('tools/call', { name: 'm_broken', arguments: {} })).toMatchObject({
    error: { code: -32000, data: { uri: view } },
  })
})
