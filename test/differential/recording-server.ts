/** The server behind a proxy: it reads strictly, keeps what it received, and answers as the case says. */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { type ReadMessage, readRequest } from '../protocol/strict-reader.ts'
import { type Case, ok, type Step } from './case.ts'

/** The path of the request that asks whether a connection is still usable. */
export const probePath = '/probe'

const probeAnswer = 'HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nprobe'

interface Connection {
  text: string
  /** Where the next request begins. */
  from: number
  /** Whether the steps of the head of that request were taken. */
  hasHead: boolean
}

export class RecordingServer {
  /** Whole requests, in the order in which they came. */
  readonly requests: ReadMessage[] = []
  /** Why a request could not be read; the request and its reason. */
  readonly malformed: string[] = []
  readonly #server: Server
  readonly #sockets = new Map<Socket, Connection>()
  #steps: readonly Step[] = []

  private constructor() {
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      const connection = { text: '', from: 0, hasHead: false }
      this.#sockets.set(socket, connection)
      socket.on('error', () => {})
      socket.on('close', () => this.#sockets.delete(socket))
      socket.on('end', () => socket.end())
      socket.on('data', (bytes: Buffer) => {
        connection.text += bytes.toString('latin1')
        this.#read(socket, connection)
      })
    })
  }

  static async start(): Promise<RecordingServer> {
    const server = new RecordingServer()
    await once(server.#server.listen(0, '127.0.0.1'), 'listening')
    return server
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  /** Forgets the last case. Connections with a part of a request are closed, the others stay open. */
  prepare({ answer = ok() }: Case): void {
    for (const [socket, { text, from }] of this.#sockets) {
      if (text.length > from) socket.destroy()
    }
    this.requests.length = 0
    this.malformed.length = 0
    this.#steps = typeof answer === 'string' ? [{ on: 'request', write: answer }] : answer
  }

  close(): void {
    for (const socket of this.#sockets.keys()) socket.destroy()
    this.#server.close()
  }

  #read(socket: Socket, connection: Connection): void {
    while (connection.text.length > connection.from && !socket.destroyed) {
      const { text, from, hasHead } = connection
      if (!hasHead && text.includes('\r\n\r\n', from)) {
        connection.hasHead = true
        if (!text.startsWith(`GET ${probePath} `, from)) this.#take('head', socket)
      }
      let request: ReadMessage | undefined
      try {
        request = readRequest(text, from)
      } catch (error) {
        this.malformed.push((error as Error).message)
        socket.destroy()
        return
      }
      if (request?.end === undefined) return
      connection.from = request.end
      connection.hasHead = false
      if (request.startLine.startsWith(`GET ${probePath} `)) socket.write(probeAnswer)
      else {
        this.requests.push(request)
        this.#take('request', socket)
      }
    }
  }

  #take(on: Step['on'], socket: Socket): void {
    for (const step of this.#steps) {
      if (step.on !== on) continue
      if (step.write !== '') socket.write(step.write, 'latin1')
      if (step.ending === 'end') socket.end()
      else if (step.ending === 'reset') socket.resetAndDestroy()
    }
  }
}
