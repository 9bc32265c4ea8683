import { once } from 'node:events'
import {
  constants,
  createServer as createHttp2,
  createSecureServer,
  type Http2Server,
} from 'node:http2'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { createSecureContext, createServer as createTls } from 'node:tls'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { UpstreamAddress } from '../../src/engines/http/sockets/upstream-address.ts'
import { useAuthority } from '../support/fixture.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { type EngineRig, eventually, RawConnection, startEngine } from './engine-rig.ts'

/** Far more than sockets hold, so that the upload is still under way when the answer comes. */
const bodySize = 24 * 1024 * 1024
const tries = 12
const refusal = 'too large, and told so\n'
const lengthAnswer = `HTTP/1.1 413 Content Too Large\r\ncontent-length: ${refusal.length}\r\n\r\n${refusal}`
const closeAnswer = `HTTP/1.1 401 Unauthorized\r\nconnection: close\r\n\r\n${refusal}`
const authority = useAuthority()
const leaf = authority.issue(['127.0.0.1'])

let rig: EngineRig
let server: { close(): unknown }
beforeEach(async () => {
  rig = await startEngine()
})
afterEach(async () => {
  await rig.close()
  server.close()
})

const plain = (socketAnswer: (socket: Socket) => void) => createServer(socketAnswer)
const secured = (socketAnswer: (socket: Socket) => void) =>
  createTls({ cert: leaf.certificate, key: leaf.key }, socketAnswer)

async function addressOf(listener: Server | Http2Server, isTls: boolean, isHttp2: boolean) {
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  server = listener
  const { port } = listener.address() as AddressInfo
  const address: UpstreamAddress = {
    host: '127.0.0.1',
    port,
    pool: `${port}`,
    ...(isHttp2 && { isHttp2 }),
    ...(isTls && {
      tls: {
        context: createSecureContext({ ca: authority.certificate }),
        serverName: '',
        requiresTrust: true,
        checkName: () => undefined,
        alpn: [isHttp2 ? 'h2' : 'http/1.1'],
        statedAlpn: [],
      },
    }),
  }
  return address
}

/** Answers when the first bytes of the body have come, reads nothing more, and closes. */
function answersEarly(answer: string) {
  return (socket: Socket) => {
    let seen = ''
    socket.on('error', () => {})
    socket.on('data', function onData(piece: Buffer) {
      seen += piece.toString('latin1')
      if (seen.length < seen.indexOf('\r\n\r\n') + 5) return
      socket.off('data', onData)
      socket.pause()
      socket.write(answer, () => socket.destroy())
    })
  }
}

/** Uploads until the gateway answers; resolves with all that came. */
async function upload(): Promise<string> {
  const client = await RawConnection.connect(rig.port)
  // The whole body may fit before the answer is relayed; without `close` the connection would stay.
  const head = `POST /upload HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${bodySize}`
  client.write(`${head}\r\n\r\n`)
  const piece = Buffer.alloc(256 * 1024, 'x')
  for (let sent = 0; sent < bodySize && !client.ended && !client.closed; sent += piece.length) {
    if (!client.socket.write(piece)) {
      await Promise.race([once(client.socket, 'drain'), client.untilEnd()]).catch(() => {})
    }
  }
  await client.untilEnd()
  client.socket.destroy()
  return client.text
}

const answers = [
  ['with a length', lengthAnswer, /^HTTP\/1\.1 413 /],
  ['that ends with the connection', closeAnswer, /^HTTP\/1\.1 401 /],
] as const

describe.each([
  ['HTTP/1.1', plain, false],
  ['HTTP/1.1 over TLS', secured, true],
] as const)('an upstream that speaks %s', (_, listen, isTls) => {
  test.each(answers)(
    'has its answer forwarded if it answers during the upload and closes, with an answer %s',
    async (_, answer, head) => {
      rig.plane.upstream = await addressOf(listen(answersEarly(answer)), isTls, false)
      for (let at = 0; at < tries; at++) {
        const text = await upload()
        expect(text).toMatch(head)
        expect(text).toContain(refusal)
      }
      expect(rig.plane.errors).toEqual([])
    },
  )

  test("has its early answer read by the gateway's own requests", async () => {
    const address = await addressOf(listen(answersEarly(lengthAnswer)), isTls, false)
    for (let at = 0; at < tries; at++) {
      const seen: { status: number; text: string; error: string | undefined; isOver: boolean } = {
        status: 0,
        text: '',
        error: undefined,
        isOver: false,
      }
      const head = `POST / HTTP/1.1\r\nhost: x\r\ncontent-length: ${bodySize}\r\n\r\n`
      const request = { address, head, body: undefined, isOpen: true, timeoutMs: 0 }
      const call = rig.engine.call(
        { ...request, connectTimeoutMs: 0 },
        {
          onHead: (status) => {
            seen.status = status
          },
          onBytes: (bytes) => {
            seen.text += Buffer.from(bytes).toString()
          },
          onEnd: () => {
            seen.isOver = true
          },
          onFailure: (error) => {
            seen.error = error.code
            seen.isOver = true
          },
        },
      )
      const piece = Buffer.alloc(64 * 1024, 'x')
      const isOver = () => seen.isOver
      for (let sent = 0; sent < bodySize && !isOver(); sent += piece.length) {
        call.write(piece)
        await new Promise((resolve) => setImmediate(resolve))
      }
      await eventually(isOver)
      expect(seen).toEqual({ status: 413, text: refusal, error: undefined, isOver: true })
    }
  })
})

describe.each([
  ['HTTP/2', () => createHttp2(), false],
  ['HTTP/2 over TLS', () => createSecureServer({ cert: leaf.certificate, key: leaf.key }), true],
] as const)('an upstream that speaks %s', (_, listen, isTls) => {
  test.each([
    ['resets the stream', constants.NGHTTP2_NO_ERROR],
    ['closes the connection', undefined],
  ] as const)(
    'has its answer forwarded if it answers during the upload and %s',
    async (_, code) => {
      const listener = listen()
      listener.on('session', (session) => session.on('error', () => {}))
      listener.on('stream', (stream) => {
        stream.on('error', () => {})
        stream.once('data', () => {
          stream.pause()
          stream.respond({ ':status': 413, 'content-length': refusal.length })
          stream.end(refusal, () => {
            if (code === undefined) stream.session?.socket.destroySoon()
            else stream.close(code)
          })
        })
      })
      rig.plane.upstream = await addressOf(listener as Http2Server, isTls, true)
      for (let at = 0; at < tries; at++) {
        const text = await upload()
        expect(text).toMatch(/^HTTP\/1\.1 413 /)
        expect(text).toContain(refusal)
      }
      expect(rig.plane.errors).toEqual([])
    },
  )
})

test('an early answer is not lost if the upload breaks off while a policy processes it', async () => {
  rig.plane.upstream = await addressOf(plain(answersEarly(lengthAnswer)), false, false)
  rig.plane.response = (exchange) => {
    setTimeout(() => exchange.relay(), 20)
  }
  for (let at = 0; at < tries; at++) expect(await upload()).toContain(refusal)
  expect(rig.plane.errors).toEqual([])
})

test('a request whose upstream closes without an answer fails with 503', async () => {
  rig.plane.upstream = await addressOf(plain(answersEarly('')), false, false)
  expect(await upload()).toMatch(/^HTTP\/1\.1 503 /)
  expect(rig.plane.errors).toEqual(['upstream_reset'])
})

test('a client that continues its upload after an early answer is not reset', async () => {
  await rig.close()
  const clock = new ManualClock()
  rig = await startEngine({ clock })
  rig.plane.upstream = await addressOf(plain(answersEarly(lengthAnswer)), false, false)
  const client = await RawConnection.connect(rig.port)
  client.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${bodySize}\r\n\r\nbegin`)
  await client.until(() => client.ended)
  const before = rig.engine.counters.receivedBytes
  for (let second = 1; second <= 10; second++) {
    client.write('more')
    await eventually(() => rig.engine.counters.receivedBytes === before + 4 * second)
    clock.advance(1_000)
  }
  expect(client.closed).toBe(false)
  expect(client.text).toContain(refusal)
  clock.advance(2_000)
  clock.advance(2_000)
  await eventually(() => rig.engine.counters.connectionsOpen === 0)
})

test('a client that never stops uploading after an early answer is dropped after 30 seconds', async () => {
  await rig.close()
  const clock = new ManualClock()
  rig = await startEngine({ clock })
  rig.plane.upstream = await addressOf(plain(answersEarly(lengthAnswer)), false, false)
  const client = await RawConnection.connect(rig.port)
  client.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${bodySize}\r\n\r\nbegin`)
  await client.until(() => client.ended)
  for (let second = 0; second < 30; second++) {
    const before = rig.engine.counters.receivedBytes
    client.write('more')
    await eventually(() => rig.engine.counters.receivedBytes > before)
    clock.advance(1_000)
  }
  await eventually(() => rig.engine.counters.connectionsOpen === 0)
})
