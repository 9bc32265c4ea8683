import { afterEach, beforeEach } from 'vitest'
import { type EngineRig, RawUpstream, startEngine } from './engine-rig.ts'

export const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

export let rig: EngineRig
export let upstream: RawUpstream

beforeEach(async () => {
  rig = await startEngine()
  upstream = await RawUpstream.start()
  rig.plane.upstream = upstream.address
})

afterEach(async () => {
  await rig.close()
  upstream.close()
})
