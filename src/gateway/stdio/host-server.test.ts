import { connect } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type HostRequest, HostServer } from './host-server.ts'
import type { Reply } from './reply.ts'

const patience = { timeout: 30_000 }

interface HeldRequest {
  readonly request: HostRequest
  readonly content: string
  readonly reply: Reply
}

/** Starts a server that admits all paths but `/secret`, and a connection to it. */
async function start(serve: (served: HeldRequest) => void) {
  const server = new HostServer({
    admit: ({ path }) => (path === '/secret' ? { status: 401, why: 'unknown token' } : undefined),
    serve: (request, content, reply) => serve({ request, content, reply }),
  })
  const address = await server.start('127.0.0.1:0')
  const socket = connect({ host: '127.0.0.1', port: Number(address.split(':')[1]) })
  let text = ''
  socket.on('data', (bytes) => {
    text += bytes
  })
  const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()))
  socket.on('error', () => {})
  onTestFinished(() => server.close())
  return {
    send: (bytes: string) => socket.write(bytes),
    received: () => text,
    seen: (part: string) => expect.poll(() => text, patience).toContain(part),
    end: () => socket.destroy(),
    closed,
    server,
  }
}

const post = (path: string, content: string, fields = '') =>
  `POST ${path} HTTP/1.1\r\nhost: h\r\n${fields}content-length: ${Buffer.byteLength(content)}\r\n\r\n${content}`

describe('HostServer', () => {
  it('reads requests in pieces, one after the other on a connection', async () => {
    const client = await start(({ request, content, reply }) => {
      reply.json(`${request.path} ${request.headers.get('x-a')} ${content}`)
    })
    for (const byte of post('/first', 'é\n', 'X-A:  b \r\n')) {
      client.send(byte)
      await new Promise(setImmediate)
    }
    await client.seen('/first b é\n')
    expect(client.received()).toContain('content-length: 12\r\n')
    client.send(post('/second', ''))
    await client.seen('/second undefined ')
  })

  it('streams events, and reports that the client has gone', async () => {
    const served = Promise.withResolvers<Reply>()
    const client = await start(({ reply }) => served.resolve(reply))
    client.send('GET /stream HTTP/1.1\r\n\r\n')
    const reply = await served.promise
    const gone = new Promise<void>((resolve) => {
      reply.onDisconnect = resolve
    })
    reply.beginStream()
    reply.event('{"a":\n1}')
    await client.seen('1f\r\nevent: message\ndata: {"a": 1}\n\n\r\n')
    client.end()
    await gone
    expect(reply.isOver).toBe(true)
  })

  it('ends a stream with its last message', async () => {
    const client = await start(({ reply }) => {
      reply.beginStream()
      reply.endStream('1')
    })
    client.send(post('/', ''))
    await client.seen('\r\n\r\n18\r\nevent: message\ndata: 1\n\n\r\n0\r\n\r\n')
  })

  it('skips the content of refused requests and continues', async () => {
    const contents: string[] = []
    const client = await start(({ content, reply }) => {
      contents.push(content)
      reply.empty(202)
    })
    client.send(post('/secret', 'x'.repeat(100_000)))
    await client.seen('401 Unauthorized')
    client.send(post('/open', 'yes'))
    await client.seen('202 Accepted')
    expect(contents).toEqual(['yes'])
  })

  it('responds with 500 if a request cannot be served', async () => {
    const client = await start(() => {
      throw new Error('no space left')
    })
    client.send(post('/', ''))
    await client.seen('500 Internal Server Error')
    await client.seen('no space left')
  })

  it.each([
    ['no HTTP', 'hello\r\n\r\n', '400 Bad Request'],
    ['HTTP/1.0', 'GET / HTTP/1.0\r\n\r\n', '400 Bad Request'],
    ['a line without a colon', 'GET / HTTP/1.1\r\nx\r\n\r\n', '400 Bad Request'],
    [
      'two lengths',
      'POST / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n',
      '400 Bad Request',
    ],
    ['chunks', 'POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n', '400 Bad Request'],
    ['a negative length', 'POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n', '400 Bad Request'],
    ['33 MB', 'POST / HTTP/1.1\r\ncontent-length: 34603008\r\n\r\n', '413 Content Too Large'],
    ['a head without an end', `GET / HTTP/1.1\r\nx: ${'y'.repeat(70_000)}`, '431 '],
  ])('refuses %s and closes the connection', async (_, bytes, status) => {
    const client = await start(({ reply }) => reply.empty(200))
    client.send(bytes)
    await client.closed
    expect(client.received()).toContain(status)
  })

  it('closes connections that send a request early, or not at all', async () => {
    const early = await start(() => {})
    early.send(`${post('/', '')}GET / HTTP/1.1\r\n\r\n`)
    await early.closed
    const silent = await start(({ reply }) => reply.empty(200))
    silent.send(post('/', ''))
    await silent.seen('200 OK')
    // It is idle, and may stay.
    silent.server.sweep(performance.now() + 600_000)
    silent.send('GET ')
    let isClosed = false
    silent.closed.then(() => {
      isClosed = true
    })
    const sweep = () => {
      silent.server.sweep(performance.now() + 600_000)
      return isClosed
    }
    await expect.poll(sweep, patience).toBe(true)
  })
})
