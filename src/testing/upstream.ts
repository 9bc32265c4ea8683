/** Real upstream servers for tests: each answers with what it received. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface ReceivedRequest {
  readonly upstream: string
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: string
}

export interface Upstream {
  readonly port: number
  /** Everything received so far, in order. */
  readonly received: readonly ReceivedRequest[]
  close(): Promise<void>
}

export type Answer = (received: ReceivedRequest, response: ServerResponse) => void

const echo: Answer = (received, response) => {
  response.setHeader('content-type', 'application/json')
  response.end(JSON.stringify(received))
}

/** Starts an upstream on a free loopback port; by default it echoes the request as JSON. */
export async function startUpstream(name = 'upstream', answer: Answer = echo): Promise<Upstream> {
  const received: ReceivedRequest[] = []
  const server = createServer((request, response) => {
    void read(name, request).then((whole) => {
      received.push(whole)
      answer(whole, response)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return { port, received, close: () => close(server) }
}

async function read(upstream: string, request: IncomingMessage): Promise<ReceivedRequest> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  const { method = '', url = '', headers } = request
  return { upstream, method, path: url, headers, body: Buffer.concat(chunks).toString('utf8') }
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}
