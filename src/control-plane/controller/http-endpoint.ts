/** A small HTTP server for probes and scrapes: one function gives the answer for a path. */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createServer } from '../../base/node-http.ts'
import { cannotListen } from '../../errors/listening.ts'

export interface EndpointAnswer {
  readonly status: number
  readonly text: string
  readonly contentType?: string
}

export interface Endpoint {
  /** What was bound, `host:port`. */
  readonly address: string
  close(): Promise<void>
}

/**
 * `host:port` or `:port`. Rejects with `port_in_use` or `address_unusable` where it cannot be bound;
 * `name` says which of the servers that is.
 */
export async function serveEndpoint(
  name: string,
  address: string,
  answer: (path: string) => EndpointAnswer | undefined,
): Promise<Endpoint> {
  const colon = address.lastIndexOf(':')
  const host = address.slice(0, colon).replace(/^\[|\]$/g, '') || '0.0.0.0'
  const server = createServer((request, response) => {
    const path = new URL(request.url ?? '/', 'http://probe').pathname
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    const found = isRead ? answer(path) : undefined
    const { status, text, contentType } = found ?? { status: 404, text: 'not found\n' }
    response.writeHead(status, {
      'content-type': contentType ?? 'text/plain; charset=utf-8',
      'content-length': Buffer.byteLength(text),
    })
    response.end(request.method === 'HEAD' ? undefined : text)
  })
  await listen(server, host, Number(address.slice(colon + 1))).catch((error) => {
    throw cannotListen(name, address, error)
  })
  const { port } = server.address() as AddressInfo
  return {
    address: `${host.includes(':') ? `[${host}]` : host}:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
}
