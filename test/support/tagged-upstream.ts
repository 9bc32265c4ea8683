/**
 * An upstream whose responses carry the tag of their request in every part: head, body, trailers and
 * interim responses. Speaks HTTP/1.1 and HTTP/2, by prior knowledge or over TLS by ALPN.
 */
import { createServer as createHttp1, type IncomingMessage, type ServerResponse } from 'node:http'
import {
  createServer as createHttp2,
  createSecureServer,
  type Http2ServerRequest,
} from 'node:http2'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { Certificate } from './certificates.ts'

type AnyRequest = IncomingMessage | Http2ServerRequest
/** The members that the responses of both versions share. */
type AnyResponse = Pick<
  ServerResponse,
  'setHeader' | 'addTrailers' | 'write' | 'end' | 'writeHead'
> & {
  statusCode: number
}

export interface TaggedUpstream {
  readonly port: number
  /** Requests whose parts carried different tags, or that must not arrive; one line each. */
  readonly mixed: readonly string[]
  /** Number of requests, without upgrades. */
  readonly count: number
  close(): void
}

/** How a response looks; clients choose it by the field `x-shape`. */
export const shapes = [
  'small',
  'large',
  'chunked',
  'trailers',
  'empty',
  'hints',
  'early',
  'refused',
] as const
export type Shape = (typeof shapes)[number]

const tagPattern = /tag-\d+-/g

/** A field of requests that the gateway must refuse. */
export const forbiddenField = 'x-must-not-arrive'

/** The different tags in a text. */
export function tagsIn(text: string): string[] {
  return [...new Set(text.match(tagPattern) ?? [])]
}

/** A body that consists of its tag alone; its length depends on the tag. */
export function taggedBody(tag: string, shape: Shape): string {
  const number = Number(/\d+/.exec(tag)?.[0])
  if (shape === 'empty') return ''
  return tag.repeat(shape === 'large' ? 2_000 + (number % 7) * 900 : 1 + (number % 40))
}

/** The fields that carry the tag; the length of the head depends on it. */
export function taggedFields(tag: string): Record<string, string> {
  const number = Number(/\d+/.exec(tag)?.[0])
  return {
    'x-tag': tag,
    'set-cookie': `session=${tag}`,
    [`x-pad-${'p'.repeat(number % 13)}`]: tag.repeat(1 + (number % 23)),
  }
}

export async function startTaggedUpstream(certificate?: Certificate): Promise<TaggedUpstream> {
  const mixed: string[] = []
  let count = 0
  const answer = (request: AnyRequest, response: AnyResponse) => {
    count++
    respond(request, response, mixed).catch(() => request.socket.destroy())
  }
  const sockets = new Set<Socket>()
  const server = certificate === undefined ? plainServer(answer) : secureServer(certificate, answer)
  server.on(certificate === undefined ? 'connection' : 'secureConnection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    port: (server.address() as AddressInfo).port,
    mixed,
    get count() {
      return count
    },
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

function plainServer(answer: (request: AnyRequest, response: AnyResponse) => void): Server {
  // Idle connections stay open, since a request that meets a close may rightly fail.
  const http1 = createHttp1({ keepAliveTimeout: 0 }, answer).on('upgrade', upgrade)
  const http2 = createHttp2(answer as never)
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

function secureServer(
  { certificate, key }: Certificate,
  answer: (request: AnyRequest, response: AnyResponse) => void,
): Server {
  const server = createSecureServer(
    { cert: certificate, key, allowHTTP1: true, keepAliveTimeout: 0 } as object,
    answer as never,
  )
  return server.on('upgrade', upgrade as never) as never
}

/** Changes the protocol; then sends the tag, followed by every byte that it gets. */
function upgrade({ headers }: IncomingMessage, socket: Duplex, first: Buffer): void {
  const tag = String(headers['x-tag'])
  const fields = Object.entries({ connection: 'upgrade', upgrade: 'tags', ...taggedFields(tag) })
  const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`)
  socket.on('error', () => {})
  socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('')}\r\n${tag}`)
  socket.write(first)
  socket.pipe(socket)
}

async function respond(request: AnyRequest, response: AnyResponse, mixed: string[]): Promise<void> {
  const tag = String(request.headers['x-tag'])
  const shape = String(request.headers['x-shape']) as Shape
  const isEarly = shape === 'early'
  if (isEarly) begin(response, tag, shape)
  let body = ''
  for await (const chunk of request) body += String(chunk)
  const { headers, trailers, url } = request
  const received = tagsIn(`${JSON.stringify({ headers, trailers, url })}${body}`)
  if (headers[forbiddenField] !== undefined) mixed.push(`${tag}: arrives, but must be refused`)
  if (headers.trailer === 'x-sent' && trailers['x-sent'] !== tag) mixed.push(`${tag}: no trailer`)
  if (received.length !== 1 || received[0] !== tag) mixed.push(`${tag}: ${received.join(' ')}`)
  if (!isEarly) begin(response, tag, shape)
  finish(request, response, tag, shape)
}

function begin(response: AnyResponse, tag: string, shape: Shape): void {
  if (shape === 'hints') hint(response, tag)
  response.statusCode = shape === 'refused' ? 409 : shape === 'empty' ? 204 : 200
  for (const [name, value] of Object.entries(taggedFields(tag))) response.setHeader(name, value)
  if (shape === 'early') response.write(tag)
}

function hint(response: AnyResponse, tag: string): void {
  const { writeEarlyHints } = response as unknown as { writeEarlyHints(fields: object): void }
  writeEarlyHints.call(response, { link: `</${tag}>; rel=preload`, 'x-tag': tag })
}

function finish(request: AnyRequest, response: AnyResponse, tag: string, shape: Shape): void {
  const body = taggedBody(tag, shape)
  if (shape === 'trailers' && request.method !== 'HEAD') {
    response.setHeader('trailer', 'x-end')
    response.write(body)
    response.addTrailers({ 'x-end': tag })
    response.end()
  } else if (shape === 'chunked') {
    response.write(tag)
    setImmediate(() => response.end(body.slice(tag.length)))
  } else if (shape === 'early') response.end(body.slice(tag.length))
  else {
    if (shape !== 'empty' && request.method !== 'HEAD') {
      response.setHeader('content-length', String(body.length))
    }
    response.end(body)
  }
}
