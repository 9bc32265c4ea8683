import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { ResponseStream } from '../../src/engines/http/contracts/requests.ts'
import {
  clientPreface,
  errorCodes,
  frameTypes,
  rstStreamFrame,
  settingsFrame,
  windowUpdateFrame,
} from '../../src/engines/http/http2/frames.ts'
import { type EngineRig, RawUpstream, startEngine } from '../proxy/engine-rig.ts'
import {
  data,
  endHeaders,
  endStream,
  FrameClient,
  frame,
  get,
  headers,
  post,
} from '../proxy/frame-client.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { waitFor } from '../support/wait-for.ts'

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

const word = (value: number) => String.fromCharCode(0, 0, value >> 8, value & 0xff)
const priority = (stream: number, payload: string) => frame(frameTypes.priority, 0, stream, payload)
const withLength = (length: string) => [...post, ['content-length', length] as const]
const largest = 2 ** 31 - 1

/** What makes a server reset a stream, by what the client sends on it. */
const faults: readonly (readonly [string, (id: number) => string])[] = [
  ['a window update of zero', (id) => headers(id, get) + windowUpdateFrame(id, 0)],
  ['a window above its limit', (id) => headers(id, get) + windowUpdateFrame(id, largest)],
  ['DATA after the end of the stream', (id) => headers(id, get) + data(id, 'x')],
  [
    'an empty DATA frame after the end of the stream',
    (id) => headers(id, get) + data(id, '', endStream),
  ],
  ['HEADERS after the end of the stream', (id) => headers(id, get) + headers(id, [['x', 'y']])],
  ['a stream that depends on itself', (id) => headers(id, get) + priority(id, `${word(id)}\0`)],
  ['a PRIORITY frame of a wrong size', (id) => headers(id, get) + priority(id, '\0\0\0\0')],
  ['more data than content-length', (id) => headers(id, withLength('1'), 4) + data(id, 'xx')],
  ['less data than content-length', (id) => headers(id, withLength('9'), 4) + data(id, 'x', 1)],
  ['trailers with a pseudo-header', (id) => headers(id, post, endHeaders) + headers(id, get)],
  [
    'trailers that do not end the stream',
    (id) => headers(id, post, endHeaders) + headers(id, [['x', 'y']], endHeaders),
  ],
  [
    'trailers that change the framing',
    (id) => headers(id, post, endHeaders) + headers(id, [['content-length', '3']]),
  ],
]

/** Most streams that a peer may have reset at once. */
const allowance = 200

async function expectCutOff(client: FrameClient): Promise<void> {
  const goaway = await client.find(({ type }) => type === frameTypes.goaway)
  expect(goaway?.payload.readUInt32BE(4)).toBe(errorCodes.enhanceYourCalm)
  await client.connection.untilEnd()
  expect(rig.engine.counters.http2Floods.reset).toBe(1)
  await waitFor('the streams to end', () => rig.engine.counters.http2Streams === 0)
}

describe('streams that the gateway resets for faults of the client (CVE-2025-8671)', () => {
  it.each(faults)('close the connection above a limit: %s', async (_title, fault) => {
    const client = await FrameClient.connect(rig.port)
    for (let at = 0; at < 2_000 && !client.connection.ended; at++) {
      client.send(fault(at * 2 + 1))
      if (at % 50 === 49) await new Promise((resolve) => setImmediate(resolve))
    }
    await expectCutOff(client)
    expect(rig.plane.done.length).toBeLessThanOrEqual(allowance + 1)
    expect(upstream.connections.length).toBeLessThanOrEqual(allowance + 1)
  })

  it.each(faults)('are not compensated by answered requests: %s', async (_title, fault) => {
    upstream.onData = (connection) => {
      if (connection.text.includes('/good'))
        connection.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
    }
    const good = get.map(([name, value]) => [name, name === ':path' ? '/good' : value] as const)
    const client = await FrameClient.connect(rig.port)
    for (let at = 0; at < 400 && !client.connection.ended; at++) {
      client.send(fault(at * 4 + 1), headers(at * 4 + 3, good))
      await client.response(at * 4 + 3)
    }
    await expectCutOff(client)
    const good200 = rig.plane.done.filter(({ status }) => status === 200).length
    expect(good200).toBeLessThanOrEqual(allowance + 1)
  })

  it('end their requests at once, without an answer or a retry', async () => {
    const client = await FrameClient.connect(rig.port)
    client.send(headers(1, get))
    await waitFor('the request', () => upstream.connections.length === 1)
    client.send(windowUpdateFrame(1, 0))
    expect(await client.refusal()).toBe(`stream 1: ${errorCodes.protocol}`)
    await waitFor('the end of the request', () => rig.plane.done.length === 1)
    expect(rig.plane.done[0]).toMatchObject({
      status: 0,
      respondedBy: 'none',
      ending: 'client-closed',
      error: 'bad_request',
    })
    expect(rig.plane.errors).toEqual([])
    await upstream.connections[0]?.until(() => upstream.connections[0]?.ended === true)
  })

  it('are tolerated occasionally', async () => {
    const client = await FrameClient.connect(rig.port)
    for (let at = 0; at < 600; at++) {
      const id = at * 2 + 1
      client.send(headers(id, get), windowUpdateFrame(id, 0))
      await client.find(({ type, stream }) => type === frameTypes.rstStream && stream === id)
      clock.advance(50)
    }
    expect(client.frames.some(({ type }) => type === frameTypes.goaway)).toBe(false)
  })
})

describe('a PRIORITY frame of a wrong size', () => {
  it('on an idle stream ends the connection', async () => {
    const client = await FrameClient.connect(rig.port)
    client.send(priority(1, '\0\0\0\0'))
    expect(await client.refusal()).toBe(`connection: ${errorCodes.frameSize}`)
  })

  it('on closed streams is counted', async () => {
    rig.plane.request = (exchange) => exchange.respond(204, [], undefined)
    const client = await FrameClient.connect(rig.port)
    client.send(headers(1, get))
    await client.response(1)
    client.send(priority(1, '\0\0\0\0').repeat(2_000))
    const goaway = await client.find(({ type }) => type === frameTypes.goaway)
    expect(goaway?.payload.readUInt32BE(4)).toBe(errorCodes.enhanceYourCalm)
  })
})

describe('HTTP/2 frames that are ignored', () => {
  const flooded = async (client: FrameClient, kind: 'stray' | 'late') => {
    const goaway = await client.find(({ type }) => type === frameTypes.goaway)
    expect(goaway?.payload.readUInt32BE(4)).toBe(errorCodes.enhanceYourCalm)
    expect(rig.engine.counters.http2Floods[kind]).toBe(1)
  }

  it('are counted if they are data on a reset stream beyond its window', async () => {
    rig.plane.request = (exchange) => exchange.respond(413, [], undefined)
    const client = await FrameClient.connect(rig.port)
    client.send(headers(1, post, endHeaders))
    await client.find(({ type }) => type === frameTypes.rstStream)
    client.send(data(1, 'x'.repeat(1_024)).repeat(256))
    client.send(headers(3, get))
    expect((await client.response(3)).fields[0]).toBe(':status: 413')
    client.send(data(1, 'x').repeat(600))
    await flooded(client, 'stray')
  })

  it('are counted if they are empty DATA on a reset stream', async () => {
    rig.plane.request = (exchange) => exchange.respond(413, [], undefined)
    const client = await FrameClient.connect(rig.port)
    client.send(headers(1, post, endHeaders), data(1, '', endStream).repeat(1_100))
    await flooded(client, 'late')
  })

  it('are counted if they are small window updates while no data waits', async () => {
    rig.plane.request = () => {}
    const client = await FrameClient.connect(rig.port)
    client.send(headers(1, get), (windowUpdateFrame(1, 1) + windowUpdateFrame(0, 1)).repeat(600))
    await flooded(client, 'late')
  })

  it('are tolerated in proportion to the data', async () => {
    let stream: ResponseStream | undefined
    rig.plane.request = (exchange) => {
      stream = exchange.respondStream(200, [])
    }
    const client = await FrameClient.connect(rig.port)
    client.send(headers(1, get))
    await client.find(({ type }) => type === frameTypes.headers)
    for (let at = 1; at <= 600; at++) {
      stream?.write(Buffer.from('x'))
      await client.until(() => client.dataOf(1) === at)
      client.send(windowUpdateFrame(0, 1).repeat(2), windowUpdateFrame(1, 1).repeat(2))
    }
    expect(client.frames.some(({ type }) => type === frameTypes.goaway)).toBe(false)
  })
})

it('a client that reads no response heads is disconnected before they fill the memory', async () => {
  rig.plane.request = (exchange) => exchange.respond(204, [['x', 'y'.repeat(3_000)]], undefined)
  const client = await FrameClient.connect(rig.port)
  client.connection.socket.pause()
  for (let id = 1; id < 20_000 && rig.engine.counters.http2Floods.unread === 0; ) {
    let requests = ''
    for (let at = 0; at < 100; at++, id += 2) requests += headers(id, get)
    client.send(requests)
    await new Promise((resolve) => setImmediate(resolve))
  }
  await waitFor('the end', () => rig.engine.counters.http2Floods.unread === 1)
  client.connection.socket.destroy()
})

describe('an HTTP/2 upstream', () => {
  /** Answers every request of every connection with what `reply` makes of its stream. */
  const answer = (reply: (stream: number) => string) => {
    rig.plane.upstream = { ...upstream.address, isHttp2: true }
    upstream.onConnection = (connection) => {
      connection.write(settingsFrame([]))
      const frames = new FrameClient(connection, clientPreface.length)
      let answered = 0
      upstream.onData = () => {
        frames.parse()
        const requests = frames.frames.filter(({ type }) => type === frameTypes.headers)
        for (; answered < requests.length; answered++) {
          connection.write(reply(requests[answered]?.stream ?? 0))
        }
      }
    }
  }
  const ask = async (count: number) => {
    const client = await FrameClient.connect(rig.port)
    for (let at = 0; at < count; at++) {
      client.send(headers(at * 2 + 1, get))
      await client.response(at * 2 + 1)
    }
    return client
  }

  it('with repeatedly malformed answers loses its connection', async () => {
    answer((id) => headers(id, [['x', 'y']]))
    await ask(allowance + 20)
    expect(rig.plane.errors).toEqual(Array(allowance + 20).fill('upstream_malformed'))
    expect(upstream.connections.length).toBe(2)
    expect(rig.engine.counters.http2Floods.reset).toBe(1)
  })

  it('that resets requests keeps its connection', async () => {
    answer((id) => rstStreamFrame(id, errorCodes.internal))
    await ask(allowance + 20)
    expect(upstream.connections.length).toBe(1)
  })

  it('that sends frames on closed streams loses its connection', async () => {
    const ok = [[':status', '204']] as const
    answer((id) => headers(id, ok) + windowUpdateFrame(id, 1).repeat(2_000))
    const client = await ask(1)
    await waitFor('the flood', () => rig.engine.counters.http2Floods.late === 1)
    expect((await client.response(1)).fields[0]).toBe(':status: 204')
  })
})
