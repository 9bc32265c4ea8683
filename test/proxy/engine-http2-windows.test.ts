import { once } from 'node:events'
import { type ClientHttp2Stream, connect } from 'node:http2'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { waitFor } from '../support/wait-for.ts'
import { ask, given, rig } from './engine-http2-upstream-rig.ts'
import { type EngineRig, RawConnection, RawUpstream, startEngine } from './engine-rig.ts'

describe('an HTTP/2 upstream', () => {
  it.each([3, 30])('serves others while %i clients do not read their responses', async (count) => {
    given.serve = (stream, headers) => {
      const size = Number(/\d+/.exec(headers[':path'] ?? '')?.[0])
      stream.respond({ ':status': 200 })
      stream.end(Buffer.alloc(size, 'x'))
    }
    const slow = await Promise.all(
      Array.from({ length: count }, () => RawConnection.connect(rig.port)),
    )
    for (const { socket } of slow) {
      socket.pause()
      socket.write('GET /20000000 HTTP/1.1\r\nHost: a\r\n\r\n')
    }
    await waitFor('the slow ones', () => rig.engine.counters.upstreamConnectionsOpen === 1)
    for (const size of [2, 300_000])
      expect((await ask({ path: `/${size}` })).body.length).toBe(size)
    for (const { socket } of slow) socket.destroy()
  })
})

describe('an HTTP/2 client', () => {
  let engine: EngineRig
  let stuck: RawUpstream
  beforeEach(async () => {
    engine = await startEngine()
    stuck = await RawUpstream.start()
    stuck.onConnection = ({ socket }) => socket.pause()
  })
  afterEach(async () => {
    await engine.close()
    stuck.close()
  })

  it.each([4, 8, 60])('uploads while %i of its uploads are not read', async (count) => {
    const reading = await RawUpstream.start()
    reading.onData = (connection) => {
      if (connection.text.length > 300_000) {
        connection.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok')
      }
    }
    engine.plane.request = (exchange) => {
      const upstream = exchange.request.path === '/stuck' ? stuck.address : reading.address
      exchange.forward(upstream, engine.plane.options)
    }
    const client = connect(`http://127.0.0.1:${engine.port}`, { maxSessionMemory: 1_000 })
    client.on('error', () => {})
    const uploads: ClientHttp2Stream[] = []
    for (let at = 0; at < count; at++) {
      const upload = client.request({ ':method': 'POST', ':path': '/stuck' })
      upload.on('error', () => {})
      upload.write(Buffer.alloc(8_000_000, 'u'))
      uploads.push(upload)
    }
    await waitFor('the uploads', () => stuck.connections.length === count)
    const upload = client.request({
      ':method': 'POST',
      ':path': '/read',
      'content-length': '300000',
    })
    upload.end(Buffer.alloc(300_000, 'x'))
    const [head] = await once(upload, 'response')
    expect(head[':status']).toBe(200)
    client.destroy()
    reading.close()
  })
})
