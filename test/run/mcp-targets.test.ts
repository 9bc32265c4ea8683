/** Where MCP targets are, and what holds for each of them, on real traffic. */
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import { describe, expect, it } from 'vitest'
import { useAuthority, useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { manifest, policy } from '../support/manifests.ts'
import { connectClient, mcpManifests, rawSession } from '../support/mcp-client.ts'
import { TestMcpServer, useMcpServer } from '../support/mcp-server.ts'
import { waitFor } from '../support/wait-for.ts'

const offer =
  (name: string) =>
  (server: McpServer): void => {
    server.registerTool('who', {}, () => ({ content: [{ type: 'text', text: name }] }))
  }

interface ServiceOptions {
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly namespace?: string
  readonly ports: readonly { name?: string; port: number; appProtocol?: string; to: number }[]
}

/** A Service of the cluster, each port with one endpoint. */
function mcpService(name: string, { namespace = 'default', ...options }: ServiceOptions): object[] {
  const { labels, annotations, ports } = options
  return [
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, namespace, ...(labels && { labels }), ...(annotations && { annotations }) },
      spec: { ports: ports.map(({ to: _, ...rest }) => rest) },
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name, namespace, labels: { 'kubernetes.io/service-name': name } },
      addressType: 'IPv4',
      ports: ports.map(({ name: port = '', to }) => ({ name: port, port: to })),
      endpoints: [{ addresses: ['127.0.0.1'] }],
    },
  ]
}

/** A Service with several endpoints. */
function replicated(name: string, ports: readonly number[]): object[] {
  const slices = ports.map((port, at) => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `${name}-${at}`, labels: { 'kubernetes.io/service-name': name } },
    addressType: 'IPv4',
    ports: [{ name: 'mcp', port }],
    endpoints: [{ addresses: ['127.0.0.1'] }],
  }))
  const spec = { ports: [{ name: 'mcp', port: 80, appProtocol: 'sluice.dev/mcp' }] }
  const metadata = { name, labels: { app: 'replicated' } }
  return [{ apiVersion: 'v1', kind: 'Service', metadata, spec }, ...slices]
}

const matchLabels = (labels: Readonly<Record<string, string>>) => ({ matchLabels: labels })

const backends = () => ({
  labelled: {
    targets: [{ name: 'tools', selector: { services: matchLabels({ app: 'tools' }) } }],
  },
  replicated: {
    targets: [{ name: 'many', selector: { services: matchLabels({ app: 'replicated' }) } }],
  },
  everywhere: {
    targets: [
      { name: 'ns', selector: { namespaces: matchLabels({ team: 'a' }) } },
      {
        name: 'both',
        selector: {
          namespaces: matchLabels({ 'kubernetes.io/metadata.name': 'default' }),
          services: matchLabels({ app: 'unmarked' }),
        },
      },
    ],
  },
  secure: {
    targets: [
      {
        name: 'safe',
        static: {
          host: 'localhost',
          port: secure.port,
          policies: {
            tls: { caCertificateRefs: [{ name: 'roots' }] },
            auth: { key: 'of-the-target' },
          },
        },
      },
      { name: 'other', static: { host: '127.0.0.1', port: one.port, path: '/elsewhere' } },
    ],
  },
  open: { targets: [{ name: 'a', static: { host: '127.0.0.1', port: two.port } }] },
  keyed: {
    targets: [
      {
        name: 'a',
        static: {
          host: '127.0.0.1',
          port: two.port,
          policies: { auth: { key: 'of-the-target' } },
        },
      },
    ],
  },
  moved: { targets: [{ name: 'a', static: { host: '127.0.0.1', port: two.port, path: '/old' } }] },
  away: { targets: [{ name: 'a', static: { host: '127.0.0.1', port: two.port, path: '/away' } }] },
})

const services = (more: readonly object[] = []) => [
  ...mcpService('alpha', {
    labels: { app: 'tools' },
    annotations: { 'sluice.dev/mcp-path': '/alpha' },
    ports: [
      { name: 'mcp', port: 80, appProtocol: 'sluice.dev/mcp', to: one.port },
      { name: 'metrics', port: 9090, to: 9 },
    ],
  }),
  ...mcpService('beta', {
    labels: { app: 'tools' },
    ports: [{ port: 8080, appProtocol: 'sluice.dev/mcp', to: two.port }],
  }),
  ...replicated('many', [one.port, two.port]),
  ...mcpService('bare', {
    labels: { app: 'unmarked' },
    ports: [{ name: 'http', port: 80, to: two.port }],
  }),
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'a', labels: { team: 'a' } } },
  ...mcpService('gamma', {
    namespace: 'a',
    ports: [{ name: 'mcp', port: 80, appProtocol: 'sluice.dev/mcp', to: one.port }],
  }),
  {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'roots' },
    data: { 'ca.crt': authority.certificate },
  },
  ...more,
]

const policies = () => [
  policy('for-the-route', 'HTTPRoute/labelled', { backend: { auth: { key: 'of-the-route' } } }),
  policy('for-beta', 'Service/beta', { backend: { auth: { key: 'of-the-service' } } }),
  policy('for-backend', 'GatewayBackend/secure', { backend: { auth: { key: 'of-the-backend' } } }),
  policy('for-other', 'GatewayBackend/secure#other', {
    backend: { auth: { key: 'of-the-section' } },
  }),
]

const write = (more: readonly object[] = []) => ({
  'all.yaml': `${mcpManifests(port, backends())}\n---\n${manifest(...([...services(more), ...policies()] as never[]))}`,
})

const authority = useAuthority()
const port = await freePort()
const one = useMcpServer({ offer: offer('one') })
const two = useFixture(
  () => {
    const moved = { '/old': '/new/', '/away': `http://localhost:${one.port}/mcp` }
    return new TestMcpServer({ offer: offer('two'), moved }).start()
  },
  (server) => server.kill(),
)
const secure = useMcpServer({ offer: offer('secure'), tls: authority.issue(['localhost']) })
const gateway = useGateway(() => ({ manifests: write() }))

async function toolsOf(path: string): Promise<string[]> {
  const client = await connectClient(port, path)
  const { tools } = await client.listTools()
  await client.close()
  return tools.map(({ name }) => name)
}

describe('Services selected as MCP targets', () => {
  it('[McpTargetSelector.selector] [McpSelector.services] are targets by labels, each marked port one', async () => {
    expect(await toolsOf('/labelled')).toEqual(['alpha-mcp_who', 'beta-8080_who'])
    const client = await connectClient(port, '/labelled')
    for (const [name, server] of [
      ['alpha-mcp', 'one'],
      ['beta-8080', 'two'],
    ]) {
      const result = await client.callTool({ name: `${name}_who` })
      expect(result.content).toEqual([{ type: 'text', text: server }])
    }
    expect(one.received.at(-1)?.path).toBe('/alpha')
    await client.close()
  })

  it('[McpSelector.namespaces] are found in the selected namespaces', async () => {
    expect(await toolsOf('/everywhere')).toEqual(['gamma-mcp_who', 'bare-http_who'])
  })

  it('get the policies of the Service, which win over those of the route', async () => {
    await toolsOf('/labelled')
    expect(two.received.at(-1)?.headers.authorization).toBe('Bearer of-the-service')
    expect(one.received.at(-1)?.headers.authorization).toBe('Bearer of-the-route')
  })

  it('[MCPBackend.sessionRouting] keep each session at the endpoint that began it', async () => {
    const seen = new Set<string>()
    for (let count = 0; seen.size < 2 && count < 40; count++) {
      const session = await rawSession(port, '/replicated')
      const answers = await Promise.all(
        [1, 2, 3].map((id) =>
          session.send(port, { jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'who' } }),
        ),
      )
      const texts = answers.map(({ message }) => JSON.stringify(message).match(/one|two/)?.[0])
      expect(new Set(texts).size).toBe(1)
      seen.add(texts[0] ?? '')
      await session.end(port)
    }
    expect([...seen].sort()).toEqual(['one', 'two'])
  })

  it('are added and removed while sessions are open', async () => {
    const client = await connectClient(port, '/labelled')
    const changed = Promise.withResolvers<void>()
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => changed.resolve())
    const gets = () => two.received.filter(({ method }) => method === 'GET').length
    await waitFor('the stream', () => gets() > 0)
    const fresh = mcpService('delta', {
      labels: { app: 'tools' },
      ports: [{ name: 'x', port: 80, appProtocol: 'sluice.dev/mcp', to: two.port }],
    })
    gateway.write('all.yaml', write(fresh)['all.yaml'])
    await changed.promise
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toContain('delta-x_who')
    expect((await client.callTool({ name: 'delta-x_who' })).content).toMatchObject([
      { text: 'two' },
    ])
    gateway.write('all.yaml', write()['all.yaml'])
    await waitFor('the list without it', async () => {
      const list = await client.listTools()
      return list.tools.length === 2
    })
    await client.close()
  })
})

const ofClient = {
  authorization: 'Bearer mine',
  cookie: 'a=b',
  'x-api-key': 'mine',
  'x-auth-token': 'mine',
  'x-other': 'kept',
}

/** Which of these headers a target gets from a client that sends them all. */
async function shown(path: string): Promise<Record<string, unknown>> {
  const session = await rawSession(port, path)
  await session.send(port, { jsonrpc: '2.0', id: 1, method: 'tools/list' }, ofClient)
  const headers = two.received.at(-1)?.headers ?? {}
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name in ofClient))
}

describe('static MCP targets', () => {
  it('[McpTargetSelector.static] [McpTarget.host] [McpTarget.port] [McpTarget.path] are reached at their host and path', async () => {
    const client = await connectClient(port, '/secure')
    expect((await client.callTool({ name: 'safe_who' })).content).toMatchObject([
      { text: 'secure' },
    ])
    expect(secure.received.at(-1)?.path).toBe('/mcp')
    expect((await client.callTool({ name: 'other_who' })).content).toMatchObject([{ text: 'one' }])
    expect(one.received.at(-1)?.path).toBe('/elsewhere')
    await client.close()
  })

  it('[McpTarget.policies] [MCPBackend.targets.sectionName] get their own policies, the most specific winning', async () => {
    const client = await connectClient(port, '/secure')
    await client.callTool({ name: 'safe_who' })
    expect(secure.received.at(-1)?.headers.authorization).toBe('Bearer of-the-target')
    await client.callTool({ name: 'other_who' })
    expect(one.received.at(-1)?.headers.authorization).toBe('Bearer of-the-section')
    await client.close()
  })

  it('get no header that may be a credential of the client if there are several targets', async () => {
    expect(await shown('/everywhere')).toEqual({})
  })

  it('get the credentials of the client if they are the only target and the gateway does not use them', async () => {
    expect(await shown('/open')).toEqual(ofClient)
  })

  it('get no credentials of the client if the gateway has its own', async () => {
    const expected = { authorization: 'Bearer of-the-target', 'x-other': 'kept' }
    expect(await shown('/keyed')).toEqual(expected)
  })

  it('may redirect to another path, but not to another host', async () => {
    const before = two.received.length
    const client = await connectClient(port, '/moved')
    expect((await client.callTool({ name: 'who' })).content).toMatchObject([{ text: 'two' }])
    await client.close()
    const paths = two.received.slice(before).map(({ path }) => path)
    expect(paths.slice(0, 2)).toEqual(['/old', '/new/'])
    expect(paths.slice(2)).not.toContain('/old')
    const reached = one.received.length
    await expect(connectClient(port, '/away')).rejects.toThrow()
    expect(one.received.length).toBe(reached)
  })
})
