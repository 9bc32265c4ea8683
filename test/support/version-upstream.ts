/** An upstream that speaks both versions of HTTP and says by which one it was reached. */
import { createServer as createHttp1, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createHttp2, createSecureServer } from 'node:http2'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import type { Certificate } from './certificates.ts'

export interface VersionUpstream {
  readonly port: number
  close(): void
}

/** The little that requests and responses of both versions have in common. */
interface AnyRequest {
  readonly httpVersion: string
}
interface AnyResponse {
  end(text: string): unknown
}

const answer = (request: AnyRequest, response: AnyResponse) => {
  response.end(request.httpVersion)
}

/** HTTP/2 by prior knowledge on one port; by ALPN with a certificate. */
export async function startVersionUpstream(certificate?: Certificate): Promise<VersionUpstream> {
  const sockets = new Set<Socket>()
  const server =
    certificate === undefined
      ? plainServer()
      : createSecureServer(
          { cert: certificate.certificate, key: certificate.key, allowHTTP1: true },
          answer,
        )
  server.on(certificate === undefined ? 'connection' : 'secureConnection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

function plainServer() {
  const http1 = createHttp1((request: IncomingMessage, response: ServerResponse) =>
    answer(request, response),
  )
  const http2 = createHttp2(answer)
  return createServer((socket) => {
    socket.once('readable', () => {
      const first = socket.read() as Buffer | null
      if (first === null) return
      socket.unshift(first)
      const isHttp2 = first.toString('latin1').startsWith('PRI ')
      ;(isHttp2 ? http2 : http1).emit('connection', socket)
    })
  })
}
