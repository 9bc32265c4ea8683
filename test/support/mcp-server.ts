/** Real MCP servers for tests, made with the official SDK. */
import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js'
import type { EventStore } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'
import { useFixture } from './fixture.ts'

export interface McpServerOptions {
  /** Adds the items that a server offers; called once for each session. */
  readonly offer: (server: McpServer) => void
  /** Without sessions every request gets a server of its own. */
  readonly isStateless?: boolean
  /** Answers with JSON if it can. */
  readonly json?: boolean
  readonly eventStore?: () => EventStore
  /** Milliseconds after which clients resume streams that the server has closed. */
  readonly retryInterval?: number
  /** Moved paths, each with the Location of its 307 answer. */
  readonly moved?: Readonly<Record<string, string>>
  /** 0: any. */
  readonly port?: number
  readonly instructions?: string
  readonly tls?: { readonly certificate: string; readonly key: string }
}

export interface ReceivedMcp {
  readonly method: string
  readonly path: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

/** Keeps events in the order in which they came. */
export class OrderedEventStore implements EventStore {
  readonly #events: { streamId: string; message: JSONRPCMessage }[] = []

  storeEvent(streamId: string, message: JSONRPCMessage): Promise<string> {
    this.#events.push({ streamId, message })
    return Promise.resolve(`event-${this.#events.length}`)
  }

  async replayEventsAfter(
    lastEventId: string,
    { send }: { send(id: string, message: JSONRPCMessage): Promise<void> },
  ): Promise<string> {
    const last = Number(lastEventId.replace('event-', ''))
    const streamId = this.#events[last - 1]?.streamId ?? ''
    for (const [at, event] of this.#events.entries()) {
      if (at < last || event.streamId !== streamId) continue
      await send(`event-${at + 1}`, event.message)
    }
    return streamId
  }
}

export class TestMcpServer {
  readonly received: ReceivedMcp[] = []
  readonly #sessions = new Map<
    string,
    { server: McpServer; transport: StreamableHTTPServerTransport }
  >()
  readonly #options: McpServerOptions
  #http: Server | undefined
  port = 0

  constructor(options: McpServerOptions) {
    this.#options = options
    this.port = options.port ?? 0
  }

  /** Sessions that were not ended. */
  get sessions(): readonly McpServer[] {
    return [...this.#sessions.values()].map(({ server }) => server)
  }

  get sessionIds(): readonly string[] {
    return [...this.#sessions.keys()]
  }

  async start(): Promise<this> {
    const serve = (request: IncomingMessage, response: ServerResponse) => {
      void this.#serve(request, response).catch(() => response.destroy())
    }
    const { tls } = this.#options
    const http =
      tls === undefined
        ? createServer({ keepAliveTimeout: 0 }, serve)
        : createSecureServer({ cert: tls.certificate, key: tls.key }, serve)
    this.#http = http
    await new Promise<void>((resolve) => http.listen(this.port, '127.0.0.1', resolve))
    this.port = (http.address() as AddressInfo).port
    return this
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks).toString()
    const { method = '', url: path = '', headers } = request
    this.received.push({ method, path, headers, body })
    const place = this.#options.moved?.[path]
    if (place !== undefined) {
      response.writeHead(307, { location: place }).end()
      return
    }
    const transport = await this.#transport(headers['mcp-session-id'] as string | undefined)
    if (transport === undefined) {
      response.writeHead(404, { 'content-type': 'application/json' })
      const error = { code: -32001, message: 'Session not found' }
      response.end(JSON.stringify({ jsonrpc: '2.0', error, id: null }))
      return
    }
    await transport.handleRequest(request, response, body === '' ? undefined : JSON.parse(body))
  }

  async #transport(id: string | undefined): Promise<StreamableHTTPServerTransport | undefined> {
    if (id !== undefined) return this.#sessions.get(id)?.transport
    const { isStateless, json, eventStore, retryInterval, offer, instructions } = this.#options
    const server = new McpServer(
      { name: 'test', version: '1.0.0' },
      { capabilities: { logging: {} }, ...(instructions !== undefined && { instructions }) },
    )
    offer(server)
    const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
      sessionIdGenerator: isStateless === true ? undefined : () => randomUUID(),
      enableJsonResponse: json ?? false,
      ...(eventStore && { eventStore: eventStore() }),
      ...(retryInterval !== undefined && { retryInterval }),
      onsessioninitialized: (session) => {
        this.#sessions.set(session, { server, transport })
      },
      onsessionclosed: (session) => {
        this.#sessions.delete(session)
      },
    })
    await server.connect(transport as Parameters<McpServer['connect']>[0])
    return transport
  }

  /** Ends it with all that it knows, as a crash does; `start` brings it back on the same port. */
  async kill(): Promise<void> {
    const http = this.#http
    this.#sessions.clear()
    await new Promise<void>((resolve) => {
      if (http === undefined) resolve()
      http?.close(() => resolve())
      http?.closeAllConnections()
    })
  }
}

/** An MCP server for the time of the tests, which they may end and start again. */
export function useMcpServer(options: McpServerOptions): TestMcpServer {
  return useFixture(
    () => new TestMcpServer(options).start(),
    (server) => server.kill(),
  )
}

/** A server of the older transport (HTTP with SSE), made with the official SDK. */
export class TestSseServer {
  readonly #offer: (server: McpServer) => void
  readonly #transports = new Map<string, SSEServerTransport>()
  #http: Server | undefined
  port = 0

  constructor(offer: (server: McpServer) => void) {
    this.#offer = offer
  }

  async start(): Promise<this> {
    const http = createServer((request, response) => {
      void this.#serve(request, response).catch(() => response.destroy())
    })
    this.#http = http
    await new Promise<void>((resolve) => http.listen(this.port, '127.0.0.1', resolve))
    this.port = (http.address() as AddressInfo).port
    return this
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '', 'http://localhost')
    if (request.method === 'GET' && url.pathname === '/sse') {
      const transport = new SSEServerTransport('/messages', response)
      this.#transports.set(transport.sessionId, transport)
      const server = new McpServer({ name: 'old', version: '1.0.0' })
      this.#offer(server)
      await server.connect(transport)
      return
    }
    const transport = this.#transports.get(url.searchParams.get('sessionId') ?? '')
    if (transport === undefined) response.writeHead(404).end()
    else await transport.handlePostMessage(request, response)
  }

  async kill(): Promise<void> {
    this.#transports.clear()
    await new Promise<void>((resolve) => {
      if (this.#http === undefined) resolve()
      this.#http?.close(() => resolve())
      this.#http?.closeAllConnections()
    })
  }
}
