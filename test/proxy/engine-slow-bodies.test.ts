import { once } from 'node:events'
import { connect } from 'node:http2'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ManualClock } from '../support/manual-clock.ts'
import {
  type EngineRig,
  eventually,
  ok,
  RawConnection,
  RawUpstream,
  startEngine,
} from './engine-rig.ts'

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

/** Sends a piece of the body each second, for so many seconds, or until an answer comes. */
async function trickle(send: (second: number) => void, seconds: number): Promise<void> {
  for (let second = 0; second < seconds && client.text === ''; second++) {
    const before = rig.engine.counters.receivedBytes
    send(second)
    await eventually(() => rig.engine.counters.receivedBytes > before || client.ended)
    clock.advance(1_000)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

const head = (framing: string) => `POST / HTTP/1.1\r\nHost: x\r\n${framing}\r\n\r\n`

describe('a request body', () => {
  test.each([
    ['with a length', head('Content-Length: 100000'), 'x'],
    ['in chunks', head('Transfer-Encoding: chunked'), '1\r\nx\r\n'],
  ])('is answered 408 if it arrives byte by byte (%s)', async (_, start, piece) => {
    client.write(start)
    await trickle(() => client.write(piece), 40)
    await client.untilEnd()
    expect(client.text).toMatch(/^HTTP\/1\.1 408 [\s\S]*request body too slow$/)
    expect(rig.plane.done[0]).toMatchObject({ status: 408, error: 'request_body_timeout' })
    await eventually(() => rig.engine.counters.upstreamConnectionsOpen === 0)
  })

  test('is held to the minimum speed also while a policy buffers it', async () => {
    rig.plane.request = (exchange) => {
      exchange.requestBody.buffer(1_000_000).then(
        () => exchange.forward(rig.plane.upstream, rig.plane.options),
        () => {},
      )
    }
    client.write(head('Content-Length: 100000'))
    await trickle(() => client.write('x'), 40)
    await client.untilEnd()
    expect(client.text).toMatch(/^HTTP\/1\.1 408 /)
  })

  test('may take any time above the minimum speed', async () => {
    client.write(head('Content-Length: 100000'))
    await trickle(() => client.write('x'.repeat(250)), 120)
    expect(client.text).toBe('')
    expect(upstream.connections[0]?.text.endsWith('xxx')).toBe(true)
  })

  test('may pause for a while', async () => {
    client.write(`${head('Content-Length: 100000')}${'x'.repeat(10_000)}`)
    await eventually(() => upstream.connections[0]?.text.endsWith('x') === true)
    clock.advance(18_000)
    client.write('x'.repeat(10_000))
    await eventually(() => (upstream.connections[0]?.received ?? 0) > 20_000)
    clock.advance(18_000)
    client.write('x'.repeat(80_000))
    await eventually(() => (upstream.connections[0]?.received ?? 0) > 100_000)
    upstream.connections[0]?.write(ok)
    await client.until(() => client.text === ok)
  })

  test('is not counted as slow while the upstream does not read it', async () => {
    upstream.onConnection = ({ socket }) => socket.pause()
    const size = 64 * 1024 * 1024
    client.write(head(`Content-Length: ${size}`))
    client.socket.write(Buffer.alloc(size, 'x'))
    let before = -1
    while (before !== rig.engine.counters.receivedBytes) {
      before = rig.engine.counters.receivedBytes
      for (let turn = 0; turn < 200; turn++) await new Promise((done) => setImmediate(done))
    }
    for (let look = 0; look < 20; look++) clock.advance(5_000)
    expect(client.text).toBe('')
    upstream.connections[0]?.socket.resume()
    await eventually(() => (upstream.connections[0]?.received ?? 0) > size)
    upstream.connections[0]?.write(ok)
    await client.until(() => client.text === ok)
  })

  test('may be arbitrarily slow once the response has begun', async () => {
    client.write(head('Transfer-Encoding: chunked'))
    await eventually(() => upstream.connections[0]?.text.includes('\r\n\r\n') === true)
    upstream.connections[0]?.write('HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab')
    await client.until(() => client.text.endsWith('ab'))
    for (let look = 0; look < 24; look++) clock.advance(5_000)
    client.write('1\r\nx\r\n0\r\n\r\n')
    await eventually(() => upstream.connections[0]?.text.endsWith('0\r\n\r\n') === true)
    upstream.connections[0]?.write('cd')
    await client.until(() => client.text.endsWith('abcd'))
  })

  test('is not expected before the upstream has asked for it with 100 Continue', async () => {
    client.write(head('Expect: 100-continue\r\nContent-Length: 5'))
    rig.plane.request = () => {}
    await eventually(() => rig.engine.counters.receivedBytes > 0)
    for (let look = 0; look < 24; look++) clock.advance(5_000)
    expect(client.text).toBe('')
  })
})

describe('an HTTP/2 stream', () => {
  const open = (headers: Record<string, string> = {}) => {
    const session = connect(`http://127.0.0.1:${rig.port}`)
    session.on('error', () => {})
    const stream = session.request({ ':method': 'POST', ...headers }, { endStream: false })
    stream.on('error', () => {})
    return { session, stream }
  }

  test('is answered 408 if its body arrives byte by byte, while others of its connection continue', async () => {
    const { session, stream } = open()
    const quick = session.request({ ':method': 'POST' }, { endStream: false })
    const answered = once(stream, 'response')
    await trickle((second) => {
      if (second < 30) stream.write('x')
      quick.write('x'.repeat(500))
    }, 30)
    const [headers] = await answered
    expect(headers[':status']).toBe(408)
    expect(quick.closed).toBe(false)
    session.destroy()
  })

  test('may be silent if it carries gRPC', async () => {
    const { session, stream } = open({ 'content-type': 'application/grpc', te: 'trailers' })
    stream.write('x')
    await eventually(() => upstream.connections[0]?.text.includes('x\r\n') === true)
    for (let look = 0; look < 24; look++) clock.advance(5_000)
    expect(stream.closed).toBe(false)
    expect(rig.plane.done).toEqual([])
    session.destroy()
  })
})

test('a minimum speed of 0 disables the limit', async () => {
  await rig.close()
  rig = await startEngine({ clock, limits: { minBodyBytesPerSecond: 0 } })
  rig.plane.upstream = upstream.address
  client = await RawConnection.connect(rig.port)
  client.write(head('Content-Length: 100000'))
  await trickle(() => client.write('x'), 60)
  expect(client.text).toBe('')
})
