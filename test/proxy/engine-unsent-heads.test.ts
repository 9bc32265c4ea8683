/** Responses that fail before a byte of them was sent: the client gets an error in their place. */
import { connect } from 'node:http2'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { BodyTransform } from '../../src/ground/exchange/exchange.ts'
import { useFixture } from '../support/fixture.ts'
import { ManualClock } from '../support/manual-clock.ts'
import {
  type EngineRig,
  eventually,
  RawConnection,
  RawUpstream,
  startEngine,
} from './engine-rig.ts'

/** A clock whose timers are called late, as in a busy process. */
class BusyClock extends ManualClock {
  lateMs = 0

  override now(): number {
    return super.now() + this.lateMs
  }
}

interface Received {
  readonly status: number
  readonly body: string
  /** Whether the response ended as it should. */
  readonly isWhole: boolean
}

const request = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'
const chunkedHead = 'HTTP/1.1 200 OK\r\nX-From: upstream\r\nTransfer-Encoding: chunked\r\n\r\n'

let rig: EngineRig
let clock: BusyClock
const upstream = useFixture(() => RawUpstream.start())
beforeEach(async () => {
  clock = new BusyClock()
  rig = await startEngine({ clock })
  rig.plane.upstream = upstream.address
})
afterEach(() => rig.close())

async function askOverHttp1(): Promise<Received> {
  const client = await RawConnection.connect(rig.port)
  client.write(request)
  const [first] = await client.responses(1)
  const text = first ?? client.text
  const isWhole = first !== undefined
  client.socket.destroy()
  return { status: Number(text.slice(9, 12)), body: text.split('\r\n\r\n')[1] ?? '', isWhole }
}

async function askOverHttp2(): Promise<Received> {
  const session = connect(`http://127.0.0.1:${rig.port}`)
  const stream = session.request({ ':path': '/' })
  let status = 0
  let body = ''
  stream.on('response', (head) => {
    status = head[':status'] ?? 0
  })
  stream.on('data', (piece: Buffer) => {
    body += piece.toString()
  })
  stream.on('error', () => {})
  await new Promise((resolve) => stream.on('close', resolve))
  session.destroy()
  return { status, body, isWhole: stream.rstCode === 0 }
}

function answerWith(text: string): void {
  upstream.onData = (connection) => connection.write(text)
}

describe.each([
  ['HTTP/1.1', askOverHttp1],
  ['HTTP/2', askOverHttp2],
])('a client of %s', (_version, ask) => {
  it('gets 502 if the body is malformed from its first byte', async () => {
    answerWith(`${chunkedHead}zz\r\nhello\r\n`)
    expect(await ask()).toMatchObject({ status: 502, isWhole: true })
    await eventually(() => rig.plane.done.length > 0)
    expect(rig.plane.done).toMatchObject([
      { status: 502, respondedBy: 'gateway', ending: 'complete', error: 'upstream_malformed' },
    ])
    expect(rig.plane.done[0]?.responseBytes).toBe((await ask()).body.length)
  })

  it('gets a broken response if a part of it was sent before', async () => {
    answerWith(`${chunkedHead}5\r\nhello\r\n`)
    rig.plane.response = (exchange) => {
      exchange.relay()
      upstream.connections.at(-1)?.write('zz\r\n')
    }
    expect(await ask()).toMatchObject({ status: 200, isWhole: false })
    expect(rig.plane.done).toMatchObject([{ status: 200, ending: 'upstream-cut' }])
  })

  it('gets 500 if a transform fails before it has returned anything', async () => {
    answerWith(`${chunkedHead}5\r\nhello\r\n0\r\n\r\n`)
    const failing: BodyTransform = {
      push() {
        throw new Error('broken')
      },
      end: () => {},
    }
    rig.plane.response = (exchange) => {
      exchange.responseBody?.through(failing)
      exchange.relay()
    }
    expect(await ask()).toMatchObject({ status: 500, isWhole: true })
    expect(rig.plane.done).toMatchObject([{ status: 500, respondedBy: 'gateway', error: 'bug' }])
  })

  it('gets 500 if a transform fails with bytes that were held back', async () => {
    answerWith('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello')
    const failing: BodyTransform = {
      push() {
        throw new Error('broken')
      },
      end: () => {},
    }
    rig.plane.response = (exchange) => {
      exchange.responseBody?.through(failing)
      setImmediate(() => exchange.relay())
    }
    expect(await ask()).toMatchObject({ status: 500, isWhole: true })
  })

  it('gets 504 if the head comes after the deadline, although its timer was not called', async () => {
    rig.plane.options = { connectTimeoutMs: 0, attemptTimeoutMs: 0, requestTimeoutMs: 100 }
    upstream.onData = (connection) => {
      clock.lateMs = 150
      connection.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n')
    }
    expect(await ask()).toMatchObject({ status: 504, isWhole: true })
    expect(rig.plane.done).toMatchObject([
      { status: 504, respondedBy: 'gateway', error: 'route_timeout' },
    ])
    expect(rig.plane.errors).toEqual(['route_timeout'])
    clock.advance(1_000)
    expect(rig.plane.errors).toEqual(['route_timeout'])
  })

  it('gets 504 if the deadline passes while the response is decided', async () => {
    rig.plane.options = { connectTimeoutMs: 0, attemptTimeoutMs: 100, requestTimeoutMs: 0 }
    answerWith('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n')
    rig.plane.response = (exchange) => {
      setImmediate(() => {
        clock.lateMs = 150
        exchange.relay()
      })
    }
    expect(await ask()).toMatchObject({ status: 504, isWhole: true })
    expect(rig.plane.done).toMatchObject([{ status: 504, error: 'upstream_timeout' }])
  })

  it('gets a complete response that is relayed after the deadline', async () => {
    rig.plane.options = { connectTimeoutMs: 0, attemptTimeoutMs: 100, requestTimeoutMs: 0 }
    answerWith('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello')
    rig.plane.response = (exchange) => exchange.bufferResponse(100)
    rig.plane.wholeResponse = (exchange) => {
      clock.lateMs = 150
      setImmediate(() => exchange.relay())
    }
    expect(await ask()).toMatchObject({ status: 200, body: 'hello', isWhole: true })
  })
})

it('sends the head of a stream of the gateway before the stream has a byte', async () => {
  answerWith('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello')
  let end: (() => void) | undefined
  rig.plane.response = (exchange) => {
    const stream = exchange.respondStream(201, [['x-own', '1']])
    end = () => stream?.end()
  }
  const client = await RawConnection.connect(rig.port)
  client.write(request)
  await client.until(() => client.text.includes('x-own: 1\r\n'))
  end?.()
  expect((await client.responses(1))[0]).toMatch(/^HTTP\/1\.1 201 /)
})

it('keeps the connection of HTTP/1.1 after a response was replaced', async () => {
  answerWith(`${chunkedHead}zz\r\nhello\r\n`)
  const client = await RawConnection.connect(rig.port)
  client.write(request)
  await client.responses(1)
  answerWith('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
  client.write(request)
  const [first, second] = await client.responses(2)
  expect(first).toMatch(/^HTTP\/1\.1 502 /)
  expect(first).not.toMatch(/x-from/i)
  expect(second).toMatch(/ok$/)
})
