/** A small HTTP server for operators: readiness, stats, admin requests and the console. */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer } from '../../ground/base/node-http.ts'
import { bindServers } from './bind.ts'

/** Answers one request. If it throws, the response is 500 without details. */
export type Respond = (
  request: IncomingMessage,
  response: ServerResponse,
  url: URL,
) => void | Promise<void>

/** Handlers by path and method. Other methods of a path get 405. */
export type Routes = Readonly<Record<string, Readonly<Record<string, Respond>>>>

export interface SmallServer {
  /** The bound `host:port`. */
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

async function route(routes: Routes, request: IncomingMessage, response: ServerResponse) {
  const url = new URL(request.url ?? '/', 'http://admin')
  const methods = Object.hasOwn(routes, url.pathname) ? routes[url.pathname] : undefined
  if (methods === undefined) return sendText(response, 404, 'not found\n')
  const method = request.method ?? ''
  // HEAD is handled as GET. Node omits the body (RFC 9110 9.3.2).
  const asked = method === 'HEAD' ? 'GET' : method
  const respond = Object.hasOwn(methods, asked) ? methods[asked] : undefined
  if (respond === undefined) {
    response.setHeader('allow', Object.keys(methods).join(', '))
    return sendText(response, 405, 'method not allowed\n')
  }
  await respond(request, response, url)
}

/** Serves the routes on an address, as `listen` does. Bodies of requests are ignored. */
export function serve(
  name: string,
  address: string,
  routes: Routes,
): Promise<SmallServer | undefined> {
  return listen(name, address, (request, response) => {
    request.resume()
    return route(routes, request, response)
  })
}

/**
 * Answers requests on an address, which is bound as by `bindServers`. Returns undefined if the address is `off`.
 * `name` is the name of the server in errors.
 */
export async function listen(
  name: string,
  address: string,
  handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
): Promise<SmallServer | undefined> {
  if (address === 'off') return undefined
  const create = () =>
    createServer((request, response) => {
      handle(request, response).catch(() => {
        if (response.headersSent) response.destroy()
        else sendText(response, 500, 'internal error\n')
      })
    })
  const { address: bound, servers } = await bindServers(name, address, create)
  return {
    address: bound,
    close: async () => {
      await Promise.all(servers.map(closeServer))
    },
  }
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeIdleConnections()
    // An open request must not keep the process alive.
    setTimeout(() => server.closeAllConnections(), 200).unref()
  })
}
