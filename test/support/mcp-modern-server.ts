/** A server of revision 2026-07-28 without an SDK. It records every request, and answers as tests need it. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { useFixture } from './fixture.ts'

type Json = Record<string, unknown>

export interface ModernRequest {
  readonly headers: IncomingMessage['headers']
  /** The body as it came. */
  readonly text: string
  readonly method: string
  readonly id: string | number
  readonly params: Json
  /** Has the client of the server closed the connection before the response was complete? */
  isClosed: boolean
}

/** Answers one request. `send` writes an event, and begins a stream with the first one. */
export type ModernAnswer = (
  request: ModernRequest,
  stream: { send(message: object): void; end(): void },
) => Json | ModernError | undefined

export interface ModernError {
  readonly status: number
  readonly error: { readonly code: number; readonly message: string; readonly data?: unknown }
}

const isError = (answer: Json | ModernError): answer is ModernError => 'error' in answer

export interface ModernServerOptions {
  /** By method. */
  readonly answers?: Readonly<Record<string, ModernAnswer>>
  readonly capabilities?: Json
  readonly discover?: Json
}

const hints = { ttlMs: 60_000, cacheScope: 'public' }

export class ModernServer {
  readonly received: ModernRequest[] = []
  readonly #options: ModernServerOptions
  #http: Server | undefined
  port = 0
  /** If set, the server refuses everything in this way. */
  refuses: { readonly status: number; readonly body: string } | undefined
  readonly #streams = new Set<(message: object) => void>()

  constructor(options: ModernServerOptions = {}) {
    this.#options = options
  }

  /** What came, without the probes of the gateway. */
  get asked(): readonly ModernRequest[] {
    return this.received.filter(({ id }) => id !== 'sluice/discover')
  }

  get last(): ModernRequest | undefined {
    return this.asked.at(-1)
  }

  /** Number of open subscriptions. */
  get subscriptions(): number {
    return this.#streams.size
  }

  /** Sends a notification to every subscription. */
  notify(method: string, params: Json = {}): void {
    for (const send of this.#streams) send({ jsonrpc: '2.0', method, params })
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

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString()
    const { method, id, params = {} } = JSON.parse(text) as ModernRequest
    const request = { headers: incoming.headers, text, method, id, params, isClosed: false }
    this.received.push(request)
    response.on('close', () => {
      request.isClosed = !response.writableEnded
    })
    if (this.refuses !== undefined) {
      response.writeHead(this.refuses.status, { 'content-type': 'application/json' })
      response.end(this.refuses.body)
      return
    }
    this.#answer(request, response)
  }

  #answer(request: ModernRequest, response: ServerResponse): void {
    const { id, method } = request
    const send = (message: object) => {
      if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`data: ${JSON.stringify(message)}\n\n`)
    }
    const own = this.#options.answers?.[method]
    const answer =
      own === undefined
        ? this.#ownAnswer(request, response, send)
        : own(request, { send, end: () => response.end() })
    if (answer === undefined) return
    if (isError(answer)) {
      response.writeHead(answer.status, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id, error: answer.error }))
      return
    }
    const message = { jsonrpc: '2.0', id, result: { resultType: 'complete', ...answer } }
    if (response.headersSent) {
      send(message)
      response.end()
    } else {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify(message))
    }
  }

  #ownAnswer(
    { id, method, params }: ModernRequest,
    response: ServerResponse,
    send: (message: object) => void,
  ): Json | ModernError | undefined {
    const { capabilities = { tools: {} }, discover } = this.#options
    switch (method) {
      case 'server/discover':
        return { supportedVersions: ['2026-07-28'], capabilities, ...hints, ...discover }
      case 'tools/list':
        return { tools: [{ name: 'echo', inputSchema: { type: 'object' } }], ...hints }
      case 'tools/call':
        return { content: [{ type: 'text', text: JSON.stringify(params.arguments ?? null) }] }
      case 'subscriptions/listen':
        this.#listen(id, params, response, send)
        return undefined
      default:
        return { status: 404, error: { code: -32601, message: 'Method not found' } }
    }
  }

  #listen(
    id: string | number,
    { notifications }: Json,
    response: ServerResponse,
    send: (message: object) => void,
  ): void {
    const tagged = (message: object) => {
      const { params = {}, ...rest } = message as { params?: Json }
      const _meta = { 'io.modelcontextprotocol/subscriptionId': id }
      send({ ...rest, params: { ...params, _meta } })
    }
    const method = 'notifications/subscriptions/acknowledged'
    tagged({ jsonrpc: '2.0', method, params: { notifications } })
    this.#streams.add(tagged)
    response.on('close', () => this.#streams.delete(tagged))
  }

  /** Ends it, as a crash does; `start` brings it back on the same port. */
  async kill(): Promise<void> {
    const http = this.#http
    await new Promise<void>((resolve) => {
      if (http === undefined) resolve()
      http?.close(() => resolve())
      http?.closeAllConnections()
    })
  }
}

/** A server for the time of the tests. */
export function useModernServer(options?: ModernServerOptions): ModernServer {
  return useFixture(
    () => new ModernServer(options).start(),
    (server) => server.kill(),
  )
}
