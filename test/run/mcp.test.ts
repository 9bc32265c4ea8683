/** MCP backends on real traffic: SDK clients through a running gateway to SDK servers. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { freePort, type RunningGateway, startGateway } from '../../src/testing/gateway.ts'
import { TestMcpServer } from '../../src/testing/mcp-server.ts'

let gateway: RunningGateway
let port: number
let server: TestMcpServer

function offer(server: McpServer): void {
  server.registerTool(
    'echo',
    { description: 'says it again', inputSchema: { text: z.string() } },
    ({ text }) => ({ content: [{ type: 'text', text }] }),
  )
}

beforeAll(async () => {
  port = await freePort()
  server = await new TestMcpServer({ offer }).start()
  gateway = await startGateway({
    manifests: {
      'all.yaml': `
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: { name: edge }
spec:
  gatewayClassName: agentgateway
  listeners: [{ name: http, port: ${port}, protocol: HTTP }]
---
apiVersion: sluice.dev/v1alpha1
kind: GatewayBackend
metadata: { name: one }
spec:
  mcp: { targets: [{ name: only, static: { host: 127.0.0.1, port: ${server.port} } }] }
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: { name: one }
spec:
  parentRefs: [{ name: edge }]
  rules:
    - matches: [{ path: { value: /one } }]
      backendRefs: [{ group: sluice.dev, kind: GatewayBackend, name: one }]
`,
    },
  })
})

afterAll(async () => {
  await gateway?.dispose()
  await server?.kill()
})

describe('one target', () => {
  it('[BackendSpec.mcp] is talked to as if it were the gateway itself', async () => {
    const client = new Client({ name: 'test', version: '1.0.0' })
    const transport = new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${port}/one`))
    await client.connect(transport as Parameters<Client['connect']>[0])
    expect(client.getServerVersion()?.name).toBe('test')
    const { tools } = await client.listTools()
    expect(tools.map(({ name }) => name)).toEqual(['echo'])
    const result = await client.callTool({ name: 'echo', arguments: { text: 'hello' } })
    expect(result.content).toEqual([{ type: 'text', text: 'hello' }])
    await transport.terminateSession()
    expect(server.sessions).toEqual([])
    await client.close()
  })
})
