import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { createIoCore } from '../../src/engines/core/index.ts'
import type {
  ForwardOptions,
  RequestHandler,
  ServerExchange,
} from '../../src/engines/http/contracts/requests.ts'
import { Engine, type EngineOptions } from '../../src/engines/http/engine.ts'
import type { UpstreamAddress } from '../../src/engines/http/sockets/upstream-address.ts'
import type { GatewayError } from '../../src/ground/errors/index.ts'
import type { BufferedBody } from '../../src/ground/exchange/exchange.ts'
import { ManualClock } from '../support/manual-clock.ts'

/** What the log would say of one exchange. */
export interface Done {
  readonly method: string
  readonly path: string
  readonly status: number
  readonly respondedBy: string
  readonly ending: string | undefined
  readonly error: string | undefined
  readonly requestBytes: number
  readonly responseBytes: number
}

/** A data plane that forwards everything to one upstream, with hooks for what a test is about. */
export class Forwarder implements RequestHandler {
  upstream: UpstreamAddress = { host: '127.0.0.1', port: 1, pool: 'none' }
  options: ForwardOptions = { connectTimeoutMs: 0, attemptTimeoutMs: 0, requestTimeoutMs: 0 }
  readonly done: Done[] = []
  readonly errors: string[] = []
  readonly badHeads: string[] = []
  request: (exchange: ServerExchange) => void = (exchange) =>
    exchange.forward(this.upstream, this.options)
  response: (exchange: ServerExchange) => void = (exchange) => exchange.relay()
  wholeResponse: (exchange: ServerExchange, body: BufferedBody) => void = (exchange) =>
    exchange.relay()
  failure: (exchange: ServerExchange, error: GatewayError) => void = (exchange, error) =>
    exchange.respond(error.row.status, [['content-type', 'text/plain']], error.row.text)

  onRequest(exchange: ServerExchange): void {
    this.request(exchange)
  }

  onResponse(exchange: ServerExchange): void {
    this.response(exchange)
  }

  onWholeResponse(exchange: ServerExchange, body: BufferedBody): void {
    this.wholeResponse(exchange, body)
  }

  onError(exchange: ServerExchange, error: GatewayError): void {
    this.errors.push(error.code)
    this.failure(exchange, error)
  }

  onDone(exchange: ServerExchange): void {
    this.done.push({
      method: exchange.request.method,
      path: exchange.request.path,
      status: exchange.sentStatus,
      respondedBy: exchange.respondedBy,
      ending: exchange.ending,
      error: exchange.error?.code,
      requestBytes: exchange.requestBytes,
      responseBytes: exchange.responseBytes,
    })
  }

  onBadHead(_port: number, error: GatewayError): void {
    this.badHeads.push(error.code)
  }
}

/** An engine with a forwarder on one port. */
export interface EngineRig {
  readonly engine: Engine
  readonly plane: Forwarder
  readonly port: number
  close(): Promise<void>
}

export async function startEngine(options: Partial<EngineOptions> = {}): Promise<EngineRig> {
  const core = createIoCore({ memoryPages: 256 })
  const plane = new Forwarder()
  const engine = new Engine({
    core,
    head: core.createHead(),
    handler: plane,
    bindAddress: '127.0.0.1',
    reusePort: false,
    ...options,
  })
  const port = await engine.listen(0)
  return {
    engine,
    plane,
    port,
    async close() {
      engine.close()
    },
  }
}

/** A raw TCP server that records what each connection sends and answers as the test says. */
export class RawUpstream {
  readonly connections: RawConnection[] = []
  readonly #server: Server
  /** Called for every piece of bytes. */
  onData: (connection: RawConnection) => void = () => {}
  onConnection: (connection: RawConnection) => void = () => {}

  private constructor(server: Server) {
    this.#server = server
    server.on('connection', (socket) => {
      const connection = new RawConnection(socket)
      this.connections.push(connection)
      this.onConnection(connection)
      socket.on('data', () => this.onData(connection))
    })
  }

  static start(): Promise<RawUpstream> {
    const server = createServer({ allowHalfOpen: true })
    return new Promise((resolve) => {
      server.listen(0, '127.0.0.1', () => resolve(new RawUpstream(server)))
    })
  }

  get address(): UpstreamAddress {
    const { port } = this.#server.address() as AddressInfo
    return { host: '127.0.0.1', port, pool: `127.0.0.1:${port}` }
  }

  close(): void {
    for (const connection of this.connections) connection.socket.destroy()
    this.#server.close()
  }
}

/** One end of a TCP connection, collecting what it receives as Latin-1 text. */
export class RawConnection {
  readonly socket: Socket
  /** What was received, without the Date that the gateway adds to responses. */
  text = ''
  /** Everything that was received. */
  allText = ''
  #tail = ''
  received = 0
  ended = false
  closed = false
  keepsText = true
  #waiters: (() => void)[] = []

  constructor(socket: Socket) {
    this.socket = socket
    socket.on('data', (chunk: Buffer) => {
      this.received += chunk.length
      if (this.keepsText) this.#add(chunk.toString('latin1'))
      this.#wake()
    })
    socket.on('end', () => {
      this.ended = true
      this.#wake()
    })
    socket.on('drain', () => this.#wake())
    socket.on('error', () => {})
    socket.on('close', () => {
      this.closed = true
      this.#wake()
    })
  }

  static connect(port: number, host = '127.0.0.1'): Promise<RawConnection> {
    const socket = connect({ port, host, allowHalfOpen: true })
    const connection = new RawConnection(socket)
    return new Promise((resolve, reject) => {
      socket.once('connect', () => resolve(connection))
      socket.once('error', reject)
    })
  }

  write(text: string | Buffer): this {
    if (typeof text === 'string') this.socket.write(text, 'latin1')
    else this.socket.write(text)
    return this
  }

  /** Resolves when the condition holds, looking after everything that happens here. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      await new Promise<void>((resolve) => {
        this.#waiters.push(resolve)
      })
    }
  }

  /** Resolves once so many complete responses (Content-Length or no body) have been received. */
  async responses(count: number): Promise<string[]> {
    let found: string[] = []
    await this.until(() => {
      found = splitResponses(this.text)
      return found.length >= count || this.closed || this.ended
    })
    return found
  }

  untilEnd(): Promise<void> {
    return this.until(() => this.ended || this.closed)
  }

  #add(text: string): void {
    this.allText += text
    this.text += text
    const recent = this.#tail + text
    this.#tail = recent.slice(-64)
    if (!recent.includes('date: ')) return
    this.text = this.text.replaceAll(/(?<=\r\n)date: [^\r\n]+ GMT\r\n/g, '')
  }

  #wake(): void {
    const waiters = this.#waiters
    this.#waiters = []
    for (const waiter of waiters) waiter()
  }
}

/** The complete responses at the begin of a text: Content-Length or chunked framing. */
export function splitResponses(text: string): string[] {
  const found: string[] = []
  let rest = text
  for (;;) {
    const headEnd = rest.indexOf('\r\n\r\n')
    if (headEnd < 0) return found
    const head = rest.slice(0, headEnd + 4)
    let end = head.length
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
    const hasBody = !/^HTTP\/1.1 (1..|204|304)/.test(head)
    if (hasBody && length !== undefined) end += Number(length)
    else if (hasBody && /\r\ntransfer-encoding: chunked/i.test(head)) {
      const last = rest.indexOf('\r\n0\r\n\r\n', headEnd)
      const empty = rest.startsWith('0\r\n\r\n', end)
      if (!empty && last < 0) return found
      end = empty ? end + 5 : last + 7
    }
    if (rest.length < end) return found
    found.push(rest.slice(0, end))
    rest = rest.slice(end)
  }
}

/** Waits until the condition holds, looking again each turn of the event loop. */
export async function eventually(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve))
}

/** The head part of one message. */
export function headOf(message: string): string {
  return message.slice(0, message.indexOf('\r\n\r\n') + 4)
}

/** An upstream that answers every complete GET-like request with one fixed response. */
export async function answering(response: string): Promise<RawUpstream> {
  const upstream = await RawUpstream.start()
  const answered = new WeakMap<RawConnection, number>()
  upstream.onData = (connection) => {
    const requests = connection.text.split('\r\n\r\n').length - 1
    for (let count = answered.get(connection) ?? 0; count < requests; count++) {
      connection.write(response)
    }
    answered.set(connection, requests)
  }
  return upstream
}

export const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

export interface EngineScene {
  readonly rig: EngineRig
  /** Answers every head with `ok`, until a test says otherwise. */
  readonly upstream: RawUpstream
  /** The engine's. */
  readonly clock: ManualClock
}

/** An engine with the clock of the test, and the upstream for its requests. */
export async function startScene(): Promise<EngineScene> {
  const clock = new ManualClock()
  const rig = await startEngine({ clock })
  const upstream = await RawUpstream.start()
  rig.plane.upstream = upstream.address
  upstream.onData = (connection) => {
    if (!connection.text.endsWith('\r\n\r\n')) return
    connection.text = ''
    connection.write(ok)
  }
  return { rig, upstream, clock }
}
