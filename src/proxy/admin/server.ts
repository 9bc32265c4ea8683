/** What the three small servers share: addresses, routes, and an orderly end. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createServer } from '../../base/node-http.ts'
import { cannotListen } from '../../errors/listening.ts'

/** Answers one request; what it throws becomes a 500 without details. */
export type Respond = (
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
) => void | Promise<void>

/** Path -> method -> answer. A known path with another method is 405. */
export type Routes = Readonly<Record<string, Readonly<Record<string, Respond>>>>

export interface SmallServer {
  /** `host:port` that was bound. */
  readonly address: string
  close(): Promise<void>
}

export function sendText(
  response: ServerResponse,
  status: number,
  body: string,
  type = 'text/plain; charset=utf-8',
): void {
  response.writeHead(status, { 'content-type': type }).end(body)
}

/** Host and port of `host:port`, `[v6]:port` or `:port`; an empty host is every address. */
function splitAddress(address: string): { host: string | undefined; port: number } {
  const colon = address.lastIndexOf(':')
  const host = address.slice(0, colon).replace(/^\[|\]$/g, '')
  return { host: host === '' ? undefined : host, port: Number(address.slice(colon + 1)) }
}

async function route(routes: Routes, request: IncomingMessage, response: ServerResponse) {
  const url = new URL(request.url ?? '/', 'http://admin')
  const methods = Object.hasOwn(routes, url.pathname) ? routes[url.pathname] : undefined
  if (methods === undefined) return sendText(response, 404, 'not found\n')
  const method = request.method ?? ''
  // HEAD is GET without the body (RFC 9110, 9.3.2), which Node leaves out by itself.
  const asked = method === 'HEAD' ? 'GET' : method
  const respond = Object.hasOwn(methods, asked) ? methods[asked] : undefined
  if (respond === undefined) {
    response.setHeader('allow', Object.keys(methods).join(', '))
    return sendText(response, 405, 'method not allowed\n')
  }
  await respond(request, response, url)
}

/**
 * Serves the routes on an address; undefined where the address is `off`. Rejects with `port_in_use`
 * or `address_unusable` where it cannot be bound; `name` says which of the servers that is.
 */
export async function serve(
  name: string,
  address: string,
  routes: Routes,
): Promise<SmallServer | undefined> {
  if (address === 'off') return undefined
  const server = createServer((request, response) => {
    request.resume()
    route(routes, request, response).catch(() => {
      if (response.headersSent) response.destroy()
      else sendText(response, 500, 'internal error\n')
    })
  })
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(cannotListen(name, address, error)))
    server.listen(splitAddress(address), () => resolve())
  })
  const { address: host, port, family } = server.address() as AddressInfo
  return {
    address: family === 'IPv6' ? `[${host}]:${port}` : `${host}:${port}`,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeIdleConnections()
        // A client that keeps its request open must not keep the process.
        setTimeout(() => server.closeAllConnections(), 200).unref()
      }),
  }
}
