/**
 * Runs commands that are MCP servers, and serves them over streamable HTTP to the proxy on the same machine. Requests
 * need the token of the host; a proxy first sends the definition of a server, and then messages to it. Status 421 means
 * that the definition is not known, so that nothing was done.
 */
import { timingSafeEqual } from 'node:crypto'
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
import { type HostRequest, HostServer } from './host-server.ts'
import { readServer } from './read-server.ts'
import type { Reply } from './reply.ts'
import { type PoolParts, PoolRefusal, ServerPool } from './server-pool.ts'
import { ResponseSink, StreamSink } from './sinks.ts'
import { UsageReader } from './usage.ts'

interface HostOptions extends PoolParts {
  /** `host:port`, on a loopback address. */
  readonly address: string
  readonly token: string
}

const maxServers = 1_000
const sweepMs = 500
/** Memory and processes are measured less often, because that reads `/proc`. */
const sweepsPerMeasure = 2

const unknownServer = 421
const sessionHeader = 'mcp-session-id'

export class StdioHost {
  readonly #options: HostOptions
  readonly #token: Buffer
  readonly #pools = new Map<string, ServerPool>()
  readonly #http = new HostServer({
    admit: (request) => this.#admit(request),
    serve: (request, content, reply) => this.#serve(request, content, reply),
  })
  #timer: NodeJS.Timeout | undefined
  #sweeps = 0
  readonly #usage = new UsageReader()

  constructor(options: HostOptions) {
    this.#options = options
    this.#token = Buffer.from(options.token)
  }

  /** Begins to listen. Resolves to the bound address. */
  async start(): Promise<string> {
    const address = await this.#http.start(this.#options.address)
    this.#timer = setInterval(() => this.#sweep(), sweepMs)
    return address
  }

  async close(): Promise<void> {
    clearInterval(this.#timer)
    await Promise.all([...this.#pools.values()].map((pool) => pool.close()))
    await this.#http.close()
  }

  #sweep(): void {
    this.#http.sweep(performance.now())
    const pools = [...this.#pools.values()].filter(({ instances }) => instances.size > 0)
    const isMeasured = ++this.#sweeps % sweepsPerMeasure === 0 && pools.length > 0
    const running = pools.flatMap(({ instances }) => [...instances])
    const servers = new Set(running.flatMap(({ process }) => process.pid ?? []))
    const usage = isMeasured ? this.#usage.read(servers) : new Map()
    for (const pool of pools) pool.sweep(usage)
  }

  /** Refuses requests without the token before their content is read. */
  #admit({ path, headers }: HostRequest) {
    if (!this.#isKnown(headers.get(stdioHeaders.token) ?? '')) {
      return { status: 401, why: 'unknown token' }
    }
    const { place, id } = placeOf(path)
    if (place === 'definitions' || (place === 'servers' && this.#pools.has(id))) return undefined
    return { status: unknownServer, why: 'unknown server' }
  }

  #serve({ method, path, headers }: HostRequest, content: string, reply: Reply): void {
    const { place, id } = placeOf(path)
    const pool = this.#pools.get(id)
    if (place === 'definitions') this.#define(method, id, content, reply)
    // The pool may have been removed while the content arrived.
    else if (pool === undefined) reply.refuse(unknownServer, 'unknown server')
    else {
      const asked = { pool, principal: headers.get(stdioHeaders.principal) ?? '' }
      const session = headers.get(sessionHeader) ?? ''
      if (method === 'POST') post(asked, session, content, reply)
      else onSession(asked, session, method, reply)
    }
  }

  #isKnown(token: string): boolean {
    const given = Buffer.from(token)
    return given.length === this.#token.length && timingSafeEqual(given, this.#token)
  }

  #define(method: string, id: string, content: string, reply: Reply): void {
    if (method === 'DELETE') {
      const pool = this.#pools.get(id)
      this.#pools.delete(id)
      void pool?.close()
      reply.empty(204)
      return
    }
    const server = readServer(content)
    if (typeof server === 'string') reply.refuse(400, server)
    else if (!this.#pools.has(id) && this.#pools.size >= maxServers) {
      reply.refuse(503, 'too many servers')
    } else {
      if (!this.#pools.has(id)) this.#pools.set(id, new ServerPool(server, this.#options))
      reply.empty(204)
    }
  }
}

function placeOf(path: string): { readonly place: string; readonly id: string } {
  const [, place = '', id = ''] = path.split('/')
  return { place, id }
}

interface Asked {
  readonly pool: ServerPool
  readonly principal: string
}

/** Opens the stream of a session, or ends the session. */
function onSession({ pool, principal }: Asked, id: string, method: string, reply: Reply): void {
  const session = id === '' ? undefined : pool.find(id, principal)
  if (session === undefined) reply.refuse(id === '' ? 405 : 404, 'unknown session')
  else if (method === 'DELETE') {
    pool.end(session)
    reply.empty(200)
  } else if (method === 'GET') {
    const stream = new StreamSink(reply)
    reply.onDisconnect = () => session.closeStream(stream)
    session.listen(stream)
  } else reply.refuse(405, 'method not allowed')
}

/** Receives one message of a client. */
function post(asked: Asked, session: string, text: string, reply: Reply): void {
  let message: McpMessage
  try {
    message = readMessage(text)
  } catch (error) {
    if (!(error instanceof MessageRefusal)) throw error
    reply.json(errorText(undefined, error.code, error.message), 400)
    return
  }
  try {
    if (session !== '') inSession(asked, session, message, reply)
    else if (message.kind === 'request') withoutSession(asked, message, reply)
    else reply.empty(202)
  } catch (error) {
    if (!(error instanceof PoolRefusal)) throw error
    const id = message.kind === 'request' ? message.id : undefined
    reply.json(errorText(id, codes.internal, `the server ${error.message}`))
  }
}

function inSession(
  { pool, principal }: Asked,
  id: string,
  message: McpMessage,
  reply: Reply,
): void {
  const session = pool.find(id, principal)
  if (session === undefined) {
    const own = message.kind === 'request' ? message.id : undefined
    reply.json(errorText(own, -32001, 'Session not found'), 404)
    return
  }
  const { instance } = session
  if (message.kind === 'request') {
    instance.request(message, new ResponseSink(reply), session)
    return
  }
  if (message.kind === 'notification') instance.notify(message, session)
  else if (message.id !== undefined) instance.answer(message.id, message.text, session)
  reply.empty(202)
}

function withoutSession({ pool, principal }: Asked, message: McpRequest, reply: Reply): void {
  if (message.method === 'initialize') {
    initialize({ pool, principal }, message, reply)
    return
  }
  if (!hasEnvelope(message)) {
    reply.json(errorText(message.id, -32000, 'Missing session ID'), 400)
    return
  }
  const instance = pool.modern(principal)
  const sink = new ResponseSink(reply)
  // A server that does not know this question is of the legacy era, and the process is of no use.
  const retire = () => {
    if (message.method === 'server/discover' && !instance.channel.hasResult) pool.retire(instance)
  }
  const end = (text: string) => {
    sink.end(text)
    retire()
  }
  const own = { message: (text: string) => sink.message(text), end }
  const key = instance.channel.request(message, own, reply)
  reply.onDisconnect = () => {
    instance.channel.cancel(key)
    retire()
  }
}

/** The head of the response names the session, so messages before the response wait for the stream of the session. */
function initialize({ pool, principal }: Asked, request: McpRequest, reply: Reply): void {
  const session = pool.begin(principal)
  const end = (text: string) => {
    const isRefused = readResponse(text)?.error !== undefined
    if (isRefused) pool.end(session)
    reply.json(text, 200, isRefused ? '' : `${sessionHeader}: ${session.id}\r\n`)
  }
  session.instance.initialize(request, { message: (text) => session.push(text), end }, session)
  // A client that has gone does not know its session.
  reply.onDisconnect = () => pool.end(session)
}
