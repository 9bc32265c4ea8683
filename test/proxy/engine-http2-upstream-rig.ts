import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import {
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach } from 'vitest'
import { type EngineRig, startEngine } from './engine-rig.ts'

export let rig: EngineRig
export let server: Http2Server
/** What the upstream does with a stream; each test may change it. */
export const given: { serve: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void } = {
  serve: () => {},
}
export const sessions = new Set<ServerHttp2Session>()

beforeEach(async () => {
  rig = await startEngine()
  server = createServer({ settings: { maxConcurrentStreams: 200 }, maxSessionMemory: 1_000 })
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {})
    given.serve(stream, headers)
  })
  server.on('session', (session) => {
    sessions.add(session)
    session.on('error', () => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  rig.plane.upstream = { host: '127.0.0.1', port, pool: `h2:${port}`, isHttp2: true }
  given.serve = (stream) => {
    stream.respond({ ':status': 200 })
    stream.pipe(stream)
  }
})
afterEach(async () => {
  await rig.close()
  for (const session of sessions) session.destroy()
  sessions.clear()
  server.close()
})

interface Got {
  status: number
  headers: IncomingMessage['headers']
  body: Buffer
  trailers: IncomingMessage['trailers']
}

/** A request of HTTP/1.1 through the engine. */
export function ask(
  options: { path?: string; method?: string; headers?: Record<string, string> },
  body?: Buffer | string,
): Promise<Got> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ port: rig.port, host: '127.0.0.1', agent: false, ...options })
    request.on('error', reject)
    request.on('response', (response) => {
      const parts: Buffer[] = []
      response.on('data', (part: Buffer) => parts.push(part))
      response.on('error', reject)
      response.on('end', () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(parts),
          trailers: response.trailers,
        }),
      )
    })
    request.end(body)
  })
}
