/** Clients of HTTP/2 that do not take what they have asked for. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { createIoCore } from '../../src/engines/core/index.ts'
import {
  errorCodes,
  frameTypes,
  settingIds,
  windowUpdateFrame,
} from '../../src/engines/http/http2/frames.ts'
import { mostStalled } from '../../src/engines/http/http2/stalled-streams.ts'
import { answering, type EngineRig, type RawUpstream, startEngine } from '../proxy/engine-rig.ts'
import { FrameClient, get, headers } from '../proxy/frame-client.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { waitFor } from '../support/wait-for.ts'

const size = 300_000
const large = `HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n${'x'.repeat(size)}`

let rig: EngineRig
let upstream: RawUpstream
let clock: ManualClock

beforeEach(async () => {
  clock = new ManualClock()
  upstream = await answering(large)
})
afterEach(async () => {
  await rig.close()
  upstream.close()
})

async function start(options: Parameters<typeof startEngine>[0] = {}): Promise<void> {
  rig = await startEngine({ clock, ...options })
  rig.plane.upstream = upstream.address
}

const idOf = (index: number) => 2 * index + 1

/** A client with `count` requests whose responses have begun and may send `window` octets each. */
async function stalling(count: number, window: number): Promise<FrameClient> {
  const client = await FrameClient.connect(rig.port, [[settingIds.initialWindowSize, window]])
  for (let index = 0; index < count; index++) client.send(headers(idOf(index), get))
  await client.until(() => {
    const begun = client.frames.filter(({ type }) => type === frameTypes.headers).length
    return begun === count && client.dataOf(idOf(count - 1)) === window
  })
  return client
}

/** Lets time pass as it does: what is looked at every five seconds is looked at. */
function pass(seconds: number): void {
  for (let left = seconds; left > 0; left -= 5) clock.advance(5_010)
}

const resets = (client: FrameClient) => {
  client.parse()
  return client.frames
    .filter(({ type }) => type === frameTypes.rstStream)
    .map(({ stream, payload }) => [stream, payload.readUInt32BE(0)])
}

describe('HTTP/2 streams whose client does not read the response', () => {
  it('are reset after 15 seconds if the client never opened its window', async () => {
    await start()
    const count = 100
    const client = await stalling(count, 0)
    const { counters } = rig.engine
    expect(counters.readBuffersInUse).toBe(count)
    pass(10)
    expect(counters.http2StreamsStalled).toBe(0)
    pass(10)
    await client.until(() => resets(client).length === count)
    expect(new Set(resets(client).map(([, code]) => code))).toEqual(new Set([errorCodes.cancel]))
    expect(counters.http2StreamsStalled).toBe(count)
    // What they held is there for others.
    await waitFor('the buffers', () => counters.readBuffersInUse === 0)
  })

  it('may pause after some progress, but only a few of them for long', async () => {
    await start()
    const client = await stalling(mostStalled + 4, 10)
    pass(40)
    expect(rig.engine.counters.http2StreamsStalled).toBe(0)
    pass(30)
    await client.until(() => resets(client).length === 4)
    pass(300)
    expect(rig.engine.counters.http2StreamsStalled).toBe(4)
    const left = idOf(mostStalled + 3)
    expect(resets(client).map(([stream]) => stream)).not.toContain(left)
    client.send(windowUpdateFrame(0, size), windowUpdateFrame(left, size))
    await client.until(() => client.dataOf(left) === size)
  })

  it('keep new streams refused as retryable, until some make progress', async () => {
    await start()
    const client = await stalling(mostStalled, 10)
    pass(10)
    const [refused, taken] = [idOf(mostStalled), idOf(mostStalled + 1)]
    client.send(headers(refused, get))
    expect(await client.refusal()).toBe(`stream ${refused}: ${errorCodes.refusedStream}`)
    expect(rig.engine.counters.http2StreamsRefused).toBe(1)
    client.send(windowUpdateFrame(1, 1_000), headers(taken, get))
    await client.until(() => client.dataOf(taken) === 10)
    expect(rig.engine.counters.http2StreamsRefused).toBe(1)
  })

  it('are reset early while read buffers are scarce, and others are served', async () => {
    // So little that every buffer lies outside of it.
    const core = createIoCore({ memoryPages: 17 })
    await start({ core, head: core.createHead(), maxReadBuffers: 8 })
    const count = 8
    const client = await stalling(count, 10)
    pass(15)
    const { counters } = rig.engine
    await client.until(() => resets(client).length > 0)
    await waitFor('the buffers', () => counters.readBuffersInUse < count)
    const other = await FrameClient.connect(rig.port)
    other.send(windowUpdateFrame(0, size), headers(1, get), windowUpdateFrame(1, size))
    await other.until(() => other.dataOf(1) === size)
  })

  it('that make slow progress are kept', async () => {
    await start()
    const client = await stalling(mostStalled + 4, 10)
    client.send(windowUpdateFrame(0, size))
    for (let round = 1; round <= 20; round++) {
      for (let index = 0; index < mostStalled + 4; index++) {
        client.send(windowUpdateFrame(idOf(index), 300))
      }
      const last = idOf(mostStalled + 3)
      await client.until(() => client.dataOf(last) === 10 + 300 * round)
      pass(5)
    }
    expect([resets(client), rig.engine.counters.http2StreamsStalled]).toEqual([[], 0])
  })
})
