/**
 * The server that the official conformance suite for MCP servers wants to test: its tools, resources
 * and prompts are what the descriptions of the scenarios demand.
 */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { InMemoryEventStore } from '@modelcontextprotocol/sdk/examples/shared/inMemoryEventStore.js'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import {
  CallToolRequestSchema,
  CompleteRequestSchema,
  GetPromptRequestSchema,
  ListPromptsRequestSchema,
  ListResourcesRequestSchema,
  ListResourceTemplatesRequestSchema,
  ListToolsRequestSchema,
  ReadResourceRequestSchema,
  SetLevelRequestSchema,
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { nothing, prompts, readResource, resources, tools } from './mcp-conformance-items.ts'

function conformanceServer(): Server {
  const capabilities = {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { subscribe: true, listChanged: true },
    logging: {},
    completions: {},
  }
  const server = new Server({ name: 'conformance', version: '1.0.0' }, { capabilities })
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: Object.entries(tools).map(([name, { description, inputSchema = nothing }]) => ({
      name,
      description,
      inputSchema: inputSchema as { type: 'object' },
    })),
  }))
  server.setRequestHandler(CallToolRequestSchema, ({ params }, extra) => {
    const tool = tools[params.name]
    if (tool === undefined) throw new Error(`there is no ${params.name}`)
    return tool.call(params.arguments ?? {}, extra, server)
  })
  server.setRequestHandler(ListPromptsRequestSchema, () => ({
    prompts: Object.entries(prompts).map(([name, { description, arguments: args }]) => ({
      name,
      description,
      ...(args && { arguments: args }),
    })),
  }))
  server.setRequestHandler(GetPromptRequestSchema, ({ params }) => {
    const prompt = prompts[params.name]
    if (prompt === undefined) throw new Error(`there is no ${params.name}`)
    return { messages: prompt.get(params.arguments ?? {}) }
  })
  server.setRequestHandler(ListResourcesRequestSchema, () => ({
    resources: resources.map(({ uri, name, description, mimeType }) => {
      return { uri, name, description, mimeType }
    }),
  }))
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({
    resourceTemplates: [{ uriTemplate: 'test://template/{id}/data', name: 'template' }],
  }))
  server.setRequestHandler(ReadResourceRequestSchema, ({ params }) => readResource(params.uri))
  server.setRequestHandler(SubscribeRequestSchema, () => ({}))
  server.setRequestHandler(UnsubscribeRequestSchema, () => ({}))
  server.setRequestHandler(SetLevelRequestSchema, () => ({}))
  server.setRequestHandler(CompleteRequestSchema, () => ({
    completion: { values: ['paris', 'park', 'party'], total: 150, hasMore: false },
  }))
  return server
}

export interface ConformanceServer {
  readonly port: number
  close(): Promise<void>
}

/** Starts one on a free loopback port, with sessions and streams that can be resumed. */
export async function startConformanceServer(): Promise<ConformanceServer> {
  const sessions = new Map<string, StreamableHTTPServerTransport>()
  const begin = async () => {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      eventStore: new InMemoryEventStore(),
      retryInterval: 100,
      onsessioninitialized: (id) => void sessions.set(id, transport),
      onsessionclosed: (id) => void sessions.delete(id),
    })
    await conformanceServer().connect(transport)
    return transport
  }
  const http = createServer(async (request, response) => {
    const host = (request.headers.host ?? '').replace(/:\d+$/, '')
    const { origin } = request.headers
    const isLocal = (name: string) => ['localhost', '127.0.0.1', '[::1]'].includes(name)
    // As servers on the loopback address must (MCP transports, security warning).
    if (!isLocal(host) || (origin !== undefined && !isLocal(new URL(origin).hostname))) {
      response.writeHead(403).end()
      return
    }
    const id = request.headers['mcp-session-id']
    const transport = id === undefined ? await begin() : sessions.get(String(id))
    if (transport === undefined) response.writeHead(404).end()
    else await transport.handleRequest(request, response)
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  return {
    port: (http.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        http.close(() => resolve())
        http.closeAllConnections()
      }),
  }
}
