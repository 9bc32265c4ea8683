/**
 * A closed-loop client of HTTP/2: frames that are ready beforehand, and just enough reading to see
 * where streams end. Windows are so large that none is ever given back.
 */
import { connect, type Socket } from 'node:net'
import {
  clientPreface,
  frameFlags,
  frameTypes,
  headerFrames,
  settingIds,
  settingsAck,
  settingsFrame,
  startFrameSize,
  windowLimit,
  windowUpdateFrame,
} from '../../src/engines/http/http2/frames.ts'
import { HpackEncoder } from '../../src/engines/http/http2/hpack-encoder.ts'
import type { Load, Scenario } from './load.ts'

const start =
  clientPreface +
  settingsFrame([[settingIds.initialWindowSize, windowLimit]]) +
  windowUpdateFrame(0, windowLimit - 65_535)

/** Keeps `streams` requests under way on each connection; the scenario's request has no body. */
export function startHttp2Load(
  port: number,
  scenario: Scenario,
  connections: number,
  streams: number,
): Load {
  const head = scenario.request.toString('latin1')
  let responses = 0
  let isStopped = false
  let failure: Error | undefined
  const fail = (text: string) => {
    if (!isStopped) failure ??= new Error(text)
  }
  const open = Array.from({ length: connections }, () => {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true })
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    const encoder = new HpackEncoder()
    let stream = -1
    const request = (count: number) => {
      let frames = ''
      for (let at = 0; at < count; at++) {
        stream += 2
        frames += headerFrames(stream, encoder.request(head, 'http'), true, startFrameSize)
      }
      socket.write(frames, 'latin1')
    }
    socket.on('error', (error) => fail(error.message))
    socket.once('close', () => fail('the proxy closed a connection under load'))
    socket.once('connect', () => {
      socket.write(start, 'latin1')
      request(streams)
    })
    readFrames(
      socket,
      (ended) => {
        responses += ended
        if (!isStopped) request(ended)
      },
      fail,
    )
    return { socket, closed }
  })
  const stop = async () => {
    isStopped = true
    for (const { socket } of open) socket.destroy()
    await Promise.all(open.map(({ closed }) => closed))
    if (failure !== undefined) throw failure
  }
  return { responses: () => responses, stop }
}

/** Tells how many streams have ended with each piece that arrives. */
function readFrames(socket: Socket, ended: (count: number) => void, fail: (text: string) => void) {
  let left: Buffer = Buffer.alloc(0)
  socket.on('data', (piece: Buffer) => {
    const bytes = left.length === 0 ? piece : Buffer.concat([left, piece])
    let at = 0
    let count = 0
    while (bytes.length - at >= 9) {
      const length = bytes.readUIntBE(at, 3)
      if (bytes.length - at < 9 + length) break
      const type = bytes[at + 3]
      const flags = bytes[at + 4] ?? 0
      if (type === frameTypes.data || type === frameTypes.headers) {
        if ((flags & frameFlags.endStream) !== 0) count++
      } else if (type === frameTypes.settings && (flags & frameFlags.ack) === 0) {
        socket.write(settingsAck, 'latin1')
      } else if (type === frameTypes.rstStream || type === frameTypes.goaway) {
        fail('the proxy refused a request under load')
      }
      at += 9 + length
    }
    left = bytes.subarray(at)
    if (count > 0) ended(count)
  })
}
