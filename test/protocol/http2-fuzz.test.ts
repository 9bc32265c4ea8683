import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  clientPreface,
  errorCodes,
  frameTypes,
  settingIds,
  settingsFrame,
} from '../../src/engines/http/http2/frames.ts'
import {
  answering,
  type EngineRig,
  RawConnection,
  type RawUpstream,
  startEngine,
} from '../proxy/engine-rig.ts'
import {
  endStream,
  type Field,
  FrameClient,
  frame,
  get,
  headers,
  post,
} from '../proxy/frame-client.ts'
import fc from '../support/fast-check.ts'
import { waitFor } from '../support/wait-for.ts'

/** Connections that are tried; the seed makes every run the same. */
const budget = { numRuns: 400, seed: 9_113 }

let rig: EngineRig
let upstream: RawUpstream

beforeAll(async () => {
  upstream = await answering('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')
  rig = await startEngine()
  rig.plane.upstream = upstream.address
})
afterAll(async () => {
  await rig.close()
  upstream.close()
})

const bytes = (maxLength: number) =>
  fc.uint8Array({ maxLength }).map((all) => Buffer.from(all).toString('latin1'))
const stream = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(1, 3, 5, 7, 9) },
  { weight: 1, arbitrary: fc.constantFrom(0, 2, 4, 2 ** 31 - 1) },
)
const name = fc.oneof(
  fc.constantFrom(
    'x',
    'te',
    'host',
    'cookie',
    'content-length',
    'connection',
    ':path',
    ':method',
    ':status',
    'X',
    '',
  ),
  bytes(6),
)
const value = fc.oneof(fc.constantFrom('', 'trailers', '0', '5', 'a\r\nb: c', ' a'), bytes(12))
const fields = fc
  .tuple(fc.constantFrom(get, post, []), fc.array(fc.tuple(name, value), { maxLength: 3 }))
  .map(([base, more]): readonly Field[] => [...base, ...more])

/** Frames that mean something, frames that nearly do, and bytes that are none. */
const piece = fc.oneof(
  {
    weight: 4,
    arbitrary: fc
      .tuple(stream, fields, fc.constantFrom(4, 5, 0, 1))
      .map(([id, list, flags]) => headers(id, list, flags)),
  },
  {
    weight: 3,
    arbitrary: fc
      .tuple(stream, bytes(40), fc.constantFrom(0, endStream, 8, 9))
      .map(([id, payload, flags]) => frame(frameTypes.data, flags, id, payload)),
  },
  {
    weight: 2,
    arbitrary: fc
      .tuple(fc.nat(11), fc.nat(255), stream, bytes(12))
      .map(([type, flags, id, payload]) => frame(type, flags, id, payload)),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(
        fc.constantFrom(...Object.values(settingIds)),
        fc.constantFrom(0, 1, 100, 16_384, 65_535, 2 ** 31 - 1, 2 ** 31),
      )
      .map(([id, setting]) => settingsFrame([[id, setting]])),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(stream, bytes(30))
      .map(([id, block]) => frame(frameTypes.headers, 5, id, block)),
  },
  { weight: 1, arbitrary: bytes(30) },
)
const script = fc.record({
  pieces: fc.array(piece, { minLength: 1, maxLength: 25 }),
  /** Where the bytes are cut on their way. */
  cut: fc.integer({ min: 1, max: 200 }),
})

it('no frames make the gateway fail or send an upstream a request that HTTP/1.1 does not allow', async () => {
  await fc.assert(
    fc.asyncProperty(script, async ({ pieces, cut }) => {
      const client = new FrameClient(await RawConnection.connect(rig.port))
      const all = clientPreface + settingsFrame([]) + pieces.join('')
      for (let at = 0; at < all.length; at += cut) client.send(all.slice(at, at + cut))
      client.connection.socket.end()
      await client.connection.untilEnd()
      client.parse()
      client.connection.socket.destroy()
      for (const { type, payload } of client.frames) {
        if (type === frameTypes.goaway)
          expect(payload.readUInt32BE(4)).not.toBe(errorCodes.internal)
      }
    }),
    budget,
  )
  await waitFor('every stream to end', () => rig.engine.counters.http2Streams === 0)
  expect(rig.engine.counters.coreTraps).toBe(0)
  expect(rig.plane.errors.filter((code) => code === 'bug')).toEqual([])
  expect(rig.plane.done.filter(({ error }) => error === 'bug' || error === 'core_trapped')).toEqual(
    [],
  )
  for (const { text } of upstream.connections) {
    for (const head of text.split('\r\n\r\n').filter((part) => part.includes('HTTP/1.1'))) {
      expect(head.match(/ HTTP\/1\.1(\r\n|$)/g)).toHaveLength(1)
      expect(head).not.toMatch(/^b: c/m)
    }
  }
  const after = await FrameClient.connect(rig.port)
  after.send(headers(1, get))
  expect((await after.response(1)).body).toBe('ok')
})
