import { describe, expect, it } from 'vitest'
import {
  errorCodes,
  frameTypes,
  goawayFrame,
  pingFrame,
  rstStreamFrame,
  settingIds,
  settingsAck,
  settingsFrame,
  windowUpdateFrame,
} from '../../src/engines/http/http2/frames.ts'
import type { FloodKind } from '../../src/engines/http/limits/http2-floods.ts'
import {
  data,
  endHeaders,
  endStream,
  type Field,
  FrameClient,
  frame,
  get,
  headers,
  post,
} from '../proxy/frame-client.ts'
import { waitFor } from '../support/wait-for.ts'
import { clock, enhanceYourCalm, flowControl, limits, rig, without } from './http2-rig.ts'

/** Each counts for 32 octets more than it has (RFC 9113 6.5.2). */
const manyFields = Array.from({ length: 496 }, (): Field => ['x', 'a'])
/** A field of 3,000 octets that is added to the table (RFC 7541 6.2.1), and 200 references to it. */
const bomb = `\x40\x01x\x7f\xb9\x16${'a'.repeat(3_000)}${'\xbe'.repeat(200)}`

describe('floods are cut off and counted', () => {
  const many = (count: number, make: (at: number) => string) =>
    Array.from({ length: count }, (_, at) => make(at)).join('')

  it.each<[string, FloodKind, () => string]>([
    [
      'rapid reset',
      'reset',
      () => many(400, (at) => headers(at * 2 + 1, get) + rstStreamFrame(at * 2 + 1, 8)),
    ],
    ['malformed requests', 'reset', () => many(400, (at) => headers(at * 2 + 1, without(':path')))],
    ['settings', 'settings', () => many(100, () => settingsFrame([]))],
    ['pings', 'ping', () => many(200, () => pingFrame('12345678', false))],
    [
      'priorities',
      'priority',
      () => many(1_000, () => frame(frameTypes.priority, 0, 1, '\0\0\0\0\0')),
    ],
    ['empty data', 'empty', () => headers(1, post, endHeaders) + many(300, () => data(1, ''))],
    ['unknown frames', 'stray', () => many(1_000, () => frame(200, 0, 0))],
    ['acknowledgements of settings', 'late', () => many(1_200, () => settingsAck)],
    ['acknowledgements of pings', 'late', () => many(1_200, () => pingFrame('12345678', true))],
    [
      'window updates of a finished stream',
      'late',
      () => headers(1, get) + rstStreamFrame(1, 8) + many(1_200, () => windowUpdateFrame(1, 1)),
    ],
    [
      'resets of a finished stream',
      'late',
      () => headers(1, get) + many(1_200, () => rstStreamFrame(1, 8)),
    ],
    [
      'headers of a stream that was reset',
      'late',
      () => headers(1, without(':path')) + many(1_200, () => headers(1, get)),
    ],
    [
      'header blocks without end',
      'continuation',
      () => headers(1, get, endStream) + many(40, () => frame(frameTypes.continuation, 0, 1, '')),
    ],
    [
      'header blocks that are too large',
      'continuation',
      () =>
        headers(1, get, endStream) +
        many(10, () => frame(frameTypes.continuation, 0, 1, 'x'.repeat(16_000))),
    ],
    [
      'heads that are too large',
      'oversized',
      () => many(12, (at) => headers(at * 2 + 1, [...get, ...manyFields])),
    ],
    [
      'a small header block that is decompressed to a huge head',
      'oversized',
      () => frame(frameTypes.headers, endHeaders | endStream, 1, headers(1, get).slice(9) + bomb),
    ],
  ])('%s', async (_title, kind, flood) => {
    rig.plane.request = () => {}
    const client = await FrameClient.connect(rig.port)
    client.send(flood())
    const goaway = await client.find(({ type }) => type === frameTypes.goaway)
    expect(goaway?.payload.readUInt32BE(4)).toBe(enhanceYourCalm)
    await client.connection.untilEnd()
    expect(rig.engine.counters.http2Floods[kind]).toBe(1)
    await waitFor('the streams to end', () => rig.engine.counters.http2Streams === 0)
  })

  it('closes a connection that opens windows byte by byte', async () => {
    rig.plane.request = (exchange) => exchange.respond(200, [], 'x'.repeat(10_000))
    const client = await FrameClient.connect(rig.port, [[settingIds.initialWindowSize, 0]])
    client.send(
      headers(1, get),
      many(1_500, () => windowUpdateFrame(1, 1)),
    )
    const goaway = await client.find(({ type }) => type === frameTypes.goaway)
    expect(goaway?.payload.readUInt32BE(4)).toBe(enhanceYourCalm)
    expect(rig.engine.counters.http2Floods.window).toBe(1)
  })

  it('closes a connection whose client requests but never reads', async () => {
    const large = 'x'.repeat(32 << 20)
    rig.plane.request = (exchange) => {
      if (exchange.request.method === 'GET') exchange.respond(200, [], large)
    }
    const most = 2 ** 31 - 1
    const client = await FrameClient.connect(rig.port, [[settingIds.initialWindowSize, most]])
    client.connection.socket.pause()
    client.send(windowUpdateFrame(0, most - 65_535), headers(1, get), headers(3, post, endHeaders))
    await waitFor('the response', () => rig.engine.counters.sentBytes > 1 << 20)
    // Data between them, so that it is not the pings as such.
    client.send(many(1_200, () => data(3, 'x') + pingFrame('12345678', false)))
    await waitFor('the end', () => rig.engine.counters.http2Floods.unread === 1)
    client.connection.socket.destroy()
  })

  it('does not count window updates of finished streams as a flood', async () => {
    const client = await FrameClient.connect(rig.port)
    for (let at = 0; at < 100; at++) {
      const id = at * 2 + 1
      client.send(headers(id, get))
      await client.response(id)
      client.send(many(20, () => windowUpdateFrame(id, 100)))
    }
    client.send(headers(201, get))
    await client.response(201)
    expect(client.frames.some(({ type }) => type === frameTypes.goaway)).toBe(false)
  })

  it('does not count pings between data as a flood', async () => {
    rig.plane.request = (exchange) => exchange.respond(200, [], 'x'.repeat(400))
    const client = await FrameClient.connect(rig.port, [[settingIds.initialWindowSize, 0]])
    client.send(headers(1, get))
    for (let at = 1; at <= 400; at++) {
      client.send(pingFrame('12345678', false), windowUpdateFrame(1, 1))
      await client.until(() => client.dataOf(1) === at)
    }
    expect(client.frames.some(({ type }) => type === frameTypes.goaway)).toBe(false)
  })

  it('does not count occasional cancellations as a flood', async () => {
    const client = await FrameClient.connect(rig.port)
    for (let at = 0; at < 300; at++) {
      client.send(headers(at * 4 + 1, get), headers(at * 4 + 3, get), rstStreamFrame(at * 4 + 1, 8))
      await client.response(at * 4 + 3)
      clock.advance(20)
    }
    expect(client.frames.some(({ type }) => type === frameTypes.goaway)).toBe(false)
  })
})

describe('flow control of HTTP/2', () => {
  it('sends no more than the windows of stream and connection allow', async () => {
    rig.plane.request = (exchange) => exchange.respond(200, [], 'x'.repeat(100_000))
    const client = await FrameClient.connect(rig.port, [[settingIds.initialWindowSize, 10]])
    client.send(headers(1, get))
    await client.until(() => client.dataOf(1) === 10)
    client.send(windowUpdateFrame(1, 5))
    await client.until(() => client.dataOf(1) === 15)
    client.send(settingsFrame([[settingIds.initialWindowSize, 200_000]]))
    await client.until(() => client.dataOf(1) === 65_535)
    client.send(headers(3, get), pingFrame('12345678', false))
    await client.find(({ type, flags }) => type === frameTypes.ping && flags === 1)
    expect([client.dataOf(1), client.dataOf(3)]).toEqual([65_535, 0])
    client.send(windowUpdateFrame(0, 500_000))
    expect((await client.response(1)).body.length).toBe(100_000)
    expect((await client.response(3)).body.length).toBe(100_000)
  })

  it('pauses a stream while its window has shrunk below what was sent', async () => {
    rig.plane.request = (exchange) => exchange.respond(200, [], 'x'.repeat(100))
    const client = await FrameClient.connect(rig.port, [[settingIds.initialWindowSize, 50]])
    client.send(headers(1, get))
    await client.until(() => client.dataOf(1) === 50)
    client.send(settingsFrame([[settingIds.initialWindowSize, 10]]), windowUpdateFrame(1, 40))
    client.send(pingFrame('12345678', false))
    await client.find(({ type, flags }) => type === frameTypes.ping && flags === 1)
    expect(client.dataOf(1)).toBe(50)
    client.send(windowUpdateFrame(1, 50))
    expect((await client.response(1)).body.length).toBe(100)
  })

  it('refuses a client that sends more than its window', async () => {
    rig.plane.request = () => {}
    const port = await rig.engine.listen(0, { http2: limits })
    const client = await FrameClient.connect(port)
    const piece = 'x'.repeat(16_384)
    client.send(headers(1, post, endHeaders), ...Array.from({ length: 4 }, () => data(1, piece)))
    expect(await client.refusal()).toBe(`stream 1: ${flowControl}`)
  })
})

describe('timeouts of HTTP/2 connections', () => {
  it('closes an idle connection, and one with an incomplete header block', async () => {
    const idle = await FrameClient.connect(rig.port)
    idle.send(headers(1, get))
    await idle.response(1)
    const stuck = await FrameClient.connect(rig.port)
    stuck.send(headers(1, get, endStream))
    await stuck.find(({ type }) => type === frameTypes.settings)
    await waitFor('both', () => rig.engine.counters.http2Connections === 2)
    clock.advance(31_000)
    await stuck.connection.untilEnd()
    clock.advance(600_000)
    const goaway = await idle.find(({ type }) => type === frameTypes.goaway)
    expect(goaway?.payload.readUInt32BE(4)).toBe(0)
    await idle.connection.untilEnd()
  })

  it('resets a stream whose client neither sends nor reads', async () => {
    rig.plane.request = (exchange) => exchange.respond(200, [], 'x'.repeat(100))
    const client = await FrameClient.connect(rig.port, [[settingIds.initialWindowSize, 10]])
    client.send(headers(1, get))
    await client.until(() => client.dataOf(1) === 10)
    clock.advance(600_000)
    clock.advance(601_000)
    expect(await client.refusal()).toBe(`stream 1: ${errorCodes.cancel}`)
  })

  it('resets such a stream also if the client announces the end twice', async () => {
    rig.plane.request = (exchange) => exchange.respond(200, [], 'x'.repeat(100))
    const client = await FrameClient.connect(rig.port, [[settingIds.initialWindowSize, 10]])
    client.send(headers(1, get))
    await client.until(() => client.dataOf(1) === 10)
    client.send(goawayFrame(0, 0, ''))
    const asked = await client.find(({ type, flags }) => type === frameTypes.ping && flags === 0)
    client.send(pingFrame(asked?.payload.toString('latin1') ?? '', true))
    client.send(goawayFrame(0, 0, ''), pingFrame('the last', false))
    await client.find(({ type, flags }) => type === frameTypes.ping && flags === 1)
    clock.advance(600_000)
    clock.advance(601_000)
    expect(await client.refusal()).toBe(`stream 1: ${errorCodes.cancel}`)
  })

  it('pings silent clients if configured', async () => {
    const http2 = { ...limits, keepaliveIntervalMs: 1_000, keepaliveTimeoutMs: 500 }
    const port = await rig.engine.listen(0, { http2 })
    const client = await FrameClient.connect(port)
    await client.find(({ type, flags }) => type === frameTypes.settings && flags === 1)
    clock.advance(1_100)
    const asked = await client.find(({ type }) => type === frameTypes.ping)
    client.send(pingFrame(asked?.payload.toString('latin1') ?? '', true), headers(1, get))
    await client.response(1)
    clock.advance(1_100)
    await client.until(
      () => client.frames.filter(({ type }) => type === frameTypes.ping).length > 1,
    )
    clock.advance(600)
    await client.connection.until(() => client.connection.closed || client.connection.ended)
  })
})
