/**
 * Runs commands that are MCP servers, and serves them over streamable HTTP to the proxy on the same machine. Requests
 * need the token of the host; a proxy first sends the definition of a server, and then messages to it. Status 421 means
 * that the definition is not known, so that nothing was done.
 */
import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { listen, type SmallServer } from '../../engines/local-server/server.ts'
import { hasEnvelope } from '../backends/mcp/eras/envelope.ts'
import { codes, errorText } from '../backends/mcp/json-rpc.ts'
import {
  type McpMessage,
  type McpRequest,
  MessageRefusal,
  readMessage,
  readResponse,
} from '../backends/mcp/message.ts'
import { stdioHeaders } from '../backends/mcp/stdio/settings.ts'
import { readServer } from './read-server.ts'
import { type PoolParts, PoolRefusal, ServerPool } from './server-pool.ts'
import { ResponseSink, StreamSink, sendJson } from './sinks.ts'
import { usageBySession } from './usage.ts'

interface HostOptions extends PoolParts {
  /** `host:port`, on a loopback address. */
  readonly address: string
  readonly token: string
}

/** Largest message of a client, and largest definition. */
const maxBodyBytes = 32 * 1024 * 1024
const maxServers = 1_000
const sweepMs = 500
/** Memory and processes are measured less often, because that reads all of `/proc`. */
const sweepsPerMeasure = 2

const unknownServer = 421
const sessionHeader = 'mcp-session-id'

export class StdioHost {
  readonly #options: HostOptions
  readonly #token: Buffer
  readonly #pools = new Map<string, ServerPool>()
  #http: SmallServer | undefined
  #timer: NodeJS.Timeout | undefined
  #sweeps = 0

  constructor(options: HostOptions) {
    this.#options = options
    this.#token = Buffer.from(options.token)
  }

  /** Begins to listen. Resolves to the bound address. */
  async start(): Promise<string> {
    this.#http = await listen('stdio', this.#options.address, (request, response) =>
      this.#serve(request, response),
    )
    this.#timer = setInterval(() => this.#sweep(), sweepMs)
    return this.#http?.address ?? ''
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await Promise.all([...this.#pools.values()].map((pool) => pool.close()))
    await this.#http?.close()
  }

  #sweep(): void {
    const pools = [...this.#pools.values()].filter(({ instances }) => instances.size > 0)
    const isMeasured = ++this.#sweeps % sweepsPerMeasure === 0 && pools.length > 0
    const usage = isMeasured ? usageBySession() : new Map()
    for (const pool of pools) pool.sweep(usage)
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url = '', headers } = request
    if (!this.#isKnown(headers[stdioHeaders.token])) return refuse(response, 401, 'unknown token')
    const [, place, id = ''] = url.split('/')
    if (place === 'definitions') return this.#define(method, id, request, response)
    const pool = place === 'servers' ? this.#pools.get(id) : undefined
    if (pool === undefined) return refuse(response, unknownServer, 'unknown server')
    const body = method === 'POST' ? await readBody(request) : ''
    if (body === undefined) return refuse(response, 413, 'the message is too large')
    const asked = { pool, principal: textOf(headers[stdioHeaders.principal]) }
    const session = textOf(headers[sessionHeader])
    if (method === 'POST') return post(asked, session, body, response)
    const found = session === '' ? undefined : pool.find(session, asked.principal)
    if (found === undefined) return refuse(response, session === '' ? 405 : 404, 'unknown session')
    if (method === 'DELETE') {
      pool.end(found)
      response.writeHead(200).end()
    } else if (method === 'GET') {
      const stream = new StreamSink(response)
      response.on('close', () => found.closeStream(stream))
      found.listen(stream)
    } else refuse(response, 405, 'method not allowed')
  }

  #isKnown(token: string | readonly string[] | undefined): boolean {
    const given = Buffer.from(textOf(token))
    return given.length === this.#token.length && timingSafeEqual(given, this.#token)
  }

  async #define(
    method: string,
    id: string,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    if (method === 'DELETE') {
      const pool = this.#pools.get(id)
      this.#pools.delete(id)
      void pool?.close()
      response.writeHead(204).end()
      return
    }
    const body = await readBody(request)
    const server = body === undefined ? 'too large' : readServer(body)
    if (typeof server === 'string') return refuse(response, 400, server)
    if (!this.#pools.has(id)) {
      if (this.#pools.size >= maxServers) return refuse(response, 503, 'too many servers')
      this.#pools.set(id, new ServerPool(server, this.#options))
    }
    response.writeHead(204).end()
  }
}

interface Asked {
  readonly pool: ServerPool
  readonly principal: string
}

/** Receives one message of a client. */
function post(asked: Asked, session: string, body: string, response: ServerResponse): void {
  let message: McpMessage
  try {
    message = readMessage(body)
  } catch (error) {
    if (!(error instanceof MessageRefusal)) throw error
    sendJson(response, errorText(undefined, error.code, error.message), 400)
    return
  }
  try {
    if (session !== '') inSession(asked, session, message, response)
    else if (message.kind === 'request') withoutSession(asked, message, response)
    else response.writeHead(202).end()
  } catch (error) {
    if (!(error instanceof PoolRefusal)) throw error
    const id = message.kind === 'request' ? message.id : undefined
    sendJson(response, errorText(id, codes.internal, `the server ${error.message}`))
  }
}

function inSession(
  { pool, principal }: Asked,
  id: string,
  message: McpMessage,
  response: ServerResponse,
): void {
  const session = pool.find(id, principal)
  if (session === undefined) {
    const own = message.kind === 'request' ? message.id : undefined
    sendJson(response, errorText(own, -32001, 'Session not found'), 404)
    return
  }
  const { instance } = session
  if (message.kind === 'request') {
    instance.request(message, new ResponseSink(response), session)
    return
  }
  if (message.kind === 'notification') instance.notify(message, session)
  else if (message.id !== undefined) instance.answer(message.id, message.text, session)
  response.writeHead(202).end()
}

function withoutSession(
  { pool, principal }: Asked,
  message: McpRequest,
  response: ServerResponse,
): void {
  if (message.method === 'initialize') {
    initialize({ pool, principal }, message, response)
    return
  }
  if (!hasEnvelope(message)) {
    sendJson(response, errorText(message.id, -32000, 'Missing session ID'), 400)
    return
  }
  const instance = pool.modern(principal)
  const sink = new ResponseSink(response)
  // A server that does not know this question is of the legacy era, and the process is of no use.
  const retire = () => {
    if (message.method === 'server/discover' && !instance.channel.hasResult) pool.retire(instance)
  }
  const end = (text: string) => {
    sink.end(text)
    retire()
  }
  const own = { message: (text: string) => sink.message(text), end }
  const key = instance.channel.request(message, own, response)
  response.on('close', () => {
    if (response.writableFinished) return
    instance.channel.cancel(key)
    retire()
  })
}

/** The head of the response names the session, so messages before the response wait for the stream of the session. */
function initialize(
  { pool, principal }: Asked,
  request: McpRequest,
  response: ServerResponse,
): void {
  const session = pool.begin(principal)
  const end = (text: string) => {
    const isRefused = readResponse(text)?.error !== undefined
    if (isRefused) pool.end(session)
    if (response.destroyed) return
    sendJson(response, text, 200, isRefused ? {} : { [sessionHeader]: session.id })
  }
  session.instance.initialize(request, { message: (text) => session.push(text), end }, session)
  // A client that has gone does not know its session.
  response.on('close', () => {
    if (!response.writableFinished) pool.end(session)
  })
}

const textOf = (value: string | readonly string[] | undefined): string =>
  typeof value === 'string' ? value : ''

function refuse(response: ServerResponse, status: number, text: string): void {
  sendJson(response, JSON.stringify({ error: text }), status)
}

/** Resolves to undefined if the body is too large. */
async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const parts: Buffer[] = []
  let length = 0
  for await (const part of request) {
    length += part.length
    if (length > maxBodyBytes) return undefined
    parts.push(part)
  }
  return Buffer.concat(parts).toString()
}
