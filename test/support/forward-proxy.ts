/** A proxy between a gateway and backends: HTTP CONNECT, over TLS if it has a certificate, and SOCKS 5. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { createServer as createSecureServer } from 'node:tls'
import type { Certificate } from './certificates.ts'

interface ProxyOptions {
  readonly credentials?: { readonly username: string; readonly password: string }
  readonly tls?: Certificate
  /** Where names lead; they are not resolved. */
  readonly names?: Readonly<Record<string, string>>
  /** Answers CONNECT with this instead of a tunnel. */
  readonly answer?: string
}

export class ForwardProxy {
  /** `host:port` of the destinations that were asked for, in order. */
  readonly asked: string[] = []
  /** Heads of CONNECT requests. */
  readonly heads: string[] = []
  readonly #options: ProxyOptions
  readonly #server: Server
  readonly #sockets = new Set<Socket>()

  constructor(kind: 'http' | 'socks5', options: ProxyOptions = {}) {
    this.#options = options
    const serve = (socket: Socket) => {
      this.#sockets.add(socket)
      socket.on('error', () => {}).once('close', () => this.#sockets.delete(socket))
      void (kind === 'http' ? this.#http(socket) : this.#socks(socket))
    }
    const { tls } = options
    this.#server =
      tls === undefined
        ? createServer(serve)
        : createSecureServer({ cert: tls.certificate, key: tls.key }, serve)
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  async start(): Promise<this> {
    await once(this.#server.listen(0, '127.0.0.1'), 'listening')
    return this
  }

  close(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  async #http(socket: Socket): Promise<void> {
    const head = await readUntilEnd(socket)
    this.heads.push(head)
    const { answer, credentials } = this.#options
    const wanted =
      credentials &&
      `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString('base64')}`
    if (answer !== undefined) socket.end(answer)
    else if (wanted !== undefined && !head.includes(`proxy-authorization: ${wanted}\r\n`)) {
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n')
    } else {
      const [, host = '', port = ''] =
        /^CONNECT \[?([^\s\]]+)\]?:(\d+) HTTP\/1\.1\r\n/.exec(head) ?? []
      const upstream = await this.#dial(host, Number(port))
      // Interim responses and framing fields must not confuse the client.
      socket.write('HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 Fine\r\ncontent-length: 7\r\n\r\n')
      join(socket, upstream)
    }
  }

  async #socks(socket: Socket): Promise<void> {
    const read = reader(socket)
    const [, count = 0] = await read(2)
    const methods = await read(count)
    const { credentials } = this.#options
    socket.write(Buffer.from([5, credentials === undefined ? 0 : methods.includes(2) ? 2 : 255]))
    if (credentials !== undefined) {
      const username = await read((await read(2))[1] ?? 0)
      const password = await read((await read(1))[0] ?? 0)
      const isRight =
        `${username}` === credentials.username && `${password}` === credentials.password
      socket.write(Buffer.from([1, isRight ? 0 : 1]))
      if (!isRight) return
    }
    const type = (await read(4))[3]
    const host =
      type === 1
        ? [...(await read(4))].join('.')
        : type === 4
          ? `[${(await read(16)).toString('hex')}]`
          : `${await read((await read(1))[0] ?? 0)}`
    const port = (await read(2)).readUInt16BE(0)
    const upstream = await this.#dial(host, port)
    // The reply comes in two pieces, with a name as the bound address.
    socket.write(Buffer.from([5, 0, 0, 3, 2]))
    await new Promise((resolve) => setImmediate(resolve))
    socket.write(Buffer.from([0x78, 0x78, 0, 0]))
    join(socket, upstream, read.rest())
  }

  async #dial(host: string, port: number): Promise<Socket> {
    this.asked.push(`${host}:${port}`)
    const upstream = connect({
      host: this.#options.names?.[host] ?? host,
      port,
      allowHalfOpen: true,
    })
    upstream.on('error', () => {})
    await once(upstream, 'connect')
    return upstream
  }
}

function join(socket: Socket, upstream: Socket, first = Buffer.alloc(0)): void {
  upstream.write(first)
  socket.pipe(upstream)
  upstream.pipe(socket)
  socket.once('close', () => upstream.destroy())
  upstream.once('close', () => socket.destroy())
}

async function readUntilEnd(socket: Socket): Promise<string> {
  let head = ''
  while (!head.endsWith('\r\n\r\n')) {
    const [chunk] = await once(socket, 'data')
    head += chunk.toString('latin1')
  }
  socket.pause()
  return head
}

/** Returns a function that reads a number of bytes. */
function reader(socket: Socket) {
  let got = Buffer.alloc(0)
  const read = async (size: number): Promise<Buffer> => {
    while (got.length < size) {
      const [chunk] = await once(socket, 'data')
      got = Buffer.concat([got, chunk])
    }
    const taken = got.subarray(0, size)
    got = got.subarray(size)
    return taken
  }
  return Object.assign(read, { rest: () => got })
}
