import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { ServerExchange } from '../../src/engines/http/contracts/requests.ts'
import {
  answering,
  type EngineRig,
  eventually,
  RawConnection,
  RawUpstream,
  startEngine,
} from './engine-rig.ts'

const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

/** Text that no other client sends. */
const bodyOf = (name: string, length: number) =>
  Array.from({ length: Math.ceil(length / 8) }, (_, at) => `${name}${`${at}`.padStart(6, '.')};`)
    .join('')
    .slice(0, length)

const reads = [
  ['one buffer for all clients', true],
  ['buffers of their own', false],
] as const

describe.each(reads)('clients whose bytes are read into %s', (_, usesNodeHandles) => {
  let rig: EngineRig
  let upstream: RawUpstream

  beforeEach(async () => {
    rig = await startEngine({ usesNodeHandles })
    upstream = await RawUpstream.start()
    rig.plane.upstream = upstream.address
  })

  afterEach(async () => {
    await rig.close()
    upstream.close()
  })

  test.each([300, 15_000, 40_000])(
    'keep their bytes while other clients send (%i bytes)',
    async (length) => {
      const held: ServerExchange[] = []
      rig.plane.request = (exchange) => held.push(exchange)
      const names = ['a', 'b', 'c', 'd']
      const clients = await Promise.all(names.map(() => RawConnection.connect(rig.port)))
      for (const [at, client] of clients.entries()) {
        const name = names[at] ?? ''
        const head = `POST /${name} HTTP/1.1\r\nHost: ${name}\r\nX-Name: ${name.repeat(50)}\r\n`
        client.write(`${head}Content-Length: ${length}\r\n\r\n${bodyOf(name, length)}`)
        await eventually(() => held.length === at + 1)
      }
      expect(held.map(({ request }) => request.path)).toEqual(['/a', '/b', '/c', '/d'])
      expect(held.map(({ request }) => request.headers.get('x-name')?.[0])).toEqual(names)
      for (const exchange of held) exchange.forward(rig.plane.upstream, rig.plane.options)
      const sent = () => upstream.connections.map(({ text }) => text)
      await eventually(
        () =>
          sent().length === 4 &&
          sent().every((text) => text.split('\r\n\r\n')[1]?.length === length),
      )
      for (const text of sent()) {
        const name = text.slice(6, 7)
        expect(text).toContain(`\r\nX-Name: ${name.repeat(50)}\r\n`)
        expect(text.split('\r\n\r\n')[1]).toBe(bodyOf(name, length))
      }
    },
  )

  test('may send a head byte by byte, and the next head together with its last byte', async () => {
    upstream.close()
    upstream = await answering(ok)
    rig.plane.upstream = upstream.address
    const [one, two] = await Promise.all([
      RawConnection.connect(rig.port),
      RawConnection.connect(rig.port),
    ])
    const heads = ['/one', '/two'].map(
      (path) => `GET ${path} HTTP/1.1\r\nHost: a\r\nX-Long: ${path.repeat(40)}\r\n\r\n`,
    )
    const longest = Math.max(...heads.map((head) => head.length))
    for (let at = 0; at < longest - 1; at++) {
      one.write(heads[0]?.charAt(at) ?? '')
      two.write(heads[1]?.charAt(at) ?? '')
      await new Promise((resolve) => setImmediate(resolve))
    }
    one.write(`\n${heads[0]}`)
    two.write(`\n${heads[1]}`)
    expect(await one.responses(2)).toEqual([ok, ok])
    expect(await two.responses(2)).toEqual([ok, ok])
    const lines = upstream.connections.flatMap(({ text }) => text.match(/X-Long: .*/g) ?? [])
    expect(lines.sort()).toEqual(
      ['/one', '/one', '/two', '/two'].map((path) => `X-Long: ${path.repeat(40)}`),
    )
  })

  test('may send requests in the same packet as a PROXY header, wherever the bytes are split', async () => {
    const own = await startEngine({ usesNodeHandles, expectsProxyHeader: () => true })
    const body = bodyOf('q', 200_000)
    const whole: string[] = []
    upstream.onData = (connection) => {
      const { text } = connection
      if (!text.endsWith(text.startsWith('PUT') ? `\r\n\r\n${body}` : '\r\n\r\n')) return
      whole.push(text)
      connection.text = ''
      connection.write(ok)
    }
    const sources: string[] = []
    own.plane.request = (exchange) => {
      sources.push(exchange.source.address)
      exchange.forward(upstream.address, own.plane.options)
    }
    const header = 'PROXY TCP4 192.0.2.7 192.0.2.1 4711 443\r\n'
    const get = 'GET /a HTTP/1.1\r\nHost: a\r\n\r\n'
    const put = `PUT /b HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`
    const all = header + get + get + put + get
    for (const cut of [0, 10, header.length, header.length + 20, header.length + 2 * get.length]) {
      const client = await RawConnection.connect(own.port)
      client.write(all.slice(0, cut))
      await eventually(() => client.socket.writableLength === 0)
      client.write(all.slice(cut))
      expect(await client.responses(4)).toEqual([ok, ok, ok, ok])
      client.socket.destroy()
    }
    expect(new Set(sources)).toEqual(new Set(['192.0.2.7']))
    const messages = [get, get, put, get]
    const isEach = whole.map((text, at) => text === messages[at % 4])
    expect(isEach).toEqual(new Array(20).fill(true))
    await own.close()
  })

  test('have their body resent in full if the upstream connection broke', async () => {
    const client = await RawConnection.connect(rig.port)
    upstream.onData = (connection) => connection.write(ok)
    client.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await client.responses(1)
    const body = bodyOf('p', 9_000)
    upstream.onData = (connection) => {
      if (connection === upstream.connections[0]) connection.socket.destroy()
      else if (connection.text.endsWith(body)) connection.write(ok)
    }
    client.write(`PUT /p HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    expect(await client.responses(2)).toEqual([ok, ok])
    expect(upstream.connections[1]?.text.split('\r\n\r\n')[1]).toBe(body)
  })

  test('get their own bytes however late they read, while buffers are reused', async () => {
    const pieceSize = 64 * 1024
    const pieces = { slow: 160, fast: 3 }
    const sizeOf = (name: string) => (name.startsWith('s') ? pieces.slow : pieces.fast) * pieceSize
    upstream.onData = (connection) => {
      const name = /^GET \/(\w+) .*\r\n\r\n$/s.exec(connection.text)?.[1]
      if (name === undefined) return
      connection.text = ''
      connection.write(`HTTP/1.1 200 OK\r\nContent-Length: ${sizeOf(name)}\r\n\r\n`)
      const piece = Buffer.from(bodyOf(name, pieceSize))
      for (let at = 0; at < sizeOf(name); at += pieceSize) connection.write(piece)
    }
    /** Sends a request; records how much of the body has arrived, and whether it is right. */
    const ask = (client: RawConnection, name: string) => {
      const piece = Buffer.from(bodyOf(name, pieceSize))
      const seen = { bytes: -1, isRight: true }
      client.socket.removeAllListeners('data')
      client.socket.on('data', (chunk: Buffer) => {
        let from = 0
        if (seen.bytes < 0) {
          from = chunk.indexOf('\r\n\r\n') + 4
          seen.bytes = 0
        }
        for (let at = from; at < chunk.length; ) {
          const offset = seen.bytes % pieceSize
          const length = Math.min(pieceSize - offset, chunk.length - at)
          if (chunk.compare(piece, offset, offset + length, at, at + length) !== 0) {
            seen.isRight = false
          }
          seen.bytes += length
          at += length
        }
      })
      client.write(`GET /${name} HTTP/1.1\r\nHost: a\r\n\r\n`)
      return seen
    }
    const slow = await Promise.all(['s1', 's2', 's3'].map(() => RawConnection.connect(rig.port)))
    for (const client of slow) client.socket.pause()
    const late = slow.map((client, at) => ask(client, `s${at + 1}`))
    const fast = await RawConnection.connect(rig.port)
    const rush = async (round: string) => {
      for (let at = 0; at < 20; at++) {
        const seen = ask(fast, `${round}${at}`)
        await eventually(() => seen.bytes === sizeOf('f'))
        expect(seen.isRight).toBe(true)
      }
    }
    await eventually(() => upstream.connections.length >= 3)
    await rush('f')
    // The buffer of a client that leaves without reading is reused.
    slow[1]?.socket.resetAndDestroy()
    await rush('g')
    for (const client of slow) client.socket.resume()
    await eventually(() => late[0]?.bytes === sizeOf('s') && late[2]?.bytes === sizeOf('s'))
    expect([late[0]?.isRight, late[2]?.isRight]).toEqual([true, true])
    expect(rig.engine.counters.readBuffersInUse).toBeLessThanOrEqual(4)
  })

  test('do not prevent their port from being bound again', async () => {
    upstream.onData = (connection) => connection.write(ok)
    const before = await RawConnection.connect(rig.port)
    before.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    await before.responses(1)
    await rig.engine.unlisten(rig.port)
    await before.untilEnd()
    expect(await rig.engine.listen(rig.port)).toBe(rig.port)
    const after = await RawConnection.connect(rig.port)
    after.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
    expect(await after.responses(1)).toEqual([ok])
    expect(rig.engine.counters.connectionsTotal).toBe(2)
  })
})
