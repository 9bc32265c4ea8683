import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  connect,
  constants,
  createServer,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
  sensitiveHeaders,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { waitFor } from '../support/wait-for.ts'
import { ask, given, rig, server, sessions } from './engine-http2-upstream-rig.ts'
import { RawConnection, RawUpstream } from './engine-rig.ts'

const digest = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

describe('an HTTP/2 upstream of node:http2', () => {
  it.each([
    ['POST', 503, 2],
    ['PUT', 200, 3],
  ])(
    'closes during a %s: the client gets %i after %i requests in all',
    async (method, status, times) => {
      let seen = 0
      given.serve = (stream) => {
        seen++
        if (seen === 2) stream.session?.destroy()
        else stream.respond({ ':status': 200 }, { endStream: true })
      }
      expect((await ask({ method }, 'body')).status).toBe(200)
      expect([(await ask({ method }, 'body')).status, seen]).toEqual([status, times])
    },
  )

  it('receives HTTP/1.1 requests as streams of one connection', async () => {
    const seen: IncomingHttpHeaders[] = []
    given.serve = (stream, headers) => {
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

  it('receives and sends bodies of many sizes', async () => {
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

  it('receives and sends trailers', async () => {
    let up: IncomingHttpHeaders | undefined
    given.serve = (stream) => {
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

  it('answers HEAD requests, with 204 and 304, and after early hints', async () => {
    given.serve = (stream, { ':path': path }) => {
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

  it('gets RST_STREAM with CANCEL if the client disconnects', async () => {
    let code: number | undefined
    given.serve = (stream) => {
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

  it('applies backpressure to the client while it does not read', async () => {
    let received = 0
    let stalled: ServerHttp2Stream | undefined
    given.serve = (stream) => {
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

  it('gets no more concurrent streams on a connection than it allows', async () => {
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

  it('exchanges data and trailers with an HTTP/2 client in both directions', async () => {
    given.serve = (stream) => {
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

  it('gets never-indexed fields as the client sent them', async () => {
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

  it('causes the usual errors if it is unreachable or does not speak HTTP/2', async () => {
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
