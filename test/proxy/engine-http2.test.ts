import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { TicketKeyring } from '../../src/engines/http/tls/session-tickets.ts'
import type { ChooseTls } from '../../src/engines/http/tls/tls-choice.ts'
import { ListenerContexts } from '../../src/engines/http/tls/tls-context.ts'
import { Authority } from '../support/certificates.ts'
import fc from '../support/fast-check.ts'
import { waitFor } from '../support/wait-for.ts'
import { type EngineRig, RawUpstream, startEngine } from './engine-rig.ts'

interface Answer {
  headers: IncomingHttpHeaders
  body: Buffer
  trailers: IncomingHttpHeaders | undefined
  interims: IncomingHttpHeaders[]
  code: number
}

async function answerOf(stream: ClientHttp2Stream): Promise<Answer> {
  const parts: Buffer[] = []
  const interims: IncomingHttpHeaders[] = []
  let headers: IncomingHttpHeaders = {}
  let trailers: IncomingHttpHeaders | undefined
  stream.on('headers', (fields) => interims.push(fields))
  stream.on('response', (fields) => {
    headers = fields
  })
  stream.on('trailers', (fields) => {
    trailers = fields
  })
  stream.on('data', (part: Buffer) => parts.push(part))
  stream.on('error', () => {})
  await new Promise((resolve) => stream.once('close', resolve))
  return { headers, body: Buffer.concat(parts), trailers, interims, code: stream.rstCode }
}

const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

let authority: Authority
let chooseTls: ChooseTls
let server: Server
let serve: (request: IncomingMessage, response: ServerResponse) => void

beforeAll(async () => {
  authority = new Authority()
  const { certificate, key } = authority.issue(['a.example.com'])
  const pair = { certificate: Buffer.from(certificate), privateKey: Buffer.from(key) }
  const contexts = new ListenerContexts({ key: 'a', pairs: [pair] }, {}, new TicketKeyring())
  const place = { gateway: 'ns/gw', listener: 'a' }
  chooseTls = () => ({ listener: 'a', place, contexts, carries: 'http' })
  server = createServer((request, response) => serve(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
afterAll(() => {
  server.closeAllConnections()
  server.close()
  authority.dispose()
})

let rig: EngineRig
let session: ClientHttp2Session
const cleanups: (() => unknown)[] = []

beforeEach(async () => {
  rig = await startEngine()
  const { port } = server.address() as AddressInfo
  rig.plane.upstream = { host: '127.0.0.1', port, pool: `127.0.0.1:${port}` }
  serve = (request, response) => request.pipe(response)
})
afterEach(async () => {
  session?.destroy()
  for (const cleanup of cleanups.splice(0)) await cleanup()
  await rig.close()
})

const request = (headers: OutgoingHttpHeaders, body?: Buffer | string): Promise<Answer> => {
  const stream = session.request(headers, { endStream: body === undefined })
  if (body !== undefined) stream.end(body)
  return answerOf(stream)
}

const openPlain = async () => {
  session = connect(`http://127.0.0.1:${rig.port}`)
  session.on('error', () => {})
}
const openTls = async () => {
  const port = await rig.engine.listen(0, undefined, chooseTls)
  session = connect(`https://127.0.0.1:${port}`, {
    ca: authority.certificate,
    servername: 'a.example.com',
  })
  session.on('error', () => {})
}

describe.each([
  ['by prior knowledge', openPlain],
  ['by ALPN', openTls],
])('a client of node:http2, connected %s', (_title, open) => {
  beforeEach(() => open())

  it('sends and receives bodies of many sizes concurrently', async () => {
    const sizes = [0, 1, 100, 16_384, 16_385, 65_535, 65_536, 300_000, 2_000_000]
    const bodies = sizes.map((size) => randomBytes(size))
    const answers = await Promise.all(
      bodies.map((body) => request({ ':path': '/echo', ':method': 'POST' }, body)),
    )
    expect(answers.map(({ body }) => digest(body))).toEqual(bodies.map(digest))
    expect(rig.plane.done.every(({ ending }) => ending === 'complete')).toBe(true)
  })

  it('sends hundreds of requests on one connection', async () => {
    serve = (request, response) => response.end(request.url)
    const answers = await Promise.all(
      Array.from({ length: 500 }, (_, at) => request({ ':path': `/${at}` })),
    )
    expect(answers.map(({ body }) => body.toString())).toEqual(
      Array.from({ length: 500 }, (_, at) => `/${at}`),
    )
    expect(rig.engine.counters).toMatchObject({ connectionsTotal: 1, http2Connections: 1 })
    await waitFor('the streams to end', () => rig.engine.counters.http2Streams === 0)
  })

  it('receives responses without bodies', async () => {
    serve = (request, response) => {
      if (request.url === '/204') response.writeHead(204).end()
      else if (request.url === '/304') response.writeHead(304, { etag: '"a"' }).end()
      else response.writeHead(200, { 'content-length': 5 }).end('hello')
    }
    const [none, same, head] = await Promise.all([
      request({ ':path': '/204' }),
      request({ ':path': '/304' }),
      request({ ':path': '/head', ':method': 'HEAD' }),
    ])
    expect([none.headers[':status'], same.headers[':status'], String(same.headers.etag)]).toEqual([
      204,
      304,
      '"a"',
    ])
    expect([head.headers['content-length'], head.body.length]).toEqual(['5', 0])
  })

  it('sends and receives trailers', async () => {
    serve = (request, response) => {
      request.resume()
      request.on('end', () => {
        response.writeHead(200, { trailer: 'x-sum' })
        response.write('body')
        response.addTrailers({ 'X-Sum': `got ${request.trailers['x-up']}` })
        response.end()
      })
    }
    const stream = session.request({ ':path': '/', ':method': 'POST', te: 'trailers' }, {
      waitForTrailers: true,
    } as object)
    stream.on('wantTrailers', () => stream.sendTrailers({ 'x-up': '7' }))
    stream.end('data')
    const { trailers, body } = await answerOf(stream)
    expect(body.toString()).toBe('body')
    expect(trailers).toMatchObject({ 'x-sum': 'got 7' })
  })

  it('waits for 100 Continue, and receives early hints', async () => {
    serve = (request, response) => {
      response.writeEarlyHints({ link: '</a.css>; rel=preload' })
      request.pipe(response)
    }
    const stream = session.request({ ':path': '/', ':method': 'POST', expect: '100-continue' })
    stream.on('continue', () => stream.end('late'))
    const { body, interims } = await answerOf(stream)
    expect(body.toString()).toBe('late')
    expect(interims.find(({ link }) => link !== undefined)?.link).toBe('</a.css>; rel=preload')
  })

  it('cancels the request at the upstream if it resets its stream', async () => {
    let isGone = false
    serve = (request, response) => {
      response.on('close', () => {
        isGone = true
      })
      if (request.url === '/held') response.write('begin')
      else response.end()
    }
    const stream = session.request({ ':path': '/held' })
    await once(stream, 'response')
    stream.close(constants.NGHTTP2_CANCEL)
    await waitFor('the upstream to notice', () => isGone)
    expect(rig.plane.done).toMatchObject([{ ending: 'client-closed', error: 'client_closed' }])
    expect((await request({ ':path': '/next' })).headers[':status']).toBe(200)
  })

  it('gets a stream error for a truncated response, while other requests succeed', async () => {
    serve = (request, response) => {
      if (request.url !== '/cut') response.end('whole')
      else response.write('begin', () => response.destroy())
    }
    const [cut, whole] = await Promise.all([
      request({ ':path': '/cut' }),
      request({ ':path': '/' }),
    ])
    expect(cut.code).toBe(constants.NGHTTP2_INTERNAL_ERROR)
    expect(whole.body.toString()).toBe('whole')
  })

  it('gets the answer to a request that it has not finished, and NO_ERROR to stop sending', async () => {
    rig.plane.request = (exchange) => exchange.respond(403, [], 'no')
    const stream = session.request({ ':path': '/', ':method': 'POST' })
    stream.write('some')
    const { headers, body, code } = await answerOf(stream)
    expect([headers[':status'], body.toString(), code]).toEqual([403, 'no', 0])
  })

  it('applies backpressure to the upstream while it does not read', async () => {
    let written = 0
    serve = (request, response) => {
      if (request.url === '/other') {
        response.end()
        return
      }
      const piece = Buffer.alloc(64 * 1024)
      const more = () => {
        while (written < 64 * 1024 * 1024) {
          written += piece.length
          if (!response.write(piece)) return
        }
        response.end()
      }
      response.on('drain', more)
      more()
    }
    const stream = session.request({ ':path': '/big' })
    stream.pause()
    await once(stream, 'response')
    const other = await request({ ':path': '/other' })
    expect(other.headers[':status']).toBe(200)
    const before = written
    expect(before).toBeLessThan(32 * 1024 * 1024)
    stream.close()
  })

  it('gets GOAWAY when the gateway drains, and still finishes its open request', async () => {
    let finish: (() => void) | undefined
    serve = (_request, response) => {
      finish = () => response.end('done')
    }
    const pending = request({ ':path': '/slow' })
    await waitFor('the request', () => finish !== undefined)
    const goaway = once(session, 'goaway')
    const drained = rig.engine.drain(0, 10_000)
    expect((await goaway)[0]).toBe(0)
    finish?.()
    expect((await pending).body.toString()).toBe('done')
    await drained
    await waitFor('the end', () => session.closed || session.destroyed)
  })

  it('opens a WebSocket tunnel by extended CONNECT', async () => {
    const upstream = await RawUpstream.start()
    cleanups.push(() => upstream.close())
    rig.plane.upstream = upstream.address
    upstream.onData = (connection) => {
      if (connection.text.endsWith('\r\n\r\n')) {
        connection.write(
          'HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\nhello',
        )
      } else if (connection.text.endsWith('ping')) connection.write('pong')
    }
    if (session.remoteSettings.enableConnectProtocol !== true) await once(session, 'remoteSettings')
    expect(session.remoteSettings.enableConnectProtocol).toBe(true)
    const stream = session.request({
      ':method': 'CONNECT',
      ':protocol': 'websocket',
      ':path': '/chat',
      ':scheme': 'http',
      ':authority': 'x.example',
      'sec-websocket-version': '13',
    })
    let text = ''
    stream.on('data', (part: Buffer) => {
      text += part
    })
    const [headers] = (await once(stream, 'response')) as [IncomingHttpHeaders]
    expect([headers[':status'], headers['sec-websocket-accept']]).toEqual([200, undefined])
    stream.write('ping')
    await waitFor('the answer', () => text === 'hellopong')
    expect(upstream.connections[0]?.text).toMatch(
      /^GET \/chat HTTP\/1\.1\r\nhost: x\.example\r\nsec-websocket-version: 13\r\nsec-websocket-key: [\w+/=]{24}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nping$/,
    )
    upstream.connections[0]?.socket.end()
    await once(stream, 'end')
    stream.end()
    await waitFor('the end', () => rig.plane.done.length === 1)
  })
})

describe('HPACK, tested against nghttp2', () => {
  const word = fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/)
  const names = fc.oneof(
    word.map((name) => `x-${name}`),
    fc.constantFrom('accept', 'user-agent', 'content-type', 'authorization', 'set-cookie'),
  )
  const value = fc.oneof(fc.stringMatching(/^[!-~]([ -~]{0,80}[!-~])?$/), fc.constant('same'))

  it('transfers random fields unchanged in both directions', async () => {
    await openPlain()
    const seen: [string, string][][] = []
    rig.plane.request = (exchange) => {
      const fields = [...exchange.request.headers.entries()].map(
        ([name, value]): [string, string] => [name, value],
      )
      seen.push(fields)
      exchange.respond(
        200,
        fields
          .map(([name, value]): [string, string] => [`r-${name}`, value])
          .concat([['content-type', 'a/b']]),
        '',
      )
    }
    const lists = fc.sample(
      fc.uniqueArray(fc.tuple(names, value), { selector: ([name]) => name, maxLength: 12 }),
      { numRuns: 300, seed: 7 },
    )
    for (const [at, list] of lists.entries()) {
      const sent = list.filter(([name]) => name !== 'set-cookie')
      const { headers } = await request({ ':path': '/', ...Object.fromEntries(sent) })
      expect(seen[at]?.toSorted()).toEqual(sent.toSorted())
      expect(headers).toMatchObject(
        Object.fromEntries(sent.map(([name, value]) => [`r-${name}`, value])),
      )
    }
  })
})
