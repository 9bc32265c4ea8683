/**
 * The HTTP server of the process that runs commands. Its only client is the proxy on the same machine, so it supports
 * a small part of HTTP/1.1: one request at a time on a connection, with a content-length. Node's own server would take
 * more time than everything else in a call.
 */
import { isAscii } from 'node:buffer'
import { createServer, type Server, type Socket } from 'node:net'
import { bindServers } from '../../engines/local-server/bind.ts'
import { Reply } from './reply.ts'

export interface HostRequest {
  readonly method: string
  readonly path: string
  /** Values by lower-case name. If a name occurs more than once, the last value counts. */
  readonly headers: ReadonlyMap<string, string>
}

interface HostHandler {
  /** Called before the content is read. If it returns a refusal, the content is skipped, and the refusal is sent. */
  admit(request: HostRequest): { readonly status: number; readonly why: string } | undefined
  serve(request: HostRequest, content: string, reply: Reply): void
}

const maxHeadBytes = 64 * 1024
/** Largest message of a client, and largest definition. */
const maxContentBytes = 32 * 1024 * 1024
/** Maximum time for a request to arrive, and for a new connection to send one. */
const maxArrivalMs = 60_000
const maxConnections = 10_000

const headEnd = '\r\n\r\n'
const requestLine = /^([A-Z]+) (\/[\x21-\x7e]*) HTTP\/1\.1$/

export class HostServer {
  readonly #handler: HostHandler
  readonly #connections = new Set<HostConnection>()
  #servers: readonly Server[] = []

  constructor(handler: HostHandler) {
    this.#handler = handler
  }

  /** Begins to listen. Resolves to the bound address. */
  async start(address: string): Promise<string> {
    const create = () => {
      const server = createServer({ noDelay: true }, (socket) => this.#accept(socket))
      server.maxConnections = maxConnections
      return server
    }
    const { address: bound, servers } = await bindServers('stdio', address, create)
    this.#servers = servers
    return bound
  }

  #accept(socket: Socket): void {
    const connection = new HostConnection(socket, this.#handler)
    this.#connections.add(connection)
    socket.on('close', () => this.#connections.delete(connection))
  }

  /** Closes connections that have waited too long for a request. Called periodically. */
  sweep(now: number): void {
    for (const connection of this.#connections) {
      if (now - connection.waitsSince > maxArrivalMs) connection.close()
    }
  }

  async close(): Promise<void> {
    const closed = this.#servers.map(
      (server) => new Promise<void>((resolve) => server.close(() => resolve())),
    )
    for (const connection of this.#connections) connection.close()
    await Promise.all(closed)
  }
}

class HostConnection {
  readonly #socket: Socket
  readonly #handler: HostHandler
  /** When waiting for a request began; infinite while a connection that has sent one is idle. */
  waitsSince = performance.now()
  /** The bytes of an incomplete head. */
  #start: Buffer | undefined
  #request: HostRequest | undefined
  #refusal: { readonly status: number; readonly why: string } | undefined
  #parts: Buffer[] = []
  /** Bytes of the content that have not arrived. */
  #missing = 0
  #reply: Reply | undefined

  constructor(socket: Socket, handler: HostHandler) {
    this.#socket = socket
    this.#handler = handler
    socket.on('data', (bytes: Buffer) => this.#read(bytes))
    socket.on('error', () => {})
    socket.on('close', () => this.#reply?.close())
  }

  close(): void {
    this.#socket.destroy()
  }

  #read(bytes: Buffer): void {
    // The proxy never sends a request before it has the response to the last one.
    if (this.#reply !== undefined) this.close()
    else if (this.#request === undefined) this.#readHead(bytes)
    else this.#readContent(this.#request, bytes)
  }

  #readHead(bytes: Buffer): void {
    if (this.waitsSince === Number.POSITIVE_INFINITY) this.waitsSince = performance.now()
    const all = this.#start === undefined ? bytes : Buffer.concat([this.#start, bytes])
    const end = all.indexOf(headEnd)
    if (end > maxHeadBytes || (end < 0 && all.length > maxHeadBytes)) {
      this.#fail(431, 'the head is too large')
      return
    }
    if (end < 0) {
      this.#start = all
      return
    }
    this.#start = undefined
    const request = readHead(all.toString('latin1', 0, end))
    const length = request && contentLength(request)
    if (request === undefined || length === undefined) this.#fail(400, 'not a request of a proxy')
    else if (length > maxContentBytes) this.#fail(413, 'the message is too large')
    else {
      this.#request = request
      this.#missing = length
      this.#refusal = this.#handler.admit(request)
      this.#readContent(request, all.subarray(end + headEnd.length))
    }
  }

  #readContent(request: HostRequest, bytes: Buffer): void {
    this.#missing -= bytes.length
    if (this.#missing < 0) {
      this.close()
      return
    }
    const refusal = this.#refusal
    if (refusal === undefined && bytes.length > 0) this.#parts.push(bytes)
    if (this.#missing > 0) return
    const content = textOf(this.#parts)
    this.#parts = []
    this.#request = undefined
    this.#refusal = undefined
    this.waitsSince = Number.POSITIVE_INFINITY
    const reply = new Reply(this.#socket, () => {
      this.#reply = undefined
    })
    this.#reply = reply
    if (refusal === undefined) this.#serve(request, content, reply)
    else reply.refuse(refusal.status, refusal.why)
  }

  /** An error affects this request only. */
  #serve(request: HostRequest, content: string, reply: Reply): void {
    try {
      this.#handler.serve(request, content, reply)
    } catch (error) {
      reply.refuse(500, error instanceof Error ? error.message : String(error))
    }
  }

  /** Sends an error and closes the connection, whose bytes cannot be read any further. */
  #fail(status: number, why: string): void {
    this.#reply = new Reply(this.#socket, () => this.#socket.end())
    this.#reply.refuse(status, why)
  }
}

/** Reads a head, without the empty line that ends it. Returns undefined if it is invalid. */
function readHead(text: string): HostRequest | undefined {
  const [first = '', ...lines] = text.split('\r\n')
  const [, method, path] = requestLine.exec(first) ?? []
  if (method === undefined || path === undefined) return undefined
  const headers = new Map<string, string>()
  for (const line of lines) {
    const colon = line.indexOf(':')
    if (colon <= 0) return undefined
    const name = line.slice(0, colon).toLowerCase()
    if (name === 'content-length' && headers.has(name)) return undefined
    headers.set(name, line.slice(colon + 1).trim())
  }
  return { method, path, headers }
}

/** Returns undefined if the content has no valid length. */
function contentLength({ headers }: HostRequest): number | undefined {
  if (headers.has('transfer-encoding')) return undefined
  const length = headers.get('content-length') ?? '0'
  return /^\d{1,15}$/.test(length) ? Number(length) : undefined
}

function textOf(parts: readonly Buffer[]): string {
  const [first] = parts
  const bytes = first !== undefined && parts.length === 1 ? first : Buffer.concat(parts)
  return isAscii(bytes) ? bytes.toString('latin1') : bytes.toString()
}
