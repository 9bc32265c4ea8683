import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  clientPreface,
  frameTypes,
  goawayFrame,
  rstStreamFrame,
  settingsFrame,
  windowUpdateFrame,
} from '../../src/engines/http/http2/frames.ts'
import { send } from '../support/http-client.ts'
import {
  type EngineRig,
  eventually,
  type RawConnection,
  RawUpstream,
  startEngine,
} from './engine-rig.ts'
import { data, endHeaders, endStream, FrameClient, headers } from './frame-client.ts'

let rig: EngineRig
let upstream: RawUpstream
beforeEach(async () => {
  rig = await startEngine()
  upstream = await RawUpstream.start()
  rig.plane.upstream = { ...upstream.address, isHttp2: true }
})
afterEach(async () => {
  await rig.close()
  upstream.close()
})

type Reply = (connection: RawConnection, stream: number, connectionIndex: number) => void

/** An HTTP/2 upstream that calls a function for each request head. */
function onHead(reply: Reply): void {
  const clients = new Map<RawConnection, { frames: FrameClient; heads: number }>()
  upstream.onConnection = (connection) => connection.write(settingsFrame([]))
  upstream.onData = (connection) => {
    if (!connection.text.startsWith(clientPreface)) return
    const client = clients.get(connection) ?? {
      frames: new FrameClient(connection, clientPreface.length),
      heads: 0,
    }
    clients.set(connection, client)
    client.frames.parse()
    const heads = client.frames.frames.filter(({ type }) => type === frameTypes.headers)
    for (; client.heads < heads.length; client.heads++) {
      reply(connection, heads[client.heads]?.stream ?? 0, upstream.connections.indexOf(connection))
    }
  }
}

const whole = (stream: number, body: string) =>
  headers(stream, [[':status', '200']], endHeaders) + data(stream, body, endStream)
const post = (body: string) => send(rig.port, { method: 'POST', path: '/', body })

/** Says goodbye, names no request as processed, and is gone with whatever was on its way. */
function sayGoodbye(connection: RawConnection): void {
  connection.socket.pause()
  connection.socket.write(Buffer.from(goawayFrame(0, 0, ''), 'latin1'), () =>
    connection.socket.destroy(),
  )
}

describe('a request that an HTTP/2 upstream has not processed', () => {
  test('is resent if the upstream sends GOAWAY and closes at once', async () => {
    onHead((connection, stream, index) => {
      if (index === 0) sayGoodbye(connection)
      else connection.write(whole(stream, 'second'))
    })
    expect(await post('body')).toMatchObject({ status: 200, body: 'second' })
    expect(rig.plane.errors).toEqual([])
  })

  test('is resent again if several connections are closed in turn', async () => {
    onHead((connection, stream, index) => {
      if (index === 0) sayGoodbye(connection)
      else if (index === 1) connection.write(rstStreamFrame(stream, 7))
      else if (index === 2) connection.write(goawayFrame(0, 11, 'calm down'))
      else connection.write(whole(stream, 'fourth'))
    })
    expect(await post('body')).toMatchObject({ status: 200, body: 'fourth' })
  })

  test('fails with 503 if no connection processes it', async () => {
    onHead((connection, stream) => connection.write(rstStreamFrame(stream, 7)))
    expect(await post('body')).toMatchObject({ status: 503 })
    expect(upstream.connections).toHaveLength(4)
  })

  test('shares a new connection with other requests that were lost with it', async () => {
    const count = 40
    let seen = 0
    onHead((connection, stream, index) => {
      if (index > 0) connection.write(whole(stream, 'second'))
      else if (++seen === count) connection.write(goawayFrame(0, 0, ''))
    })
    const got = await Promise.all(Array.from({ length: count }, () => post('body')))
    expect(new Set(got.map(({ status }) => status))).toEqual(new Set([200]))
    expect(upstream.connections).toHaveLength(2)
  })

  test('is not resent if more of its body was sent than the gateway keeps', async () => {
    onHead((connection) => {
      const { socket } = connection
      socket.on('data', () => {
        if (connection.received > 48_000) sayGoodbye(connection)
      })
    })
    expect(await post('x'.repeat(1024 * 1024))).toMatchObject({ status: 503 })
    expect(upstream.connections).toHaveLength(1)
  })

  test('is resent in full if a policy holds its whole body', async () => {
    rig.plane.request = (exchange) => {
      void exchange.requestBody.buffer(2 * 1024 * 1024).then(() => {
        exchange.forward(rig.plane.upstream, rig.plane.options)
      })
    }
    const body = 'held'.repeat(50_000)
    onHead((connection, stream, index) => {
      if (index === 0) {
        sayGoodbye(connection)
        return
      }
      connection.write(windowUpdateFrame(0, body.length) + windowUpdateFrame(stream, body.length))
      void connection
        .until(() => connection.received > body.length)
        .then(() => connection.write(whole(stream, 'second')))
    })
    expect(await post(body)).toMatchObject({ status: 200, body: 'second' })
  })

  test('is resent if the gateway itself made it', async () => {
    onHead((connection, stream, index) => {
      if (index === 0) sayGoodbye(connection)
      else if (index === 1) connection.write(rstStreamFrame(stream, 7))
      else connection.write(whole(stream, 'third'))
    })
    let text = ''
    let over = ''
    rig.engine.call(
      {
        address: rig.plane.upstream,
        head: 'POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\n',
        body: Buffer.from('body'),
        isOnce: true,
        connectTimeoutMs: 0,
        timeoutMs: 0,
      },
      {
        onHead: () => {},
        onBytes: (bytes) => {
          text += Buffer.from(bytes).toString()
        },
        onEnd: () => {
          over = 'complete'
        },
        onFailure: (error) => {
          over = error.code
        },
      },
    )
    await eventually(() => over !== '')
    expect([over, text]).toEqual(['complete', 'third'])
  })
})
