import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import type { Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { keepAliveAgent } from '../support/http-client.ts'
import { manifest, policy } from '../support/manifests.ts'
import { sendTls } from '../support/tls-client.ts'
import { waitFor } from '../support/wait-for.ts'
import { agreed, client, ended, frontend, open, port, running } from './frontend-rig.ts'

const manyHeaders = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`x-${at}`, 'v']))

async function http2(to: number): Promise<ClientHttp2Session> {
  const session = connectHttp2(`http://127.0.0.1:${to}`)
  session.on('error', () => {})
  await once(session, 'remoteSettings')
  return session
}

describe('frontend.http', () => {
  it('[FrontendHTTP.http1MaxHeaders] refuses a request with more header fields, and accepts up to the limit', async () => {
    const status = async (to: number, count: number) =>
      (await running.send(to, { headers: manyHeaders(count) })).status
    // Host and Connection count as well.
    await frontend(
      { http: { http1MaxHeaders: 10 } },
      async () => (await status(port.http, 9)) === 431,
    )
    expect(await status(port.http, 8)).toBe(200)
    // HTTP/2 limits the size of the header list instead.
    const session = await http2(port.http)
    const statusOf = async (count: number) => {
      const request = session.request({ ':path': '/direct', ...manyHeaders(count) })
      const [head] = await once(request.resume(), 'response')
      return head[':status']
    }
    expect([await statusOf(150), await statusOf(1_000)]).toEqual([200, 431])
    session.close()
    expect(await status(port.plain, 98)).toBe(200)
    expect(await status(port.plain, 99)).toBe(431)
    await frontend(
      { http: { http1MaxHeaders: 4096 } },
      async () => (await status(port.http, 99)) === 200,
    )
    const many = { path: '/direct', headers: manyHeaders(4_000) }
    expect((await running.send(port.http, many)).status).toBe(200)
  })

  it('applies to open connections too, without closing them', async () => {
    const agent = keepAliveAgent(1)
    const status = async (count: number) =>
      (await running.send(port.http, { agent, headers: manyHeaders(count) })).status
    expect(await status(50)).toBe(200)
    const [socket] = Object.values(agent.freeSockets)[0] ?? []
    await frontend({ http: { http1MaxHeaders: 20 } }, async () => {
      const fresh = await running.send(port.http, { headers: manyHeaders(50) })
      return fresh.status === 431
    })
    expect(await status(10)).toBe(200)
    expect(Object.values(agent.freeSockets)[0]?.[0]).toBe(socket)
    expect(await status(50)).toBe(431)
    agent.destroy()
  })

  it('[FrontendHTTP.http1IdleTimeout] closes an unused connection', async () => {
    await frontend({ http: { http1IdleTimeout: '200ms' } }, async () => {
      const [limited, patient] = [await open(port.http), await open(port.plain)]
      for (const socket of [limited, patient]) {
        socket.write('GET / HTTP/1.1\r\nhost: a.example.com\r\n\r\n')
        await once(socket, 'data')
        socket.resume()
      }
      const first = await Promise.race([
        ended(limited).then(() => 'limited'),
        ended(patient).then(() => 'default'),
        new Promise<string>((resolve) => setTimeout(resolve, 1_500, 'none')),
      ])
      const stays = !patient.destroyed
      limited.destroy()
      patient.destroy()
      return first === 'limited' && stays
    })
  })

  it('ends connections that reach maxConnectionDuration after the requests under way', async () => {
    const begun = 'POST /body HTTP/1.1\r\nhost: a.example.com\r\ncontent-length: 4\r\n\r\nope'
    const busy = await open(port.http)
    busy.write(begun)
    await frontend({ http: { maxConnectionDuration: '300ms' } }, async () => {
      const idle = await open(port.http)
      idle.resume()
      const isEnded = await Promise.race([
        ended(idle).then(() => true),
        new Promise<boolean>((resolve) => setTimeout(resolve, 1_500, false)),
      ])
      idle.destroy()
      return isEnded
    })
    const older = await open(port.http)
    older.write(begun)
    const session = await http2(port.http)
    const [[code]] = await Promise.all([once(session, 'goaway'), once(session, 'close')])
    expect(code).toBe(0)
    // Connections that began after the older one have ended, so it is too old as well.
    for (let count = 0; count < 2; count++) {
      const later = await open(port.http)
      later.resume()
      await ended(later)
    }
    const text = new Promise<string>((resolve) => {
      let received = ''
      older.on('data', (bytes) => {
        received += bytes
      })
      older.once('close', () => resolve(received))
    })
    older.write('n')
    expect(await text).toMatch(/^HTTP\/1\.1 200 OK\r\n(.+\r\n)*connection: close\r\n/i)
    // A connection keeps the limit with which it began.
    busy.write('n')
    const [answer] = await once(busy, 'data')
    expect(String(answer)).not.toMatch(/connection: close/i)
    busy.destroy()
  })

  it('limits the heads of HTTP/2 requests by http2MaxHeaderSize', async () => {
    await frontend({ http: { http2MaxHeaderSize: '2Ki' } }, async () => {
      const session = await http2(port.http)
      const { maxHeaderListSize } = session.remoteSettings
      const statusOf = async (length: number) => {
        const request = session.request({ ':path': '/direct', 'x-long': 'v'.repeat(length) })
        const [head] = await once(request.resume(), 'response')
        return head[':status']
      }
      const isSet = maxHeaderListSize === 2_048
      if (isSet) expect([await statusOf(1_500), await statusOf(2_000)]).toEqual([200, 431])
      session.destroy()
      return isSet
    })
    const long = { path: '/direct', headers: { 'x-long': 'v'.repeat(2_000) } }
    expect((await running.send(port.http, long)).status).toBe(200)
  })

  it('[FrontendHTTP.maxBufferSize] bounds only bodies that a policy reads', async () => {
    const post = (to: number, path: string, body: string) =>
      running.send(to, { method: 'POST', path, body }).then(({ status }) => status)
    expect(await post(port.http, '/body', 'open sesame')).toBe(200)
    await frontend(
      { http: { maxBufferSize: 8 } },
      async () => (await post(port.http, '/body', 'open sesame')) === 403,
    )
    expect(await post(port.http, '/body', 'open')).toBe(200)
    expect(await post(port.http, '/', 'x'.repeat(100_000))).toBe(200)
    expect(await post(port.plain, '/body', `open ${'x'.repeat(100_000)}`)).toBe(200)
    expect(await post(port.plain, '/body', `open ${'x'.repeat(2_097_152)}`)).toBe(403)
    await frontend(
      { http: { maxBufferSize: '3Mi' } },
      async () => (await post(port.http, '/body', `open ${'x'.repeat(2_097_152)}`)) === 200,
    )
    expect(await post(port.http, '/body', `open ${'x'.repeat(3 * 2 ** 20)}`)).toBe(403)
  })

  it('[FrontendHTTP.http2WindowSize] [FrontendHTTP.http2ConnectionWindowSize] [FrontendHTTP.http2FrameSize] are sent to HTTP/2 clients as SETTINGS', async () => {
    const plain = await http2(port.plain)
    expect(plain.remoteSettings.maxFrameSize).toBe(16_384)
    plain.destroy()
    const sizes = {
      http2WindowSize: 70_000,
      http2ConnectionWindowSize: 300_000,
      http2FrameSize: 20_000,
    }
    await frontend({ http: sizes }, async () => {
      const session = await http2(port.http)
      const { initialWindowSize, maxFrameSize } = session.remoteSettings
      const told = initialWindowSize === 70_000 && maxFrameSize === 20_000
      if (told) await waitFor('the window', () => session.state.remoteWindowSize === 300_000)
      session.destroy()
      return told
    })
  })

  it('[FrontendHTTP.http2KeepaliveInterval] [FrontendHTTP.http2KeepaliveTimeout] ping clients, and close connections that do not answer', async () => {
    const keepalive = { http2KeepaliveInterval: '100ms', http2KeepaliveTimeout: '200ms' }
    await frontend({ http: keepalive }, async () => {
      const session = await http2(port.http)
      const pinged = await Promise.race([
        once(session, 'ping').then(() => true),
        new Promise<boolean>((resolve) => setTimeout(resolve, 1_000, false)),
      ])
      session.destroy()
      return pinged
    })
    const silent = await open(port.http)
    silent.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0', 'latin1')
    silent.resume()
    await ended(silent)
  })
})

describe('frontend.tcp', () => {
  /** Seconds until the first probe of the gateway's side of a connection (proc(5), /proc/net/tcp). */
  const untilProbe = (socket: Socket, to: number): number => {
    const address = (number: number) =>
      `0100007F:${number.toString(16).toUpperCase().padStart(4, '0')}`
    const line = readFileSync('/proc/net/tcp', 'utf8')
      .split('\n')
      .find((text) => text.includes(`${address(to)} ${address(socket.localPort ?? 0)}`))
    const [kind, jiffies] = line?.trim().split(/\s+/)[5]?.split(':') ?? []
    return kind === '02' ? Number.parseInt(jiffies ?? '', 16) / 100 : Number.NaN
  }

  it.runIf(process.platform === 'linux')(
    '[FrontendTCP.keepalive] probes accepted connections, by default after 180 s',
    async () => {
      const plain = await open(port.plain)
      await waitFor('the default', () => {
        const seconds = untilProbe(plain, port.plain)
        return seconds > 120 && seconds <= 181
      })
      plain.destroy()
      await frontend(
        { tcp: { keepalive: { time: '50s', interval: '5s', retries: 3 } } },
        async () => {
          const socket = await open(port.http)
          const seconds = untilProbe(socket, port.http)
          socket.destroy()
          return seconds > 0 && seconds <= 51
        },
      )
      const secure = await open(port.https)
      await waitFor('TLS ports as well', () => untilProbe(secure, port.https) <= 51)
      secure.destroy()
    },
  )

  it('merges with other policies of the Gateway field by field', async () => {
    running.write(
      'older.yaml',
      manifest(
        policy(
          'older',
          'Gateway/edge',
          { frontend: { http: { http1MaxHeaders: 7 }, tls: { maxProtocolVersion: '1.2' } } },
          { creationTimestamp: '2020-01-01T00:00:00Z' },
        ),
      ),
    )
    await waitFor('the older policy', async () => (await agreed(port.https))[0] === 'TLSv1.2')
    const older = await running.send(port.http, { headers: manyHeaders(8) })
    expect(older.status).toBe(431)
    await frontend({ http: { http1MaxHeaders: 50 }, tcp: { keepalive: {} } }, async () => true)
    const condition = await running.condition('GatewayPolicy', 'frontend', 'Attached', 'True')
    expect(condition.message).toContain('http')
    expect((await running.send(port.http, { headers: manyHeaders(8) })).status).toBe(431)
    running.remove('older.yaml')
    await waitFor('the newer policy', async () => {
      return (await running.send(port.http, { headers: manyHeaders(8) })).status === 200
    })
    expect((await sendTls(port.https, client())).status).toBe(200)
  })
})
