import { afterEach, beforeEach, expect, test } from 'vitest'
import { ManualClock } from '../support/manual-clock.ts'
import {
  type EngineRig,
  eventually,
  RawConnection,
  RawUpstream,
  startEngine,
} from './engine-rig.ts'

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const get = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'

let rig: EngineRig
let upstream: RawUpstream
let clock: ManualClock

beforeEach(async () => {
  clock = new ManualClock()
  rig = await startEngine({ clock })
  upstream = await RawUpstream.start()
  rig.plane.upstream = upstream.address
})

afterEach(async () => {
  await rig.close()
  upstream.close()
})

/** The upstream answers each request that ends in one of these, unless a test changes it. */
function answerAll(): void {
  upstream.onData = (connection) => {
    if (!/(\r\n\r\n|hello)$/.test(connection.text)) return
    connection.text = ''
    connection.write(ok)
  }
}

test('a reused connection that breaks before an answer is replaced once, invisibly to the client', async () => {
  const client = await RawConnection.connect(rig.port)
  const seen: number[] = []
  upstream.onData = (connection) => {
    const index = upstream.connections.indexOf(connection)
    seen.push(index)
    // The first connection answers once, then dies on its second request.
    if (index === 0 && seen.length === 2) connection.socket.destroy()
    else connection.write(ok)
  }
  client.write(get)
  await client.responses(1)
  client.write(get)
  await client.responses(2)
  expect(client.text).toBe(ok + ok)
  expect(seen).toEqual([0, 0, 1])
  expect(rig.plane.errors).toEqual([])
})

/** Answers the first request with a body, and closes after the second without a word. */
function closeAtSecond() {
  const seen = { requests: 0 }
  upstream.onData = (connection) => {
    if (!connection.text.endsWith('hello')) return
    seen.requests++
    connection.text = ''
    if (seen.requests === 2) connection.socket.destroy()
    else connection.write(ok)
  }
  return seen
}

const withBody = (start: string) => `${start}\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello`

test.each(['PUT / HTTP/1.1', 'POST / HTTP/1.1\r\nIdempotency-Key: "1"'])(
  'a short body that was already sent is sent again on the fresh connection (%s)',
  async (start) => {
    const client = await RawConnection.connect(rig.port)
    const seen = closeAtSecond()
    client.write(withBody(start))
    await client.responses(1)
    client.write(withBody(start))
    await client.responses(2)
    expect(client.text).toBe(ok + ok)
    expect(seen.requests).toBe(3)
  },
)

test('bodies of many concurrent requests are resent, each intact', async () => {
  const count = 48
  const clients = await Promise.all(
    Array.from({ length: count }, () => RawConnection.connect(rig.port)),
  )
  let waiting = 0
  upstream.onData = (connection) => {
    if (!connection.text.endsWith('hello')) return
    connection.text = ''
    // Answered together, so that each has a connection of its own.
    if (++waiting === count) for (const each of upstream.connections) each.write(ok)
  }
  for (const client of clients) client.write(withBody('PUT /first HTTP/1.1'))
  await Promise.all(clients.map((client) => client.responses(1)))
  const kept = upstream.connections.length
  expect(kept).toBe(count)
  // Every kept connection hears a request with its body, and only then do all of them go.
  let heard = 0
  const again = new Map<string, number>()
  upstream.onData = (connection) => {
    const match = /^PUT \/(\d+) [\s\S]*\r\n\r\n(x+\d+)$/.exec(connection.text)
    if (match === null) return
    connection.text = ''
    if (upstream.connections.indexOf(connection) >= kept) {
      again.set(match[2] ?? '', Number(match[1]))
      connection.write(ok)
    } else if (++heard === count) {
      for (const { socket } of upstream.connections.slice(0, kept)) socket.destroy()
    }
  }
  const bodyOf = (index: number) => `${'x'.repeat(1 + 97 * index)}${index}`
  for (const [index, client] of clients.entries()) {
    const body = bodyOf(index)
    client.write(
      `PUT /${index} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
  }
  await Promise.all(clients.map((client) => client.responses(2)))
  expect(heard).toBe(count)
  expect([...again].sort(([, a], [, b]) => a - b)).toEqual(
    clients.map((_, index) => [bodyOf(index), index]),
  )
  expect(rig.plane.errors).toEqual([])
})

test('a request that is not idempotent is not resent once the upstream may have read it', async () => {
  const client = await RawConnection.connect(rig.port)
  const seen = closeAtSecond()
  client.write(withBody('POST / HTTP/1.1'))
  await client.responses(1)
  client.write(withBody('POST / HTTP/1.1'))
  await client.responses(2)
  expect(client.text).toMatch(/^HTTP\/1\.1 200 [\s\S]*HTTP\/1\.1 503 /)
  expect(seen.requests).toBe(2)
  expect(rig.plane.errors).toEqual(['upstream_reset'])
})

test('a request that is not idempotent is resent if the upstream had closed before', async () => {
  const client = await RawConnection.connect(rig.port)
  const seen = { requests: 0 }
  upstream.onData = (connection) => {
    if (!connection.text.endsWith('hello')) return
    seen.requests++
    connection.text = ''
    connection.write(ok)
  }
  client.write(withBody('POST / HTTP/1.1'))
  await client.responses(1)
  // Both lie in the kernel before the gateway looks: it reads the request first.
  client.write(withBody('POST / HTTP/1.1'))
  upstream.connections[0]?.socket.destroy()
  await client.responses(2)
  expect(client.text).toBe(ok + ok)
  expect(seen.requests).toBe(2)
  expect(rig.plane.errors).toEqual([])
})

test('a long body that was partly sent is not resent', async () => {
  const client = await RawConnection.connect(rig.port)
  answerAll()
  client.write(get)
  await client.responses(1)
  upstream.onData = (connection) => {
    if (connection.received > 200_000) connection.socket.destroy()
  }
  client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 400000\r\n\r\n')
  client.write('a'.repeat(300_000))
  await client.untilEnd()
  expect(rig.plane.errors).toEqual(['upstream_reset'])
  expect(client.text).toMatch(/HTTP\/1\.1 503 Service Unavailable\r\n[\s\S]*connection: close\r\n/)
  expect(upstream.connections).toHaveLength(1)
})

test('a new connection that breaks before an answer is an error', async () => {
  upstream.onData = (connection) => connection.socket.destroy()
  const client = await RawConnection.connect(rig.port)
  client.write(get)
  const [response] = await client.responses(1)
  expect(response).toMatch(/^HTTP\/1\.1 503 /)
  expect(rig.plane.errors).toEqual(['upstream_reset'])
  expect(upstream.connections).toHaveLength(1)
})

test('the most recently used connection is used next', async () => {
  answerAll()
  const clients = await Promise.all([1, 2, 3].map(() => RawConnection.connect(rig.port)))
  for (const client of clients) client.write(get)
  await Promise.all(clients.map((client) => client.responses(1)))
  const used: number[] = []
  upstream.onData = (connection) => {
    used.push(upstream.connections.indexOf(connection))
    connection.write(ok)
  }
  for (let count = 2; count < 6; count++) {
    clients[0]?.write(get)
    await clients[0]?.responses(count)
  }
  expect(new Set(used).size).toBe(1)
})

test('unsolicited bytes on an idle connection close it, unread', async () => {
  answerAll()
  const client = await RawConnection.connect(rig.port)
  client.write(get)
  await client.responses(1)
  upstream.connections[0]?.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil')
  await upstream.connections[0]?.untilEnd()
  client.write(get)
  await client.responses(2)
  expect(client.text).toBe(ok + ok)
  expect(upstream.connections).toHaveLength(2)
})

test('a response before the request is complete is forwarded, and both connections close', async () => {
  upstream.onData = (connection) => {
    if (connection.text.endsWith('\r\n\r\n')) connection.write(ok)
  }
  const client = await RawConnection.connect(rig.port)
  client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n')
  await client.untilEnd()
  expect(client.text).toBe('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nconnection: close\r\n\r\nok')
  await upstream.connections[0]?.untilEnd()
})

test('an idle upstream connection is closed after 90 seconds', async () => {
  answerAll()
  const client = await RawConnection.connect(rig.port)
  client.write(get)
  await client.responses(1)
  clock.advance(89_000)
  expect(rig.engine.counters.upstreamConnectionsOpen).toBe(1)
  clock.advance(1_100)
  expect(rig.engine.counters.upstreamConnectionsOpen).toBe(0)
  await upstream.connections[0]?.untilEnd()
})

test('a refused connection and an unknown name have their own errors', async () => {
  const { port } = upstream.address
  upstream.close()
  const client = await RawConnection.connect(rig.port)
  client.write(get)
  await client.responses(1)
  rig.plane.upstream = { host: 'does-not-exist.invalid', port, pool: 'b' }
  client.write(get)
  await client.responses(2)
  expect(rig.plane.errors).toEqual(['connect_failed', 'dns_failed'])
  expect(client.text.match(/HTTP\/1\.1 503 /g)).toHaveLength(2)
})

test('the data plane tries another address after an error', async () => {
  answerAll()
  const good = rig.plane.upstream
  rig.plane.upstream = { host: '127.0.0.1', port: 1, pool: 'bad' }
  rig.plane.failure = (exchange) => {
    exchange.request.headers.set('x-retry-attempt', '1')
    exchange.forward(good, rig.plane.options)
  }
  let text = ''
  upstream.onData = (connection) => {
    text += connection.text
    if (text.endsWith('hello')) connection.write(ok)
  }
  const client = await RawConnection.connect(rig.port)
  client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello')
  await client.responses(1)
  expect(client.text).toBe(ok)
  expect(text).toBe(
    'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nx-retry-attempt: 1\r\n\r\nhello',
  )
  expect(rig.plane.errors).toEqual(['connect_failed'])
})

test('a connection that is not established in time is given up', async () => {
  // No packet comes back from this network (RFC 5737), or it is unreachable at once.
  rig.plane.upstream = { host: '192.0.2.1', port: 80, pool: 'nowhere' }
  rig.plane.options = { connectTimeoutMs: 3_000, attemptTimeoutMs: 0, requestTimeoutMs: 0 }
  const client = await RawConnection.connect(rig.port)
  client.write(get)
  await eventually(() => rig.engine.counters.upstreamConnectionsTotal === 1)
  clock.advance(3_100)
  await client.responses(1)
  expect(['connect_timeout', 'connect_failed']).toContain(rig.plane.errors[0])
})

test('an attempt that takes too long ends in upstream_timeout', async () => {
  rig.plane.options = { connectTimeoutMs: 0, attemptTimeoutMs: 500, requestTimeoutMs: 0 }
  const client = await RawConnection.connect(rig.port)
  client.write(get)
  await eventually(() => upstream.connections[0]?.text === get)
  clock.advance(490)
  expect(rig.plane.errors).toEqual([])
  clock.advance(30)
  const [response] = await client.responses(1)
  expect(response).toMatch(/^HTTP\/1\.1 504 Gateway Timeout\r\n[\s\S]*upstream call timeout$/)
  expect(rig.plane.errors).toEqual(['upstream_timeout'])
  await upstream.connections[0]?.untilEnd()
})

test('the request timeout covers all attempts and ends in route_timeout', async () => {
  rig.plane.options = { connectTimeoutMs: 0, attemptTimeoutMs: 400, requestTimeoutMs: 1_000 }
  rig.plane.failure = (exchange, error) => {
    if (error.code === 'upstream_timeout') exchange.forward(rig.plane.upstream, rig.plane.options)
    else exchange.respond(error.row.status, [], error.row.text)
  }
  const client = await RawConnection.connect(rig.port)
  client.write(get)
  for (let attempt = 1; attempt <= 2; attempt++) {
    await eventually(() => upstream.connections[attempt - 1]?.text === get)
    clock.advance(420)
  }
  await eventually(() => upstream.connections[2]?.text === get)
  clock.advance(180)
  const [response] = await client.responses(1)
  expect(response).toMatch(/^HTTP\/1\.1 504 /)
  expect(rig.plane.errors).toEqual(['upstream_timeout', 'upstream_timeout', 'route_timeout'])
})

for (const framing of ['Content-Length: 100', 'Transfer-Encoding: chunked', 'X: close-delimited']) {
  test(`a response that outlives the request timeout is cut (${framing})`, async () => {
    rig.plane.options = { connectTimeoutMs: 0, attemptTimeoutMs: 0, requestTimeoutMs: 1_000 }
    upstream.onData = (connection) => {
      const piece = framing.includes('chunked') ? '5\r\nhello\r\n' : 'hello'
      connection.write(`HTTP/1.1 200 OK\r\n${framing}\r\n\r\n${piece}`)
    }
    const client = await RawConnection.connect(rig.port)
    const version = framing.startsWith('X') ? '1.0' : '1.1'
    let failed = false
    client.socket.on('error', () => {
      failed = true
    })
    client.write(`GET / HTTP/${version}\r\nHost: x\r\n\r\n`)
    await client.until(() => client.text.includes('hello'))
    clock.advance(1_020)
    await client.until(() => client.closed || client.ended)
    expect(client.text).not.toContain('\r\n0\r\n\r\n')
    // Without a length the end of the connection would look like the end of the body.
    if (version === '1.0') expect(failed).toBe(true)
    expect(rig.plane.done[0]).toMatchObject({ ending: 'timeout', error: 'route_timeout' })
    await upstream.connections[0]?.untilEnd()
  })
}

test('a client that disconnects cancels its upstream request', async () => {
  const client = await RawConnection.connect(rig.port)
  client.write(get)
  await eventually(() => upstream.connections[0]?.text === get)
  client.socket.destroy()
  await upstream.connections[0]?.untilEnd()
  expect(rig.plane.done[0]).toMatchObject({ ending: 'client-closed', error: 'client_closed' })
  expect(rig.engine.counters.connectionsOpen).toBe(0)
  expect(rig.engine.counters.upstreamConnectionsOpen).toBe(0)
})

test('a client that disconnects mid-body leaves no complete request', async () => {
  const client = await RawConnection.connect(rig.port)
  client.write('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n')
  await eventually(() => upstream.connections[0]?.text.endsWith('hello\r\n') === true)
  client.socket.destroy()
  await upstream.connections[0]?.untilEnd()
  expect(upstream.connections[0]?.text).not.toContain('\r\n0\r\n')
  expect(rig.plane.done[0]?.ending).toBe('client-closed')
})

test('a late answer of the data plane to a disconnected client affects no other request', async () => {
  let answer = (): void => {}
  rig.plane.request = (exchange) => {
    answer = () => exchange.respond(200, [], 'late')
  }
  const gone = await RawConnection.connect(rig.port)
  gone.write(get)
  await eventually(() => rig.engine.counters.receivedBytes > 0)
  gone.socket.destroy()
  await eventually(() => rig.plane.done.length === 1)
  rig.plane.request = (exchange) => exchange.forward(rig.plane.upstream, rig.plane.options)
  const client = await RawConnection.connect(rig.port)
  client.write(get)
  await eventually(() => upstream.connections.length === 1)
  answer()
  upstream.connections[0]?.write(ok)
  await client.responses(1)
  expect(client.text).toBe(ok)
})

test('an exception in the data plane becomes a 500, not a broken connection', async () => {
  rig.plane.request = () => {
    throw new Error('boom')
  }
  const client = await RawConnection.connect(rig.port)
  client.write(get)
  const [response] = await client.responses(1)
  expect(response).toMatch(/^HTTP\/1\.1 500 [\s\S]*internal error$/)
  expect(response).not.toContain('boom')
  expect(rig.plane.done[0]?.error).toBe('bug')
})
