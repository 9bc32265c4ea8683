/** An MCP client for benches: ready-made messages over raw keep-alive connections. */
import { connect, type Socket } from 'node:net'
import { readHttp } from './read-http.ts'

const callParams = {
  name: 'tool-1',
  arguments: { query: 'three lamps and a ladder', limit: 10 },
}

const prefix = 'io.modelcontextprotocol'
const envelope = {
  [`${prefix}/protocolVersion`]: '2026-07-28',
  [`${prefix}/clientInfo`]: { name: 'bench', version: '1' },
  [`${prefix}/clientCapabilities`]: {},
}

/** Errors are shorter. */
const maxErrorLength = 4_096

interface Answer {
  readonly head: string
  readonly body: Buffer
}

export class McpBenchClient {
  readonly #socket: Socket
  readonly #path: string
  #done: ((answer: Answer) => void) | undefined
  #failed: ((error: Error) => void) | undefined
  session: string | undefined

  private constructor(socket: Socket, path: string) {
    this.#socket = socket
    this.#path = path
    readHttp(socket, (head, body) => this.#done?.({ head, body }))
    socket.on('error', (error) => this.#failed?.(error))
    socket.on('close', () => this.#failed?.(new Error('the connection was closed')))
  }

  static open(port: number, path: string): Promise<McpBenchClient> {
    return new Promise((resolve, reject) => {
      const socket = connect({ port, host: '127.0.0.1', noDelay: true })
      socket.once('error', reject)
      socket.once('connect', () => {
        socket.off('error', reject)
        resolve(new McpBenchClient(socket, path))
      })
    })
  }

  /** Returns the bytes of a tool call, which do not change within a session. */
  bytesOf(message: object): Buffer {
    const session = this.session === undefined ? [] : [`mcp-session-id: ${this.session}`]
    return this.#post(message, ['mcp-protocol-version: 2025-11-25', ...session])
  }

  #post(message: object, headers: readonly string[]): Buffer {
    const body = JSON.stringify({ jsonrpc: '2.0', ...message })
    const lines = [
      `POST ${this.#path} HTTP/1.1`,
      'host: bench.example.com',
      'content-type: application/json',
      'accept: application/json, text/event-stream',
      ...headers,
      `content-length: ${Buffer.byteLength(body)}`,
      '\r\n',
    ]
    return Buffer.from(lines.join('\r\n') + body)
  }

  /** Sends and waits for the whole answer, which must be a success. */
  send(bytes: Buffer): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#failed = reject
      this.#done = (answer) => {
        const { head, body } = answer
        const isError = body.length <= maxErrorLength && body.includes('"error"')
        if (/^HTTP\/1\.1 20[02]/.test(head) && !isError) resolve(answer)
        else reject(new Error(`${head.slice(0, 200)}\n${body.toString('latin1', 0, 500)}`))
      }
      this.#socket.write(bytes)
    })
  }

  /** Begins a session. */
  async initialize(): Promise<void> {
    const clientInfo = { name: 'bench', version: '1' }
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo }
    const { head } = await this.send(this.bytesOf({ id: 0, method: 'initialize', params }))
    this.session = /\nmcp-session-id: *(\S+)/i.exec(head)?.[1]
    await this.send(this.bytesOf({ method: 'notifications/initialized' }))
  }

  /** The bytes of a call of ordinary size in revision 2026-07-28, which needs no session. */
  get modernCall(): Buffer {
    const params = { ...callParams, _meta: envelope }
    const headers = [
      'mcp-protocol-version: 2026-07-28',
      'mcp-method: tools/call',
      'mcp-name: tool-1',
    ]
    return this.#post({ id: 1, method: 'tools/call', params }, headers)
  }

  /** The bytes of a call of ordinary size. */
  get call(): Buffer {
    return this.bytesOf({ id: 1, method: 'tools/call', params: callParams })
  }

  /** The bytes of a call of the tool by this name. */
  callOf(name: string, args: object = callParams.arguments): Buffer {
    return this.bytesOf({ id: 1, method: 'tools/call', params: { name, arguments: args } })
  }

  /** The bytes of a list in revision 2026-07-28. */
  get modernList(): Buffer {
    const headers = ['mcp-protocol-version: 2026-07-28', 'mcp-method: tools/list']
    return this.#post({ id: 1, method: 'tools/list', params: { _meta: envelope } }, headers)
  }

  get list(): Buffer {
    return this.bytesOf({ id: 1, method: 'tools/list', params: {} })
  }

  close(): void {
    this.#failed = undefined
    this.#done = undefined
    this.#socket.removeAllListeners('close')
    this.#socket.destroy()
  }
}
