/** Streams that both sides have ended, one just after the other (RFC 9113 5.1, closed). */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { errorCodes, frameTypes, rstStreamFrame } from '../../src/engines/http/http2/frames.ts'
import { answering, type EngineRig, startEngine } from '../proxy/engine-rig.ts'
import { data, endHeaders, FrameClient, get, headers, post } from '../proxy/frame-client.ts'
import { useFixture } from '../support/fixture.ts'

let rig: EngineRig

const upstream = useFixture(() => answering('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'))
beforeEach(async () => {
  rig = await startEngine()
  rig.plane.upstream = upstream.address
})
afterEach(() => rig.close())

/** A client that got a response and RST_STREAM with NO_ERROR before its request was complete. */
async function answeredEarly(): Promise<FrameClient> {
  const client = await FrameClient.connect(rig.port)
  client.send(headers(1, post, endHeaders))
  const reset = await client.find(({ type }) => type === frameTypes.rstStream)
  expect(reset?.payload.readUInt32BE(0)).toBe(errorCodes.noError)
  client.frames.length = 0
  return client
}

describe('a stream that we have reset', () => {
  it('may still receive frames that were in transit', async () => {
    const client = await answeredEarly()
    client.send(data(1, 'late'), headers(3, get))
    expect((await client.response(3)).body).toBe('ok')
    expect(client.frames.filter(({ stream }) => stream === 1)).toEqual([])
  })

  it('gets a stream error for data after the client has reset it too', async () => {
    const client = await answeredEarly()
    client.send(rstStreamFrame(1, errorCodes.cancel), data(1, 'too late'))
    expect(await client.refusal()).toBe(`stream 1: ${errorCodes.streamClosed}`)
  })

  it('gets a connection error for a header block after the client has reset it too', async () => {
    const client = await answeredEarly()
    client.send(rstStreamFrame(1, errorCodes.cancel), headers(1, get))
    expect(await client.refusal()).toBe(`connection: ${errorCodes.streamClosed}`)
  })
})
