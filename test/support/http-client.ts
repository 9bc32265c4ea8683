/** A plain HTTP/1.1 client for tests: any Host, any header, one connection a request. */
import { Agent, type ClientRequest, type IncomingHttpHeaders, request } from 'node:http'

export interface TestRequest {
  readonly method?: string
  readonly path?: string
  readonly host?: string
  readonly headers?: Readonly<Record<string, string | string[]>>
  readonly body?: string | Uint8Array
  readonly agent?: Agent
  /** Default: 127.0.0.1. */
  readonly address?: string
}

export interface TestResponse {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** Sends one request to a port of the loopback address; rejects when the connection breaks. */
export function send(port: number, options: TestRequest = {}): Promise<TestResponse> {
  const { method = 'GET', path = '/', host, headers, body, agent } = options
  const { address = '127.0.0.1' } = options
  const outgoing = request({
    host: address,
    port,
    method,
    path,
    agent: agent ?? false,
    headers: { ...(host !== undefined && { host }), ...headers },
  })
  outgoing.end(body)
  return answerOf(outgoing)
}

/** The whole answer to a request that is on its way. */
export function answerOf(outgoing: ClientRequest): Promise<TestResponse> {
  return new Promise((resolve, reject) => {
    outgoing.once('error', reject)
    outgoing.once('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.once('error', reject)
      response.once('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks).toString('utf8'),
        }),
      )
    })
  })
}

/** Keeps connections, as a browser or a client library does. */
export function keepAliveAgent(maxSockets: number): Agent {
  return new Agent({ keepAlive: true, maxSockets })
}
