/** Clients and servers made with the second generation of the official SDKs for MCP. */
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { SignIn } from './mcp-sign-in.ts'
import { partPath } from './parts.ts'

type Json = Record<string, unknown>

/** The parts of the packages that tests use. */
interface ClientPackage {
  readonly Client: new (info: Json, options: Json) => SdkClient
  readonly StreamableHTTPClientTransport: new (url: URL, options?: Json) => SdkTransport
}
interface ServerPackage {
  readonly McpServer: new (info: Json, options: Json) => SdkServer
  readonly createMcpHandler: (make: () => SdkServer, options: Json) => SdkHandler
  readonly inputRequired: ((result: Json) => Json) & { elicit(params: Json): Json }
}
interface NodePackage {
  readonly toNodeHandler: (handler: SdkHandler) => RequestListener
}
interface ZodPackage {
  readonly z: { object(shape: Json): unknown; string(): unknown }
}

interface SdkTransport {
  finishAuth(response: URLSearchParams): Promise<void>
}

export interface SdkClient {
  setRequestHandler(method: string, handler: () => Json): void
  connect(transport: unknown): Promise<void>
  getNegotiatedProtocolVersion(): string | undefined
  listTools(): Promise<{ readonly tools: readonly { readonly name: string }[] }>
  callTool(params: Json, options?: Json): Promise<Json>
  readResource(params: Json): Promise<Json>
  listen(filter: Json): Promise<{ readonly honoredFilter: Json; close(): Promise<void> }>
  close(): Promise<void>
}
interface ToolContext {
  readonly mcpReq: {
    readonly _meta?: Json
    readonly inputResponses?: Json
    notify(message: Json): Promise<void>
  }
}
interface SdkServer {
  registerTool(
    name: string,
    options: Json,
    call: (args: Json, context: ToolContext) => unknown,
  ): void
  registerResource(name: string, uri: string, options: Json, read: (uri: URL) => unknown): void
}
interface SdkHandler {
  readonly notify: { toolsChanged(): void }
  close(): Promise<void>
}

async function load<Package>(path: string): Promise<Package> {
  const file = join(partPath('mcp-sdks'), 'node_modules', path)
  return (await import(pathToFileURL(file).href)) as Package
}
const scope = '@modelcontextprotocol'

/** `mode` chooses the era: `auto`, `legacy`, or `{ pin: version }`. */
export async function connectSdkClient(url: string, mode: unknown): Promise<SdkClient> {
  const { Client, StreamableHTTPClientTransport } = await load<ClientPackage>(
    `${scope}/client/dist/index.mjs`,
  )
  const capabilities = { elicitation: {} }
  const options = { capabilities, versionNegotiation: { mode } }
  const client = new Client({ name: 'sdk', version: '2' }, options)
  client.setRequestHandler('elicitation/create', () => ({ action: 'accept', content: { a: 'b' } }))
  await client.connect(new StreamableHTTPClientTransport(new URL(url)))
  return client
}

/** Connects, signs in when the server asks for it, and connects again. */
export async function signInWithSdk(url: string, signIn: SignIn): Promise<SdkClient> {
  const { Client, StreamableHTTPClientTransport } = await load<ClientPackage>(
    `${scope}/client/dist/index.mjs`,
  )
  const open = () => {
    const client = new Client({ name: 'sdk', version: '2' }, {})
    const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: signIn })
    return { client, transport, connect: () => client.connect(transport) }
  }
  const first = open()
  const refused = await first.connect().then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(refused instanceof Error) || refused.name !== 'UnauthorizedError') throw refused
  await first.transport.finishAuth(signIn.response)
  const second = open()
  await second.connect()
  return second.client
}

export interface SdkHttpServer {
  readonly port: number
  toolsChanged(): void
  close(): Promise<void>
}

/** Starts a server with the tools `echo`, `steps` and `ask`, and the resource `test://r`. */
export async function startSdkServer({
  isModernOnly,
}: {
  readonly isModernOnly: boolean
}): Promise<SdkHttpServer> {
  const { McpServer, createMcpHandler, inputRequired } = await load<ServerPackage>(
    `${scope}/server/dist/index.mjs`,
  )
  const { toNodeHandler } = await load<NodePackage>(`${scope}/node/dist/index.mjs`)
  const { z } = await load<ZodPackage>('zod/index.js')
  const nothing = z.object({})
  const text = (value: unknown) => ({ content: [{ type: 'text', text: JSON.stringify(value) }] })
  const make = () => {
    const capabilities = { tools: { listChanged: true } }
    const server = new McpServer({ name: 'sdk', version: '2' }, { capabilities })
    const echo = { inputSchema: z.object({ text: z.string() }) }
    server.registerTool('echo', echo, ({ text: own }) => text(own))
    server.registerTool('steps', { inputSchema: nothing }, async (_, { mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken
      await mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken, progress: 1 },
      })
      return text('done')
    })
    server.registerTool('ask', { inputSchema: nothing }, (_, { mcpReq }) => {
      const answer = mcpReq.inputResponses?.key
      if (answer !== undefined) return text(answer)
      const requestedSchema = { type: 'object', properties: { a: { type: 'string' } } }
      const key = inputRequired.elicit({ message: 'what?', requestedSchema })
      return inputRequired({ inputRequests: { key }, requestState: 'state' })
    })
    server.registerResource('r', 'test://r', {}, (uri) => ({
      contents: [{ uri: uri.href, text: 'r' }],
    }))
    return server
  }
  const handler = createMcpHandler(make, isModernOnly ? { legacy: 'reject' } : {})
  const http = createServer(toNodeHandler(handler))
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  return {
    port: (http.address() as AddressInfo).port,
    toolsChanged: () => handler.notify.toolsChanged(),
    close: async () => {
      await handler.close()
      await new Promise<void>((resolve) => {
        http.close(() => resolve())
        http.closeAllConnections()
      })
    },
  }
}
