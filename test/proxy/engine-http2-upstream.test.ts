import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import {
  connect,
  constants,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
  sensitiveHeaders,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  clientPreface,
  frameTypes,
  goawayFrame,
  pingFrame,
  rstStreamFrame,
  settingsFrame,
} from '../../src/engine/http2/frames.ts'
import { waitFor } from '../support/wait-for.ts'
import { type EngineRig, RawConnection, RawUpstream, startEngine } from './engine-rig.ts'
import { data, endHeaders, endStream, type Field, FrameClient, headers } from './frame-client.ts'

const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

let rig: EngineRig
let server: Http2Server
let serve: (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => void
const sessions = new Set<ServerHttp2Session>()

beforeEach(async () => {
  rig = await startEngine()
  server = createServer({ settings: { maxConcurrentStreams: 200 } })
  server.on('stream', (stream, headers) => {
    stream.on('error', () => {})
    serve(stream, headers)
  })
  server.on('session', (session) => {
    sessions.add(session)
    session.on('error', () => {})
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  rig.plane.upstream = { host: '127.0.0.1', port, pool: `h2:${port}`, isHttp2: true }
  serve = (stream) => {
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
function ask(
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

describe('an upstream of node:http2', () => {
  it.each([
    ['POST', 503, 2],
    ['PUT', 200, 3],
  ])(
    'that closes under a %s: the client gets %i, after %i requests in all',
    async (method, status, times) => {
      let seen = 0
      serve = (stream) => {
        seen++
        if (seen === 2) stream.session?.destroy()
        else stream.respond({ ':status': 200 }, { endStream: true })
      }
      expect((await ask({ method }, 'body')).status).toBe(200)
      expect([(await ask({ method }, 'body')).status, seen]).toEqual([status, times])
    },
  )

  it('gets requests of HTTP/1.1 as streams of one connection', async () => {
    const seen: IncomingHttpHeaders[] = []
    serve = (stream, headers) => {
      seen.push(headers)
      stream.respond({ ':status': 201, 'x-from': 'h2', 'content-length': 5 })
      stream.end('hello')
    }
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, at) =>
        ask({
          path: `/${at}?q`,
          headers: { host: 'h.example', connection: 'close, x-hop', 'x-hop': '1', 'x-one': 'Two' },
        }),
      ),
    )
    expect(answers.map(({ status, body }) => `${status} ${body}`)).toEqual(
      Array(20).fill('201 hello'),
    )
    expect(answers[0]?.headers).toMatchObject({ 'x-from': 'h2', 'content-length': '5' })
    expect(seen[0]).toMatchObject({
      ':method': 'GET',
      ':scheme': 'http',
      ':authority': 'h.example',
      'x-one': 'Two',
    })
    expect(seen[0]).not.toHaveProperty('x-hop')
    expect(seen.map((head) => head[':path']).toSorted()).toEqual(
      Array.from({ length: 20 }, (_, at) => `/${at}?q`).toSorted(),
    )
    expect(sessions.size).toBe(1)
  })

  it('gets and sends bodies of many sizes', async () => {
    for (const size of [0, 1, 16_384, 65_535, 65_536, 1_000_000]) {
      const body = randomBytes(size)
      const chunked = await ask(
        { method: 'POST', headers: { 'transfer-encoding': 'chunked' } },
        body,
      )
      const sized = await ask({ method: 'POST', headers: { 'content-length': `${size}` } }, body)
      expect([digest(chunked.body), digest(sized.body)]).toEqual([digest(body), digest(body)])
    }
  })

  it('passes trailers both ways', async () => {
    let up: IncomingHttpHeaders | undefined
    serve = (stream) => {
      stream.on('trailers', (fields) => {
        up = fields
      })
      stream.respond({ ':status': 200 }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'x-down': '2' }))
      stream.resume()
      stream.on('end', () => stream.end('body'))
    }
    const client = await RawConnection.connect(rig.port)
    client.write(
      'POST / HTTP/1.1\r\nHost: x\r\nTE: trailers\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nx-up: 1\r\n\r\n',
    )
    await client.until(() => client.text.endsWith('x-down: 2\r\n\r\n'))
    expect(up).toMatchObject({ 'x-up': '1' })
  })

  it('answers HEAD, 204, 304 and hints', async () => {
    serve = (stream, { ':path': path }) => {
      if (path === '/204') stream.respond({ ':status': 204 }, { endStream: true })
      else if (path === '/304') stream.respond({ ':status': 304, etag: '"a"' }, { endStream: true })
      else {
        stream.additionalHeaders({ ':status': 103, link: '</a>' })
        stream.respond({ ':status': 200, 'content-length': 5 }, { endStream: true })
      }
    }
    const [none, same, head] = await Promise.all([
      ask({ path: '/204' }),
      ask({ path: '/304' }),
      ask({ method: 'HEAD' }),
    ])
    expect([none.status, same.status, same.headers.etag]).toEqual([204, 304, '"a"'])
    expect([head.status, head.headers['content-length']]).toEqual([200, '5'])
  })

  it('hears that the client has gone', async () => {
    let code: number | undefined
    serve = (stream) => {
      stream.respond({ ':status': 200 })
      stream.write('begin')
      stream.on('close', () => {
        code = stream.rstCode
      })
    }
    const client = await RawConnection.connect(rig.port)
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await client.until(() => client.text.includes('begin'))
    client.socket.destroy()
    await waitFor('the reset', () => code === constants.NGHTTP2_CANCEL)
    expect(rig.engine.counters.upstreamConnectionsOpen).toBe(1)
  })

  it('that is slow holds up the client, and a slow client holds it up', async () => {
    let received = 0
    let stalled: ServerHttp2Stream | undefined
    serve = (stream) => {
      stalled = stream
      stream.respond({ ':status': 200 })
    }
    const client = await RawConnection.connect(rig.port)
    client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 50000000\r\n\r\n')
    const piece = Buffer.alloc(1_000_000)
    for (let sent = 0; sent < 50; sent++) client.write(piece)
    await waitFor('the head', () => stalled !== undefined && client.text.includes('200'))
    const moved = () => client.socket.bytesWritten
    let before = -1
    await waitFor('everything to stand still', () => {
      const isStill = moved() === before
      before = moved()
      return isStill
    })
    expect(rig.plane.done).toEqual([])
    stalled?.on('data', (part: Buffer) => {
      received += part.length
    })
    await waitFor('all of it', () => received === 50_000_000)
    stalled?.end()
  })

  it('is left alone by requests beyond the streams that it admits', async () => {
    server.close()
    for (const session of sessions) session.destroy()
    const small = createServer({ settings: { maxConcurrentStreams: 2 } })
    let most = 0
    let open = 0
    const held: ServerHttp2Stream[] = []
    small.on('stream', (stream) => {
      open++
      most = Math.max(most, open)
      held.push(stream)
      stream.on('close', () => open--)
    })
    small.on('session', (session) => sessions.add(session))
    small.listen(0, '127.0.0.1')
    await once(small, 'listening')
    const { port } = small.address() as AddressInfo
    rig.plane.upstream = { host: '127.0.0.1', port, pool: 'small', isHttp2: true }
    const first = ask({})
    await waitFor('the first', () => held.length === 1)
    const rest = Array.from({ length: 5 }, () => ask({}))
    await waitFor('all of them', () => held.length === 6)
    for (const stream of held) {
      stream.respond({ ':status': 200 })
      stream.end()
    }
    expect((await Promise.all([first, ...rest])).map(({ status }) => status)).toEqual(
      Array(6).fill(200),
    )
    expect(rig.engine.counters.upstreamConnectionsTotal).toBe(3)
    small.close()
  })

  it('and a client of HTTP/2 are joined without a detour', async () => {
    serve = (stream) => {
      stream.respond({ ':status': 200 }, { waitForTrailers: true })
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
      stream.pipe(stream)
    }
    const session = connect(`http://127.0.0.1:${rig.port}`)
    const stream = session.request({ ':path': '/', ':method': 'POST', te: 'trailers' })
    let text = ''
    let trailers: IncomingHttpHeaders = {}
    stream.on('data', (part: Buffer) => {
      text += part
    })
    stream.on('trailers', (fields) => {
      trailers = fields
    })
    stream.write('a')
    await waitFor('the echo', () => text === 'a')
    stream.end('b')
    await once(stream, 'end')
    expect([text, trailers['grpc-status']]).toEqual(['ab', '0'])
    session.destroy()
  })

  it('is told which fields the client wants in no table', async () => {
    const upstream = await RawUpstream.start()
    rig.plane.upstream = { ...upstream.address, isHttp2: true }
    const session = connect(`http://127.0.0.1:${rig.port}`)
    session.on('error', () => {})
    session.request({ ':path': '/', accept: 'a', 'x-key': 'b', [sensitiveHeaders]: ['accept'] })
    await waitFor('the head', () => upstream.connections[0]?.text.includes('x-key') === true)
    const text = upstream.connections[0]?.text ?? ''
    // Index 19 of the static table, as a literal that is never indexed (RFC 7541 6.2.3).
    expect(text).toContain('\x1f\x04\x01a')
    expect(text).toContain('\x00\x05x-key\x01b')
    session.destroy()
    upstream.close()
  })

  it('that cannot be reached, or speaks no HTTP/2, is an error like any other', async () => {
    rig.plane.upstream = { host: '127.0.0.1', port: 1, pool: 'nobody', isHttp2: true }
    expect((await ask({})).status).toBe(503)
    const other = await RawUpstream.start()
    other.onData = (connection) => connection.write('HTTP/1.1 400 Bad Request\r\n\r\n')
    rig.plane.upstream = { ...other.address, isHttp2: true }
    expect((await ask({})).status).toBe(502)
    expect(rig.plane.done.map(({ error }) => error)).toEqual([
      'connect_failed',
      'upstream_malformed',
    ])
    other.close()
  })
})

describe('an upstream that says so frame by frame', () => {
  let upstream: RawUpstream
  const ok: readonly Field[] = [[':status', '200']]

  beforeEach(async () => {
    upstream = await RawUpstream.start()
    rig.plane.upstream = { ...upstream.address, isHttp2: true }
  })
  afterEach(() => upstream.close())

  /** Answers each connection's n-th request; requests are counted by their HEADERS. */
  const answer = (reply: (connection: number, request: number, stream: number) => string) => {
    const clients = new Map<RawConnection, FrameClient>()
    const counted = new Map<RawConnection, number>()
    upstream.onConnection = (connection) => connection.write(settingsFrame([]))
    upstream.onData = (connection) => {
      if (!connection.text.startsWith(clientPreface)) return
      let client = clients.get(connection)
      if (client === undefined) {
        client = new FrameClient(connection, clientPreface.length)
        clients.set(connection, client)
      }
      client.parse()
      const requests = client.frames.filter(({ type }) => type === frameTypes.headers)
      const at = upstream.connections.indexOf(connection)
      for (let next = counted.get(connection) ?? 0; next < requests.length; next++) {
        counted.set(connection, next + 1)
        connection.write(reply(at, next, requests[next]?.stream ?? 0))
      }
    }
  }

  it.each<[string, (stream: number) => string, string]>([
    ['no :status', (id) => headers(id, [['x', 'y']]), 'upstream_malformed'],
    ['data before a head', (id) => data(id, 'x', endStream), 'upstream_malformed'],
    [
      'data behind an interim head',
      (id) => headers(id, [[':status', '103']], endHeaders) + data(id, 'x', endStream),
      'upstream_malformed',
    ],
    ['a bad :status', (id) => headers(id, [[':status', '20']]), 'upstream_malformed'],
    ['101', (id) => headers(id, [[':status', '101']]), 'upstream_malformed'],
    ['an upper case name', (id) => headers(id, [...ok, ['X', 'y']]), 'upstream_malformed'],
    [
      'a line end in a value',
      (id) => headers(id, [...ok, ['x', 'y\r\nz: a']]),
      'upstream_malformed',
    ],
    [
      'transfer-encoding',
      (id) => headers(id, [...ok, ['transfer-encoding', 'chunked']]),
      'upstream_malformed',
    ],
    [
      'interim responses without end',
      (id) => headers(id, [[':status', '100']], endHeaders).repeat(40),
      'upstream_malformed',
    ],
    [
      'less than content-length',
      (id) => headers(id, [...ok, ['content-length', '5']]),
      'upstream_malformed',
    ],
    ['a broken block', () => '\0\0\x01\x01\x05\0\0\0\x01\x80', 'upstream_malformed'],
    ['a push', () => '\0\0\x04\x05\x04\0\0\0\x01\0\0\0\x02', 'upstream_malformed'],
    ['a reset', (id) => rstStreamFrame(id, 2), 'upstream_reset'],
  ])('%s before the response is one error', async (_title, reply, code) => {
    answer((_connection, _request, stream) => reply(stream))
    const { status } = await ask({})
    expect(status).toBe(code === 'upstream_reset' ? 503 : 502)
    expect(rig.plane.done).toMatchObject([{ error: code }])
  })

  it('a reset behind the end of a response leaves all of it, however late it is taken', async () => {
    const body = 'x'.repeat(100_000)
    const pieces = body.match(/.{1,10000}/g) ?? []
    answer(
      (_connection, _request, stream) =>
        headers(stream, ok, endHeaders) +
        pieces.map((piece) => data(stream, piece)).join('') +
        data(stream, '', endStream) +
        rstStreamFrame(stream, 0) +
        pingFrame('was read', false),
    )
    let relay: (() => void) | undefined
    rig.plane.response = (exchange) => {
      relay = () => exchange.relay()
    }
    const asked = ask({})
    // Everything has been read when the ping is answered.
    await waitFor('the answer', () => upstream.connections[0]?.text.endsWith('was read'))
    relay?.()
    const got = await asked
    expect([got.status, got.body.toString() === body]).toEqual([200, true])
    expect(rig.plane.done).toMatchObject([{ error: undefined, ending: 'complete' }])
    expect(rig.engine.counters.readBuffersInUse).toBeLessThanOrEqual(1)
  })

  it('a request that was refused unread is sent again on another connection', async () => {
    answer((connection, _request, stream) =>
      connection === 0
        ? rstStreamFrame(stream, 7)
        : headers(stream, ok, endHeaders) + data(stream, 'second', endStream),
    )
    const got = await ask({ method: 'POST' }, 'body')
    expect([got.status, got.body.toString()]).toEqual([200, 'second'])
    expect(upstream.connections).toHaveLength(2)
  })

  it('a connection that goes away finishes what it has looked at; the rest goes elsewhere', async () => {
    answer((connection, request, stream) => {
      if (connection > 0)
        return headers(stream, ok, endHeaders) + data(stream, 'elsewhere', endStream)
      if (request === 0) return ''
      return `${goawayFrame(1, 0, '')}${headers(1, ok, endHeaders)}${data(1, 'here', endStream)}`
    })
    const first = ask({})
    await waitFor(
      'the first',
      () =>
        upstream.connections[0]?.text.includes('PRI') === true &&
        rig.engine.counters.upstreamConnectionsOpen === 1,
    )
    const second = ask({ method: 'POST' }, 'body')
    expect((await first).body.toString()).toBe('here')
    expect((await second).body.toString()).toBe('elsewhere')
    await waitFor('the end of the first', () => rig.engine.counters.upstreamConnectionsOpen === 1)
  })

  it('a stream that is reset cuts its response, and only that one', async () => {
    answer((_connection, request, stream) =>
      request === 0
        ? headers(stream, ok, endHeaders) + data(stream, 'begin')
        : headers(stream, ok, endHeaders) + data(stream, 'whole', endStream),
    )
    const client = await RawConnection.connect(rig.port)
    client.write('GET /cut HTTP/1.1\r\nHost: x\r\n\r\n')
    await client.until(() => client.text.includes('begin'))
    upstream.connections[0]?.write(rstStreamFrame(1, 2))
    await client.untilEnd()
    expect(client.text.endsWith('0\r\n\r\n')).toBe(false)
    expect((await ask({})).body.toString()).toBe('whole')
    expect(rig.plane.done[0]).toMatchObject({ ending: 'upstream-cut', error: 'upstream_reset' })
    expect(upstream.connections).toHaveLength(1)
  })
})
