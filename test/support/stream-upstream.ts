/** Servers without HTTP for tests: TCP, TLS and UDP, each with the name that it answers with. */
import { createSocket, type Socket as Datagrams } from 'node:dgram'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer } from 'node:tls'
import type { Certificate } from './certificates.ts'

export interface StreamUpstream {
  readonly port: number
  /** Connections that are open, oldest first. */
  readonly sockets: readonly Socket[]
  close(): Promise<void>
}

type Serve = (socket: Socket) => void

/** Sends its name at once, then echoes; ends when the client ends. */
export const echo =
  (name: string): Serve =>
  (socket) => {
    socket.write(`${name}:`)
    socket.pipe(socket)
  }

async function listen(server: Server, serve: Serve, event: string): Promise<StreamUpstream> {
  const sockets: Socket[] = []
  server.on(event, (socket: Socket) => {
    sockets.push(socket)
    socket.on('error', () => {})
    serve(socket)
  })
  server.on('tlsClientError', () => {})
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    sockets,
    close: async () => {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export function startTcpUpstream(serve: Serve): Promise<StreamUpstream> {
  return listen(createServer({ allowHalfOpen: true }), serve, 'connection')
}

export function startTlsUpstream(
  { certificate, key }: Certificate,
  serve: Serve,
): Promise<StreamUpstream> {
  const server = createTlsServer({ cert: certificate, key, allowHalfOpen: true })
  return listen(server, serve, 'secureConnection')
}

export interface UdpUpstream {
  readonly port: number
  /** Addresses that datagrams came from, `address:port`. */
  readonly clients: Set<string>
  close(): void
}

/** Answers each datagram with its name and the datagram. */
export async function startUdpUpstream(name: string): Promise<UdpUpstream> {
  const socket = createSocket('udp4')
  const clients = new Set<string>()
  socket.on('message', (message, { address, port }) => {
    clients.add(`${address}:${port}`)
    socket.send(`${name}:${message.toString()}`, port, address)
  })
  await once(socket.bind(0, '127.0.0.1'), 'listening')
  return { port: socket.address().port, clients, close: () => socket.close() }
}

/** Connects, sends, ends its side, and reads to the end; rejects if the connection is reset. */
export function converse(port: number, text: string | Buffer): Promise<string> {
  return readAll(connect({ port, host: '127.0.0.1', allowHalfOpen: true }), text)
}

export function readAll(socket: Socket, text: string | Buffer): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.once('error', reject)
    socket.once('end', () => resolve(Buffer.concat(chunks).toString()))
    socket.end(text)
  })
}

/** A UDP client that records the answers. */
export class UdpClient {
  readonly #socket: Datagrams = createSocket('udp4')
  readonly answers: string[] = []

  /** `from`: loopback address of the client. */
  constructor(port: number, from = '127.0.0.1') {
    this.#socket.on('message', (message) => this.answers.push(message.toString()))
    this.#socket.on('error', () => {})
    this.#socket.bind({ address: from }, () => this.#socket.connect(port, '127.0.0.1'))
  }

  /** The client's own port, once it has sent something. */
  get port(): number {
    return this.#socket.address().port
  }

  async send(text: string): Promise<void> {
    if (!this.#isConnected()) await once(this.#socket, 'connect')
    this.#socket.send(text)
  }

  #isConnected(): boolean {
    try {
      return this.#socket.remoteAddress() !== undefined
    } catch {
      return false
    }
  }

  close(): void {
    this.#socket.close()
  }
}
