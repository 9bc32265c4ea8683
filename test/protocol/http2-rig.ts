import { afterEach, beforeEach } from 'vitest'
import { errorCodes } from '../../src/engines/http/http2/frames.ts'
import { answering, type EngineRig, startEngine } from '../proxy/engine-rig.ts'
import { get } from '../proxy/frame-client.ts'
import { useFixture } from '../support/fixture.ts'
import { ManualClock } from '../support/manual-clock.ts'

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
export const { protocol, streamClosed, flowControl, frameSize, compression, enhanceYourCalm } =
  errorCodes

export let rig: EngineRig
export const clock = new ManualClock()

export const upstream = useFixture(() => answering(ok))
beforeEach(async () => {
  rig = await startEngine({ clock })
  rig.plane.upstream = upstream.address
})
afterEach(() => rig.close())

export const without = (name: string) => get.filter(([key]) => key !== name)

export const limits = {
  maxConcurrentStreams: 100,
  streamWindowBytes: 65_535,
  connectionWindowBytes: 100_000,
  maxFrameBytes: 16_384,
  keepaliveIntervalMs: 0,
  keepaliveTimeoutMs: 20_000,
}
