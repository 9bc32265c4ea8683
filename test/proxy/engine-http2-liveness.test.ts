import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  clientPreface,
  frameTypes,
  pingFrame,
  rstStreamFrame,
  settingIds,
  settingsFrame,
} from '../../src/engines/http/http2/frames.ts'
import { ManualClock } from '../support/manual-clock.ts'
import {
  type EngineRig,
  eventually,
  RawConnection,
  RawUpstream,
  startEngine,
} from './engine-rig.ts'
import { data, endHeaders, endStream, FrameClient, headers } from './frame-client.ts'

let clock: ManualClock
let rig: EngineRig
let upstream: RawUpstream
/** Frames that each connection of the upstream has received, in the order of the connections. */
const peers = new Map<RawConnection, FrameClient>()
/** What the upstream does: whether a connection, by its number, answers requests, PINGs or at all. */
let answersRequests: (connection: number) => boolean
let answersPings: (connection: number) => boolean
let sendsSettings: (connection: number) => boolean

const framesOf = (connection: number, type: number) => {
  const peer = peers.get(upstream.connections[connection] as RawConnection)
  peer?.parse()
  return peer?.frames.filter((frame) => frame.type === type) ?? []
}
const requestsOf = (connection: number) => framesOf(connection, frameTypes.headers).length
const pingsOf = (connection: number) => framesOf(connection, frameTypes.ping).length

function serve(connection: RawConnection): void {
  if (!connection.text.startsWith(clientPreface)) return
  let peer = peers.get(connection)
  if (peer === undefined) {
    peer = new FrameClient(connection, clientPreface.length)
    peers.set(connection, peer)
  }
  const at = upstream.connections.indexOf(connection)
  const from = peer.frames.length
  peer.parse()
  for (const { type, stream, flags, payload } of peer.frames.slice(from)) {
    if (type === frameTypes.headers && answersRequests(at)) {
      connection.write(
        headers(
          stream,
          [
            [':status', '200'],
            ['content-length', '1'],
          ],
          endHeaders,
        ) + data(stream, `${at}`, endStream),
      )
    } else if (type === frameTypes.ping && flags === 0 && answersPings(at)) {
      connection.write(pingFrame(payload.toString('latin1'), true))
    }
  }
}

beforeEach(async () => {
  clock = new ManualClock()
  rig = await startEngine({ clock })
  upstream = await RawUpstream.start()
  peers.clear()
  answersRequests = () => true
  answersPings = () => true
  sendsSettings = () => true
  upstream.onConnection = (connection) => {
    if (sendsSettings(upstream.connections.indexOf(connection))) connection.write(settingsFrame([]))
  }
  upstream.onData = serve
  rig.plane.upstream = { ...upstream.address, isHttp2: true }
})
afterEach(async () => {
  await rig.close()
  upstream.close()
})

async function ask(method = 'GET'): Promise<RawConnection> {
  const client = await RawConnection.connect(rig.port)
  client.write(`${method} / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n`)
  return client
}
const answerOf = async (client: RawConnection) => {
  const [text = ''] = await client.responses(1)
  return `${text.slice(9, 12)} ${text.slice(text.indexOf('\r\n\r\n') + 4)}`
}
/** Asks, and lets `ms` pass once the request has arrived on this connection of the upstream. */
async function askAndPass(connection: number, count: number, ms: number): Promise<string> {
  const client = await ask()
  await eventually(() => requestsOf(connection) === count)
  clock.advance(ms)
  return (await answerOf(client)).slice(0, 3)
}

describe('a silent HTTP/2 upstream connection', () => {
  beforeEach(() => {
    rig.plane.options = { connectTimeoutMs: 0, attemptTimeoutMs: 0, requestTimeoutMs: 1_000 }
  })

  it('takes no request after one has timed out, and is closed if a PING is not answered', async () => {
    expect(await answerOf(await ask())).toBe('200 0')
    answersRequests = (connection) => connection > 0
    answersPings = () => false
    expect(await askAndPass(0, 2, 1_100)).toBe('504')
    expect(await answerOf(await ask('POST'))).toBe('200 1')
    await eventually(() => pingsOf(0) === 1)
    clock.advance(5_100)
    await eventually(() => upstream.connections[0]?.ended === true)
    expect(rig.engine.counters.upstreamConnectionsOpen).toBe(1)
  })

  it('is used again if it answers the PING', async () => {
    expect(await answerOf(await ask())).toBe('200 0')
    answersRequests = () => false
    expect(await askAndPass(0, 2, 1_100)).toBe('504')
    answersRequests = () => true
    await eventually(() => pingsOf(0) === 1)
    // The answer to the PING is on its way; until it arrives, requests go to another connection.
    for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
    clock.advance(5_100)
    expect(await answerOf(await ask())).toBe('200 0')
    expect(upstream.connections).toHaveLength(1)
  })

  it('is replaced if it answers only PINGs, so that no more than two are sent', async () => {
    expect(await answerOf(await ask())).toBe('200 0')
    answersRequests = (connection) => connection > 0
    for (let count = 2; count <= 4; count++) {
      expect(await askAndPass(0, count, 1_100)).toBe('504')
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
    }
    expect(await answerOf(await ask())).toBe('200 1')
    expect(pingsOf(0)).toBe(2)
  })

  it('is not used for the retry after a timeout of an attempt', async () => {
    expect(await answerOf(await ask())).toBe('200 0')
    answersRequests = (connection) => connection > 0
    answersPings = () => false
    rig.plane.options = { connectTimeoutMs: 0, attemptTimeoutMs: 300, requestTimeoutMs: 5_000 }
    rig.plane.failure = (exchange) => exchange.forward(rig.plane.upstream, rig.plane.options)
    const client = await ask()
    await eventually(() => requestsOf(0) === 2)
    clock.advance(400)
    expect(await answerOf(client)).toBe('200 1')
  })

  it('is not used for the next call of the gateway after a timeout', async () => {
    const call = (onFailure: () => void) =>
      new Promise<number>((resolve) => {
        rig.engine.call(
          {
            address: rig.plane.upstream,
            head: 'GET / HTTP/1.1\r\nhost: a\r\n\r\n',
            body: undefined,
            timeoutMs: 1_000,
            connectTimeoutMs: 0,
          },
          { onHead: resolve, onBytes: () => {}, onEnd: () => {}, onFailure },
        )
      })
    expect(await call(() => {})).toBe(200)
    answersRequests = (connection) => connection > 0
    answersPings = () => false
    const again = new Promise<number>((resolve) => {
      void call(() => void call(() => {}).then(resolve))
    })
    await eventually(() => requestsOf(0) === 2)
    clock.advance(1_100)
    expect(await again).toBe(200)
    expect(upstream.connections).toHaveLength(2)
  })
})

describe('an HTTP/2 upstream connection', () => {
  it('is checked with the first request after a silence, which is sent again if it is lost', async () => {
    expect(await answerOf(await ask())).toBe('200 0')
    answersRequests = (connection) => connection > 0
    answersPings = () => false
    clock.advance(6_000)
    const client = await ask()
    await eventually(() => requestsOf(0) === 2 && pingsOf(0) === 1)
    clock.advance(5_100)
    expect(await answerOf(client)).toBe('200 1')
  })

  it('is closed if it sends no SETTINGS within 10 seconds', async () => {
    sendsSettings = (connection) => connection > 0
    answersRequests = () => false
    const client = await ask()
    await eventually(() => requestsOf(0) === 1)
    clock.advance(10_100)
    expect((await answerOf(client)).slice(0, 3)).toBe('503')
    answersRequests = () => true
    expect(await answerOf(await ask())).toBe('200 1')
  })

  it('takes no more new requests if SETTINGS are late', async () => {
    sendsSettings = (connection) => connection > 0
    answersRequests = (connection) => connection > 0
    await ask()
    await eventually(() => requestsOf(0) === 1)
    clock.advance(1_500)
    expect(await answerOf(await ask())).toBe('200 1')
  })
})

describe('an HTTP/2 upstream with few streams', () => {
  it.each([1, 2, 10])('serves a burst on new connections, with %i at once', async (limit) => {
    const open = new Map<RawConnection, number>()
    upstream.onConnection = (connection) => {
      connection.write(settingsFrame([[settingIds.maxConcurrentStreams, limit]]))
    }
    upstream.onData = (connection) => {
      if (!connection.text.startsWith(clientPreface)) return
      const peer = peers.get(connection) ?? new FrameClient(connection, clientPreface.length)
      peers.set(connection, peer)
      const from = peer.frames.length
      peer.parse()
      for (const { type, stream } of peer.frames.slice(from)) {
        if (type !== frameTypes.headers) continue
        const count = (open.get(connection) ?? 0) + 1
        open.set(connection, count)
        // Later streams come when others are complete, but none is complete before the burst is over.
        connection.write(
          count > limit
            ? rstStreamFrame(stream, 7)
            : headers(stream, [[':status', '200']], endHeaders),
        )
      }
    }
    const clients = await Promise.all(Array.from({ length: 50 }, () => ask('POST')))
    await Promise.all(clients.map((client) => client.until(() => client.text.includes('\r\n'))))
    expect(clients.filter(({ text }) => text.startsWith('HTTP/1.1 200'))).toHaveLength(50)
  })

  it('does not send a request forever that is always refused', async () => {
    upstream.onConnection = (connection) => {
      connection.write(settingsFrame([[settingIds.maxConcurrentStreams, 2]]))
    }
    upstream.onData = (connection) => {
      if (!connection.text.startsWith(clientPreface)) return
      const peer = peers.get(connection) ?? new FrameClient(connection, clientPreface.length)
      peers.set(connection, peer)
      const from = peer.frames.length
      peer.parse()
      for (const { type, stream } of peer.frames.slice(from)) {
        if (type === frameTypes.headers) {
          connection.write(rstStreamFrame(stream, 7))
        }
      }
    }
    const clients = await Promise.all(Array.from({ length: 20 }, () => ask()))
    for (const client of clients) expect((await answerOf(client)).slice(0, 3)).toBe('503')
  })
})
