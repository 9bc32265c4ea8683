import { expect, test } from 'vitest'
import type { BodyTransform, BufferedBody } from '../../src/ground/exchange/exchange.ts'
import { ok, rig, upstream } from './engine-bodies-rig.ts'
import { eventually, RawConnection } from './engine-rig.ts'

test('a policy reads the whole request body, which is still forwarded', async () => {
  let seen: BufferedBody | undefined
  rig.plane.request = (exchange) => {
    void exchange.requestBody.buffer(100).then((body) => {
      seen = body
      exchange.forward(rig.plane.upstream, rig.plane.options)
    })
  }
  upstream.onData = (connection) => {
    if (connection.text.endsWith('world')) connection.write(ok)
  }
  const client = await RawConnection.connect(rig.port)
  client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhello')
  await eventually(() => rig.engine.counters.receivedBytes > 50)
  client.write('world')
  await client.responses(1)
  expect(seen?.complete).toBe(true)
  expect(seen?.complete === true && Buffer.from(seen.bytes).toString()).toBe('helloworld')
  expect(upstream.connections[0]?.text).toBe(
    'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhelloworld',
  )
})

test('a policy gets the prefix of a body over the limit, which still streams through', async () => {
  let prefix = ''
  rig.plane.request = (exchange) => {
    void exchange.requestBody.buffer(4).then((body) => {
      if (!body.complete) prefix = Buffer.from(body.prefix).toString()
      exchange.forward(rig.plane.upstream, rig.plane.options)
    })
  }
  upstream.onData = (connection) => {
    if (connection.text.endsWith('0\r\n\r\n')) connection.write(ok)
  }
  const client = await RawConnection.connect(rig.port)
  client.write('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nabcdef\r\n')
  await eventually(() => upstream.connections.length > 0)
  client.write('3\r\nghi\r\n0\r\n\r\n')
  await client.responses(1)
  expect(prefix).toBe('abcd')
  expect(upstream.connections[0]?.text).toMatch(/6\r\nabcdef\r\n3\r\nghi\r\n0\r\n\r\n$/)
})

test('a replaced request body has its own length', async () => {
  rig.plane.request = (exchange) => {
    exchange.requestBody.replace(Buffer.from('other body'))
    exchange.forward(rig.plane.upstream, rig.plane.options)
  }
  upstream.onData = (connection) => {
    if (connection.text.endsWith('other body')) {
      connection.text = ''
      connection.write(ok)
    }
  }
  const seen: string[] = []
  const forward = upstream.onData
  upstream.onData = (connection) => {
    seen.push(connection.text)
    forward(connection)
  }
  const client = await RawConnection.connect(rig.port)
  for (let count = 1; count <= 2; count++) {
    client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello')
    await client.responses(count)
  }
  expect(seen.at(-1)).toBe('POST / HTTP/1.1\r\nHost: x\r\ncontent-length: 10\r\n\r\nother body')
  expect(client.text).toBe(ok + ok)
})

class Upper implements BodyTransform {
  push(chunk: Uint8Array, emit: (bytes: Uint8Array) => void): void {
    emit(Buffer.from(Buffer.from(chunk).toString().toUpperCase()))
  }

  end(emit: (bytes: Uint8Array) => void): void {
    emit(Buffer.from('!'))
  }
}

test('bodies pass through transforms in both directions, in chunks', async () => {
  rig.plane.request = (exchange) => {
    exchange.requestBody.through(new Upper())
    exchange.forward(rig.plane.upstream, rig.plane.options)
  }
  rig.plane.response = (exchange) => {
    exchange.responseBody?.through(new Upper())
    exchange.responseBody?.through(new Upper())
    exchange.relay()
  }
  upstream.onData = (connection) => {
    if (connection.text.endsWith('0\r\n\r\n')) connection.write(ok)
  }
  const client = await RawConnection.connect(rig.port)
  client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello')
  await client.responses(1)
  expect(upstream.connections[0]?.text).toBe(
    'POST / HTTP/1.1\r\nHost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nHELLO\r\n1\r\n!\r\n0\r\n\r\n',
  )
  expect(client.text).toBe(
    'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nOK\r\n1\r\n!\r\n1\r\n!\r\n0\r\n\r\n',
  )
})

test('a response body can be replaced, and the connection is reused', async () => {
  rig.plane.response = (exchange) => {
    void exchange.responseBody?.buffer(1000).then((body) => {
      if (body.complete) exchange.responseBody?.replace(Buffer.from(`<${body.bytes.length}>`))
      exchange.relay()
    })
  }
  const whole = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n'
  upstream.onData = (connection) => {
    if (connection.text.endsWith('\r\n\r\n')) connection.write(whole)
  }
  const client = await RawConnection.connect(rig.port)
  for (let count = 1; count <= 2; count++) {
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await client.responses(count)
  }
  expect(client.text).toBe('HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n<5>'.repeat(2))
  expect(upstream.connections).toHaveLength(1)
})

/** Buffers each response; returns the texts of the bodies. */
function bufferResponses(limit: number): string[] {
  const bodies: string[] = []
  rig.plane.response = (exchange) => exchange.bufferResponse(limit)
  rig.plane.wholeResponse = (exchange, body) => {
    bodies.push(Buffer.from(body.complete ? body.bytes : body.prefix).toString())
    exchange.relay()
  }
  return bodies
}

const get = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'

test.each([
  ['in one piece', [ok]],
  ['in several pieces', ['HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n', 'O', 'K']],
  ['without content', ['HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n']],
])(
  'a buffered response that comes %s is relayed, and the connection is reused',
  async (_, pieces) => {
    const bodies = bufferResponses(100)
    upstream.onData = (connection) => {
      if (!connection.text.endsWith(get)) return
      connection.text = ''
      for (const [at, piece] of pieces.entries()) setTimeout(() => connection.write(piece), at * 20)
    }
    const client = await RawConnection.connect(rig.port)
    client.write(get + get)
    await client.responses(2)
    const whole = pieces.join('')
    expect(client.text).toBe(whole + whole)
    const [, body = ''] = whole.split('\r\n\r\n')
    expect(bodies).toEqual([body, body])
    expect(upstream.connections.length).toBe(1)
  },
)

test('a response over the limit of a buffered one is relayed after its prefix was seen', async () => {
  const bodies = bufferResponses(1)
  upstream.onData = (connection) => {
    if (connection.text.endsWith(get)) connection.write(ok)
  }
  const client = await RawConnection.connect(rig.port)
  client.write(get)
  await client.responses(1)
  expect(client.text).toBe(ok)
  expect(bodies).toEqual(['o'])
})

test('a buffered response that breaks off is an error', async () => {
  const bodies = bufferResponses(100)
  upstream.onData = (connection) => {
    if (!connection.text.endsWith(get)) return
    connection.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nO')
    setTimeout(() => connection.socket.destroy(), 20)
  }
  const client = await RawConnection.connect(rig.port)
  client.write(get)
  await client.responses(1)
  expect(client.text).toMatch(/^HTTP\/1.1 50[23] /)
  expect(bodies).toEqual([])
})
