import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { ok, rig, upstream } from './engine-bodies-rig.ts'
import { eventually, RawConnection, splitResponses } from './engine-rig.ts'

const megabyte = 1024 * 1024

/** Bytes whose every window differs, so that a repeated or overwritten part shows. */
function pattern(seed: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length)
  let state = seed | 1
  for (let at = 0; at < length; at++) {
    state = (Math.imul(state, 1664525) + 1013904223) | 0
    bytes[at] = state >>> 24
  }
  return bytes
}

/** Writes `total` bytes as fast as the socket takes them. */
async function pour(connection: RawConnection, total: number, piece: Buffer): Promise<void> {
  for (let written = 0; written < total && !connection.closed; written += piece.length) {
    if (!connection.socket.write(piece)) {
      await connection.until(() => connection.closed || !connection.socket.writableNeedDrain)
    }
  }
}

test('100 MB pass in both directions without being buffered', async () => {
  const total = 100 * megabyte
  const piece = pattern(1, megabyte)
  upstream.onConnection = (connection) => {
    connection.keepsText = false
  }
  let answered = false
  upstream.onData = (connection) => {
    if (answered || connection.received < total) return
    answered = true
    connection.write(`HTTP/1.1 200 OK\r\nContent-Length: ${total}\r\n\r\n`)
    void pour(connection, total, piece)
  }
  const client = await RawConnection.connect(rig.port)
  client.keepsText = false
  const hash = createHash('sha1')
  let seen = 0
  client.socket.on('data', (chunk: Buffer) => {
    hash.update(seen === 0 ? chunk.subarray(chunk.indexOf('\r\n\r\n') + 4) : chunk)
    seen += chunk.length
  })
  client.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${total}\r\n\r\n`)
  await pour(client, total, piece)
  await eventually(() => rig.plane.done.length === 1)
  expect(rig.plane.done[0]).toMatchObject({
    requestBytes: total,
    responseBytes: total,
    ending: 'complete',
  })
  await client.until(() => seen > total)
  const wanted = createHash('sha1')
  for (let count = 0; count < 100; count++) wanted.update(piece)
  expect(hash.digest('hex')).toBe(wanted.digest('hex'))
})

for (const framing of ['content-length', 'chunked'] as const) {
  test(`a client that does not read applies backpressure to the upstream (${framing})`, async () => {
    const total = 64 * megabyte
    const piece = pattern(2, 64 * 1024)
    let poured = 0
    upstream.onData = (connection) => {
      if (framing === 'content-length') {
        connection.write(`HTTP/1.1 200 OK\r\nContent-Length: ${total}\r\n\r\n`)
      } else connection.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
      const chunk =
        framing === 'content-length'
          ? piece
          : Buffer.concat([Buffer.from('10000\r\n'), piece, Buffer.from('\r\n')])
      void (async () => {
        for (; poured < total && !connection.closed; poured += piece.length) {
          if (!connection.socket.write(chunk)) {
            await new Promise((resolve) => connection.socket.once('drain', resolve))
          }
        }
        if (framing === 'chunked') connection.write('0\r\n\r\n')
      })()
    }
    const client = await RawConnection.connect(rig.port)
    client.socket.pause()
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    // Kernel buffers fill, then nothing moves: the sender has stopped long before the end.
    let last = -1
    for (let still = 0; still < 200; still = poured === last ? still + 1 : 0) {
      last = poured
      await new Promise((resolve) => setImmediate(resolve))
      await new Promise((resolve) => setImmediate(resolve))
    }
    await eventually(() => poured > 0)
    expect(poured).toBeLessThan(total / 2)
    const engineHeld = rig.engine.counters.sentBytes
    expect(engineHeld).toBeLessThan(total / 2)
    client.keepsText = false
    client.socket.resume()
    await eventually(() => rig.plane.done.length === 1)
    expect(rig.plane.done[0]).toMatchObject({ responseBytes: total, ending: 'complete' })
  })
}

for (const ending of ['kept', 'closed'] as const) {
  test(`a slow reader gets its own bytes while read buffers are used again (connection ${ending})`, async () => {
    // One response is one large read, shown to the kernel from the read buffer. When the client
    // sleeps, the last one waits there, half sent; other traffic must not get that buffer.
    const size = 48 * 1024
    const close = ending === 'closed' ? 'Connection: close\r\n' : ''
    upstream.onData = (connection) => {
      const id = /GET \/(\d+)/.exec(connection.text)?.[1]
      connection.text = ''
      const head = `HTTP/1.1 200 OK\r\n${close}Content-Length: ${size}\r\n\r\n`
      connection.write(Buffer.concat([Buffer.from(head), pattern(Number(id), size)]))
      if (ending === 'closed') connection.socket.end()
    }
    const sleeper = await RawConnection.connect(rig.port)
    sleeper.socket.pause()
    const count = 400
    for (let id = 1; id <= count; id++) sleeper.write(`GET /${id} HTTP/1.1\r\nHost: x\r\n\r\n`)
    let last = -1
    for (let still = 0; still < 200; still = rig.plane.done.length === last ? still + 1 : 0) {
      last = rig.plane.done.length
      await new Promise((resolve) => setImmediate(resolve))
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(last).toBeGreaterThan(0)
    expect(last).toBeLessThan(count)
    const reader = await RawConnection.connect(rig.port)
    for (let id = 1001; id <= 1010; id++) {
      reader.text = ''
      reader.write(`GET /${id} HTTP/1.1\r\nHost: x\r\n\r\n`)
      await reader.responses(1)
      expect(bodyOf(reader.text).equals(pattern(id, size))).toBe(true)
    }
    sleeper.socket.resume()
    const headLength = 41
    await sleeper.until(() => sleeper.received >= count * (size + headLength) || sleeper.closed)
    const responses = splitResponses(sleeper.text)
    expect(responses).toHaveLength(count)
    responses.forEach((response, index) => {
      expect(bodyOf(response).equals(pattern(index + 1, size))).toBe(true)
    })
  })
}

test('a response of many sizes arrives as it was sent, chunked and with a length', async () => {
  const sizes = [0, 1, 100, 16_383, 16_384, 16_385, 65_535, 65_536, 65_537, 200_000]
  upstream.onData = (connection) => {
    const path = /(?:GET|POST) \/(\d+)\/(\w)/.exec(connection.text)
    if (path === null || !connection.text.endsWith('\r\n\r\n')) return
    connection.text = ''
    const body = pattern(3, Number(path[1]))
    if (path[2] === 'l') {
      connection.write(`HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n\r\n`).write(body)
    } else {
      connection.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
      if (body.length > 0) {
        connection
          .write(`${body.length.toString(16)}\r\n`)
          .write(body)
          .write('\r\n')
      }
      connection.write('0\r\n\r\n')
    }
  }
  const client = await RawConnection.connect(rig.port)
  for (const size of sizes) {
    for (const kind of ['l', 'c']) {
      client.text = ''
      client.write(`GET /${size}/${kind} HTTP/1.1\r\nHost: x\r\n\r\n`)
      const before = rig.plane.done.length
      await eventually(() => rig.plane.done.length > before)
      await client.until(
        () => bodyOf(client.text).length >= size && client.text.includes('\r\n\r\n'),
      )
      if (kind === 'c') await client.until(() => client.text.endsWith('0\r\n\r\n'))
      expect(bodyOf(client.text).equals(pattern(3, size))).toBe(true)
    }
  }
  expect(upstream.connections).toHaveLength(1)
})

/** The body of one response, chunks joined. */
function bodyOf(text: string): Buffer {
  const at = text.indexOf('\r\n\r\n')
  if (at < 0) return Buffer.alloc(0)
  let rest = text.slice(at + 4)
  if (!/transfer-encoding: chunked/i.test(text.slice(0, at))) return Buffer.from(rest, 'latin1')
  let body = ''
  for (;;) {
    const line = /^([0-9a-f]+)\r\n/.exec(rest)
    if (line === null) return Buffer.from(body, 'latin1')
    const size = Number.parseInt(line[1] ?? '0', 16)
    body += rest.slice(line[0].length, line[0].length + size)
    rest = rest.slice(line[0].length + size + 2)
    if (size === 0) return Buffer.from(body, 'latin1')
  }
}

test('an upstream that does not read applies backpressure to the client', async () => {
  const total = 64 * megabyte
  upstream.onConnection = (connection) => {
    connection.keepsText = false
    connection.socket.pause()
  }
  upstream.onData = (connection) => {
    if (connection.received > total) connection.write(ok)
  }
  const client = await RawConnection.connect(rig.port)
  client.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${total}\r\n\r\n`)
  void pour(client, total, pattern(4, 256 * 1024))
  let last = -1
  const received = (): number => rig.engine.counters.receivedBytes
  for (let still = 0; still < 200; still = received() === last ? still + 1 : 0) {
    last = received()
    await new Promise((resolve) => setImmediate(resolve))
    await new Promise((resolve) => setImmediate(resolve))
  }
  expect(last).toBeGreaterThan(0)
  expect(last).toBeLessThan(total / 2)
  upstream.connections[0]?.socket.resume()
  await client.responses(1)
  expect(rig.plane.done[0]).toMatchObject({ requestBytes: total, ending: 'complete' })
})

for (const pace of ['at once', 'later'] as const) {
  test(`a stream arrives piece by piece, its head first (relayed ${pace})`, async () => {
    if (pace === 'later') {
      rig.plane.response = (exchange) => setImmediate(() => exchange.relay())
    }
    const client = await RawConnection.connect(rig.port)
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await eventually(() => (upstream.connections[0]?.received ?? 0) > 0)
    const server = upstream.connections[0]
    server?.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
    let expected = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'
    await client.until(() => client.text === expected)
    for (const piece of ['7\r\ndata: 1\r\n', '7\r\ndata: 2\r\n', '0\r\n\r\n']) {
      server?.write(piece)
      expected += piece
      await client.until(() => client.text.length >= expected.length)
      expect(client.text).toBe(expected)
    }
  })
}

test('heads stay readable while the data plane works asynchronously', async () => {
  const values: (string | undefined)[] = []
  rig.plane.request = (exchange) => {
    setImmediate(() => exchange.forward(rig.plane.upstream, rig.plane.options))
  }
  rig.plane.response = (exchange) => {
    setImmediate(() => {
      values.push(exchange.request.headers.get('x-id'), exchange.response?.headers.get('X-Back'))
      exchange.relay()
    })
  }
  upstream.onData = (connection) => {
    const id = /X-Id: (\d+)/.exec(connection.text)?.[1]
    connection.text = ''
    connection.write(`HTTP/1.1 200 OK\r\nX-Back: ${id}\r\nContent-Length: 1\r\n\r\n.`)
  }
  const clients = await Promise.all(
    Array.from({ length: 20 }, async (_, id) => {
      const client = await RawConnection.connect(rig.port)
      client.write(`GET / HTTP/1.1\r\nHost: x\r\nX-Id: ${id}\r\n\r\n`)
      return client
    }),
  )
  await Promise.all(clients.map((client) => client.responses(1)))
  clients.forEach((client, id) => {
    expect(client.text).toContain(`X-Back: ${id}\r\n`)
  })
  for (let at = 0; at < values.length; at += 2) expect(values[at]).toBe(values[at + 1])
})
