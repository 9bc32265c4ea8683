/** A small MCP server by the official SDK: it offers the items of the test and records requests. */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
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
  SubscribeRequestSchema,
  UnsubscribeRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'

export interface McpItems {
  readonly tools?: readonly string[]
  readonly prompts?: readonly string[]
  /** URIs. */
  readonly resources?: readonly string[]
  /** URI templates. */
  readonly templates?: readonly string[]
}

export interface McpItemsServer {
  readonly port: number
  /** Headers of every HTTP request so far. */
  readonly headers: readonly IncomingHttpHeaders[]
  /** What was really used, such as `tools/call add`. */
  readonly uses: readonly string[]
  close(): Promise<void>
}

/** Starts one on a free loopback port. Every item answers with its own name. */
export async function startMcpItemsServer(items: McpItems): Promise<McpItemsServer> {
  const headers: IncomingHttpHeaders[] = []
  const uses: string[] = []
  const sessions = new Map<string, StreamableHTTPServerTransport>()
  const begin = async () => {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, transport),
    })
    await itemsServer(items, (use) => uses.push(use)).connect(transport)
    return transport
  }
  const http = createServer(async (request, response) => {
    headers.push(request.headers)
    const id = request.headers['mcp-session-id']
    const transport = id === undefined ? await begin() : sessions.get(String(id))
    if (transport === undefined) response.writeHead(404).end()
    else await transport.handleRequest(request, response)
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  return {
    port: (http.address() as AddressInfo).port,
    headers,
    uses,
    close: () =>
      new Promise((resolve) => {
        http.close(() => resolve())
        http.closeAllConnections()
      }),
  }
}

function itemsServer(items: McpItems, note: (use: string) => void): Server {
  const { tools = [], prompts = [], resources = [], templates = [] } = items
  const capabilities = { tools: {}, prompts: {}, resources: { subscribe: true }, completions: {} }
  const server = new Server({ name: 'items', version: '1.0.0' }, { capabilities })
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: tools.map((name) => ({ name, inputSchema: { type: 'object' as const } })),
  }))
  server.setRequestHandler(CallToolRequestSchema, ({ params: { name } }) => {
    note(`tools/call ${name}`)
    return { content: [{ type: 'text', text: name }] }
  })
  server.setRequestHandler(ListPromptsRequestSchema, () => ({
    prompts: prompts.map((name) => ({ name })),
  }))
  server.setRequestHandler(GetPromptRequestSchema, ({ params: { name } }) => {
    note(`prompts/get ${name}`)
    return { messages: [{ role: 'user', content: { type: 'text', text: name } }] }
  })
  server.setRequestHandler(ListResourcesRequestSchema, () => ({
    resources: resources.map((uri) => ({ uri, name: uri })),
  }))
  server.setRequestHandler(ListResourceTemplatesRequestSchema, () => ({
    resourceTemplates: templates.map((uriTemplate) => ({ uriTemplate, name: uriTemplate })),
  }))
  server.setRequestHandler(ReadResourceRequestSchema, ({ params: { uri } }) => {
    note(`resources/read ${uri}`)
    return { contents: [{ uri, text: uri }] }
  })
  server.setRequestHandler(SubscribeRequestSchema, ({ params: { uri } }) => {
    note(`resources/subscribe ${uri}`)
    return {}
  })
  server.setRequestHandler(UnsubscribeRequestSchema, () => ({}))
  server.setRequestHandler(CompleteRequestSchema, ({ params: { ref } }) => {
    note(`completion/complete ${ref.type === 'ref/prompt' ? ref.name : ref.uri}`)
    return { completion: { values: ['one'] } }
  })
  return server
}
