import { once } from 'node:events'
import {
  connect,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Stream,
} from 'node:http2'
import type { AddressInfo } from 'node:net'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ManualClock } from '../support/manual-clock.ts'
import {
  type EngineRig,
  eventually,
  ok,
  RawConnection,
  RawUpstream,
  splitResponses,
  startEngine,
} from './engine-rig.ts'

const head = 'POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n'
const goOn = 'HTTP/1.1 100 Continue\r\n\r\n'

let rig: EngineRig
let clock: ManualClock
let upstream: RawUpstream
let client: RawConnection
beforeEach(async () => {
  clock = new ManualClock()
  rig = await startEngine({ clock })
  upstream = await RawUpstream.start()
  rig.plane.upstream = upstream.address
  client = await RawConnection.connect(rig.port)
})
afterEach(async () => {
  client.socket.destroy()
  await rig.close()
  upstream.close()
})

/** What the upstream has received on its connections, as soon as the last one has a whole head. */
async function received(count = 1): Promise<string> {
  await eventually(
    () =>
      upstream.connections.length === count &&
      /\r\n\r\n/.test(upstream.connections.at(-1)?.text ?? ''),
  )
  return upstream.connections.at(-1)?.text ?? ''
}

/** Lets everything that is on its way arrive: a request of another client comes and goes. */
async function settle(): Promise<void> {
  const other = await RawConnection.connect(rig.port)
  other.write('GET /x HTTP/1.0\r\nHost: \r\n\x00\r\n\r\n')
  await other.untilEnd()
}

describe('a request that expects 100 (Continue)', () => {
  test('is forwarded with its expectation, and its body is asked for when the upstream asks', async () => {
    client.write(head)
    const sent = await received()
    expect(sent).toMatch(/\r\nexpect: 100-continue\r\n/)
    await settle()
    expect(client.text).toBe('')
    upstream.connections[0]?.write(goOn)
    await client.until(() => client.text === goOn)
    client.write('hello')
    await eventually(() => upstream.connections[0]?.text.endsWith('hello') === true)
    upstream.connections[0]?.write(ok)
    await client.until(() => client.text.endsWith('ok'))
    expect(client.text).toBe(goOn + ok)
    // Both connections are kept.
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await eventually(() => upstream.connections[0]?.text.includes('GET /') === true)
    expect(upstream.connections).toHaveLength(1)
  })

  test.each([417, 401, 413])('gets the final %i of an upstream that refuses it', async (status) => {
    client.write(head)
    await received()
    upstream.connections[0]?.write(`HTTP/1.1 ${status} No\r\nContent-Length: 2\r\n\r\nno`)
    await client.untilEnd()
    expect(client.text).toMatch(new RegExp(`^HTTP/1.1 ${status} No\r\n`))
    expect(client.text).toMatch(/\r\nconnection: close\r\n/)
    expect(client.text).not.toContain('100 Continue')
    expect(upstream.connections[0]?.text).toMatch(/\r\n\r\n$/)
  })

  test('gets a final response before the body, and may still send the body', async () => {
    client.write(head)
    await received()
    upstream.connections[0]?.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab')
    await client.until(() => client.text.endsWith('ab'))
    client.write('hello')
    await eventually(() => upstream.connections[0]?.text.endsWith('hello') === true)
    upstream.connections[0]?.write('cd')
    await client.untilEnd()
    expect(client.text).toMatch(/^HTTP\/1\.1 200 OK/)
    expect(client.text).not.toContain('100 Continue')
  })

  test('is sent whole at once if the client does not wait', async () => {
    client.write(`${head}hello`)
    await eventually(() => upstream.connections[0]?.text.endsWith('hello') === true)
    expect(upstream.connections[0]?.text).not.toMatch(/^expect/im)
    upstream.connections[0]?.write(ok)
    await client.until(() => client.text === ok)
  })

  test('is forwarded with its body once the client stops waiting', async () => {
    client.write(head)
    await received()
    client.write('hello')
    await eventually(() => upstream.connections[0]?.text.endsWith('hello') === true)
    upstream.connections[0]?.write(goOn + ok)
    await client.until(() => client.text.endsWith('ok'))
  })

  test('gets its 100 from the gateway if the upstream is silent for three seconds', async () => {
    client.write(head)
    await received()
    clock.advance(2_900)
    await settle()
    expect(client.text).toBe('')
    clock.advance(200)
    await client.until(() => client.text === goOn)
    client.write('hello')
    await eventually(() => upstream.connections[0]?.text.endsWith('hello') === true)
    upstream.connections[0]?.write(goOn + ok)
    await client.until(() => client.text.endsWith('ok'))
    expect(client.text).toBe(goOn + ok)
  })

  test('gets 100 from the gateway if a policy reads the body, and is forwarded without the expectation', async () => {
    rig.plane.request = (exchange) => {
      void exchange.requestBody.buffer(100).then(() => {
        exchange.forward(rig.plane.upstream, rig.plane.options)
      })
    }
    client.write(head)
    await client.until(() => client.text === goOn)
    expect(upstream.connections).toHaveLength(0)
    client.write('hello')
    await eventually(() => upstream.connections[0]?.text.endsWith('hello') === true)
    expect(upstream.connections[0]?.text).not.toMatch(/^expect/im)
  })

  test('keeps its expectation when it is retried', async () => {
    rig.plane.response = (exchange) => {
      if (exchange.response?.status === 503) {
        exchange.forward(rig.plane.upstream, rig.plane.options)
      } else exchange.relay()
    }
    client.write(head)
    await received()
    upstream.connections[0]?.write('HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n')
    expect(await received(2)).toMatch(/\r\nexpect: 100-continue\r\n/)
    await settle()
    expect(client.text).toBe('')
    upstream.connections[1]?.write(goOn)
    await client.until(() => client.text === goOn)
    client.write('hello')
    await eventually(() => upstream.connections[1]?.text.endsWith('hello') === true)
    upstream.connections[1]?.write(ok)
    await client.until(() => client.text.endsWith('ok'))
  })

  test('is retried if a reused connection closes before the answer', async () => {
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    await received()
    upstream.connections[0]?.write(ok)
    await client.until(() => client.text === ok)
    upstream.onData = ({ socket, text }) => {
      if (upstream.connections.length === 1 && text.includes('PUT')) socket.destroy()
    }
    client.write(head.replace('POST', 'PUT'))
    expect(await received(2)).toMatch(/\r\nexpect: 100-continue\r\n/)
    expect(client.text).toBe(ok)
    upstream.connections[1]?.write('HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n')
    await client.untilEnd()
    expect(splitResponses(client.text)[1]).toMatch(/^HTTP\/1\.1 417 /)
  })

  test('is forwarded without the expectation if it has no body', async () => {
    client.write('POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n')
    expect(await received()).not.toMatch(/^expect/im)
  })
})

describe('expecting 100 (Continue) over HTTP/2', () => {
  let server: Http2Server
  let asked: { stream: ServerHttp2Stream; headers: IncomingHttpHeaders }[]
  beforeEach(async () => {
    asked = []
    server = createServer()
    server.on('stream', (stream, headers) => {
      stream.on('error', () => {})
      asked.push({ stream, headers })
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
  })
  afterEach(() => server.close())
  const toHttp2 = () => {
    const { port } = server.address() as AddressInfo
    rig.plane.upstream = { host: '127.0.0.1', port, pool: 'h2', isHttp2: true }
  }

  test('an upstream decides on the body of a request of HTTP/1.1', async () => {
    toHttp2()
    client.write(head)
    await eventually(() => asked.length === 1)
    expect(asked[0]?.headers.expect).toBe('100-continue')
    await settle()
    expect(client.text).toBe('')
    asked[0]?.stream.additionalHeaders({ ':status': 100 })
    await client.until(() => client.text === goOn)
    client.write('hello')
    const [piece] = await once(asked[0]?.stream ?? server, 'data')
    expect(String(piece)).toBe('hello')
    asked[0]?.stream.respond({ ':status': 204 }, { endStream: true })
    await client.responses(1)
  })

  test.each(['HTTP/1.1', 'HTTP/2'])(
    'a client waits for an upstream that speaks %s',
    async (version) => {
      if (version === 'HTTP/2') toHttp2()
      const session = connect(`http://127.0.0.1:${rig.port}`)
      const stream = session.request(
        { ':method': 'POST', expect: '100-continue', 'content-length': '5' },
        { endStream: false },
      )
      let continued = false
      stream.on('continue', () => {
        continued = true
        stream.end('hello')
      })
      if (version === 'HTTP/2') await eventually(() => asked.length === 1)
      else expect(await received()).toMatch(/\r\nexpect: 100-continue\r\n/)
      await settle()
      expect(continued).toBe(false)
      if (version === 'HTTP/2') asked[0]?.stream.additionalHeaders({ ':status': 100 })
      else upstream.connections[0]?.write(goOn)
      if (version === 'HTTP/2') {
        await once(asked[0]?.stream ?? server, 'data')
        asked[0]?.stream.respond({ ':status': 200 }, { endStream: true })
      } else {
        await eventually(() => upstream.connections[0]?.text.endsWith('hello') === true)
        upstream.connections[0]?.write(ok)
      }
      const [headers] = await once(stream, 'response')
      expect(headers[':status']).toBe(200)
      session.destroy()
    },
  )

  test('a client gets the refusal of an upstream', async () => {
    const session = connect(`http://127.0.0.1:${rig.port}`)
    const stream = session.request(
      { ':method': 'POST', expect: '100-continue' },
      { endStream: false },
    )
    let continued = false
    stream.on('continue', () => {
      continued = true
    })
    await received()
    upstream.connections[0]?.write('HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n')
    const [headers] = await once(stream, 'response')
    expect([headers[':status'], continued]).toEqual([417, false])
    session.destroy()
  })

  test('a client that does not wait is not delayed', async () => {
    const session = connect(`http://127.0.0.1:${rig.port}`)
    const stream = session.request(
      { ':method': 'POST', expect: '100-continue' },
      { endStream: false },
    )
    await received()
    stream.end('hello')
    await eventually(() => upstream.connections[0]?.text.endsWith('0\r\n\r\n') === true)
    upstream.connections[0]?.write(ok)
    const [headers] = await once(stream, 'response')
    expect(headers[':status']).toBe(200)
    session.destroy()
  })
})
