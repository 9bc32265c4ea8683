import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type ClientHttp2Session, connect as connectHttp2 } from 'node:http2'
import { connect, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { useAuthority, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, freePorts } from '../support/gateway.ts'
import { keepAliveAgent } from '../support/http-client.ts'
import {
  gateway,
  httpRoute,
  manifest,
  policy,
  staticBackend,
  tlsSecret,
  toBackend,
} from '../support/manifests.ts'
import { handshake, sendTls } from '../support/tls-client.ts'
import { waitFor } from '../support/wait-for.ts'

const client = () => ({ ca: authority.certificate, servername: 'a.example.com' })

/** Puts a frontend policy in force; `settled` says when. */
async function frontend(spec: object, settled: () => Promise<boolean>): Promise<void> {
  running.write('frontend.yaml', manifest(policy('frontend', 'Gateway/edge', { frontend: spec })))
  await waitFor('the policy', settled)
}

/** What a handshake agrees on, or why it fails. */
const agreed = async (to: number, options = {}) => {
  try {
    const socket = await handshake(to, client(), options)
    const { standardName } = socket.getCipher()
    const found = [socket.getProtocol(), standardName, socket.alpnProtocol] as const
    socket.destroy()
    return found
  } catch (error) {
    return [String(error)] as const
  }
}

const open = async (to: number): Promise<Socket> => {
  const socket = connect({ port: to, host: '127.0.0.1' })
  socket.on('error', () => {})
  await once(socket, 'connect')
  return socket
}

const ended = (socket: Socket) => new Promise<void>((resolve) => socket.once('close', resolve))

const manyHeaders = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, at) => [`x-${at}`, 'v']))

async function http2(to: number): Promise<ClientHttp2Session> {
  const session = connectHttp2(`http://127.0.0.1:${to}`)
  session.on('error', () => {})
  await once(session, 'remoteSettings')
  return session
}

const authority = useAuthority()
const upstream = useUpstream('main')
/** Ports of the Gateway that a policy covers, and of one that none covers. */
const port = await freePorts('http', 'https', 'plain', 'plainTls')
const running = useGateway(() => {
  const listeners = (plain: number, secure: number) => [
    { name: 'http', port: plain, protocol: 'HTTP' },
    {
      name: 'https',
      port: secure,
      protocol: 'HTTPS',
      tls: { certificateRefs: [{ name: 'cert' }] },
    },
  ]
  const toMain = { rules: [{ backendRefs: [toBackend('main')] }] }
  return {
    manifests: {
      'gateway.yaml': manifest(
        gateway(0, { listeners: listeners(port.http, port.https) }),
        gateway(0, { listeners: listeners(port.plain, port.plainTls) }, 'plain'),
        tlsSecret('cert', authority.issue(['a.example.com'])),
        staticBackend('main', upstream.port),
        httpRoute('main', { ...toMain, parentRefs: [{ name: 'edge' }, { name: 'plain' }] }),
        httpRoute('body', {
          parentRefs: [{ name: 'edge' }, { name: 'plain' }],
          rules: [
            {
              matches: [{ path: { type: 'PathPrefix', value: '/body' } }],
              backendRefs: [toBackend('main')],
            },
          ],
        }),
        httpRoute('direct', {
          rules: [{ matches: [{ path: { type: 'PathPrefix', value: '/direct' } }] }],
        }),
        policy('direct', 'HTTPRoute/direct', { traffic: { directResponse: { status: 200 } } }),
        policy('body', 'HTTPRoute/body', {
          traffic: {
            authorization: {
              policy: { matchExpressions: ['string(request.body).startsWith("open")'] },
            },
          },
        }),
      ),
    },
  }
})

describe('frontend.tls', () => {
  it('[FrontendTLS.minProtocolVersion] refuses lower versions', async () => {
    const older = { maxVersion: 'TLSv1.2' }
    expect((await agreed(port.https, older))[0]).toBe('TLSv1.2')
    await frontend({ tls: { minProtocolVersion: '1.3' } }, async () =>
      String((await agreed(port.https, older))[0]).includes('protocol version'),
    )
    expect((await agreed(port.https))[0]).toBe('TLSv1.3')
    expect((await agreed(port.plainTls, older))[0]).toBe('TLSv1.2')
  })

  it('[FrontendTLS.maxProtocolVersion] does not offer higher versions', async () => {
    await frontend(
      { tls: { maxProtocolVersion: '1.2' } },
      async () => (await agreed(port.https))[0] === 'TLSv1.2',
    )
    expect((await agreed(port.plainTls))[0]).toBe('TLSv1.3')
  })

  it('[FrontendTLS.cipherSuites] negotiates the listed suites only', async () => {
    const suite = 'TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256'
    await frontend({ tls: { cipherSuites: [suite] } }, async () =>
      (await agreed(port.https)).includes(suite),
    )
    expect((await agreed(port.https))[0]).toBe('TLSv1.2')
    const other = { ciphers: 'ECDHE-ECDSA-AES256-GCM-SHA384', maxVersion: 'TLSv1.2' }
    expect((await agreed(port.https, other))[0]).toMatch(/handshake failure/)
    const newest = 'TLS13_AES_128_GCM_SHA256'
    await frontend({ tls: { cipherSuites: [newest] } }, async () =>
      (await agreed(port.https)).includes('TLS_AES_128_GCM_SHA256'),
    )
    expect((await agreed(port.https, { maxVersion: 'TLSv1.2' }))[0]).toMatch(/protocol version/)
  })

  it('[FrontendTLS.alpnProtocols] offers the listed protocols, h2 and http/1.1 by default', async () => {
    const offer = { ALPNProtocols: ['h2', 'http/1.1'] }
    expect((await agreed(port.plainTls, offer))[2]).toBe('h2')
    await frontend(
      { tls: { alpnProtocols: ['http/1.1'] } },
      async () => (await agreed(port.https, offer))[2] === 'http/1.1',
    )
    expect((await agreed(port.https, { ALPNProtocols: ['h2'] }))[0]).toMatch(/application protocol/)
    // What is not offered is not spoken either, whether or not something else was agreed on.
    const begun = async (to: number, options: object) => {
      const socket = await handshake(to, client(), options)
      socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0')
      const [first] = (await once(socket, 'data')) as [Buffer]
      socket.destroy()
      return first.toString('latin1', 0, 12)
    }
    const http1 = { ALPNProtocols: ['http/1.1'] }
    expect(await begun(port.https, {})).toBe('HTTP/1.1 505')
    expect(await begun(port.https, http1)).toBe('HTTP/1.1 505')
    expect(await begun(port.plainTls, http1)).toBe('HTTP/1.1 505')
    // SETTINGS of the server.
    expect((await begun(port.plainTls, {})).charCodeAt(3)).toBe(4)
  })

  it('[FrontendTLS.handshakeTimeout] cuts a handshake that takes longer', async () => {
    await frontend({ tls: { handshakeTimeout: '200ms' } }, async () => {
      const [silent, patient] = [await open(port.https), await open(port.plainTls)]
      // The one with a limit goes while the one with 15 s stays.
      const first = await Promise.race([
        ended(silent).then(() => 'limited'),
        ended(patient).then(() => 'default'),
        new Promise<string>((resolve) => setTimeout(resolve, 1_000, 'none')),
      ])
      const stays = !patient.destroyed
      silent.destroy()
      patient.destroy()
      return first === 'limited' && stays
    })
  })

  it('fails closed where no suite is left for a version, and says so', async () => {
    await frontend(
      {
        tls: { minProtocolVersion: '1.3', cipherSuites: ['TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384'] },
      },
      async () => (await running.send(port.http)).status === 500,
    )
    const condition = await running.condition('GatewayPolicy', 'frontend', 'Accepted', 'False')
    expect(condition.message).toContain(
      'spec.frontend.tls.cipherSuites: no listed suite belongs to a TLS version that is allowed (1.3 to 1.3)',
    )
    expect((await running.send(port.plain)).status).toBe(200)
  })
})

describe('frontend.http', () => {
  it('[FrontendHTTP.http1MaxHeaders] refuses a request with more fields, and takes as many as asked for', async () => {
    const status = async (to: number, count: number) =>
      (await running.send(to, { headers: manyHeaders(count) })).status
    // Host and Connection count as well.
    await frontend(
      { http: { http1MaxHeaders: 10 } },
      async () => (await status(port.http, 9)) === 431,
    )
    expect(await status(port.http, 8)).toBe(200)
    // Those of HTTP/2 have a limit of their own, which is one of size.
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

  it('changes open connections as well, without closing one', async () => {
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

  it('[FrontendHTTP.maxBufferSize] bounds bodies that a policy needs, and no others', async () => {
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

  it('[FrontendHTTP.http2WindowSize] [FrontendHTTP.http2ConnectionWindowSize] [FrontendHTTP.http2FrameSize] tell clients of HTTP/2', async () => {
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

  it('[FrontendHTTP.http2KeepaliveInterval] [FrontendHTTP.http2KeepaliveTimeout] ping clients, and leave those that do not answer', async () => {
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

describe('a frontend policy', () => {
  const named = async (name: string, target: string, spec: object) => {
    running.write(`${name}.yaml`, manifest(policy(name, target, { frontend: spec })))
    const condition = await running.condition('GatewayPolicy', name, 'Accepted', 'False')
    running.remove(`${name}.yaml`)
    return condition.message
  }

  it.each([
    ['[FrontendTCP.atLeastOneOf]', 'tcp', 'keepalive'],
    ['[FrontendTLS.atLeastOneOf]', 'tls', 'handshakeTimeout'],
    ['[FrontendHTTP.atLeastOneOf]', 'http', 'maxBufferSize'],
  ])('%s is refused where %s sets nothing', async (_id, field, example) => {
    const message = await named(`empty-${field}`, 'Gateway/plain', { [field]: {} })
    expect(message).toContain(`spec.frontend.${field}`)
    expect(message).toContain(example)
  })

  it('[PolicySpec.frontend] may cover a whole Gateway only', async () => {
    const spec = { http: { http1MaxHeaders: 1 } }
    expect(await named('listener', 'Gateway/plain#http', spec)).toContain('without sectionName')
    const set = {
      apiVersion: 'gateway.networking.k8s.io/v1',
      kind: 'ListenerSet',
      metadata: { name: 'set' },
      spec: {
        parentRef: { name: 'plain' },
        listeners: [{ name: 'more', port: await freePort(), protocol: 'HTTP' }],
      },
    }
    running.write('set.yaml', manifest(set))
    expect(await named('set', 'ListenerSet/set', spec)).toContain('may not target a ListenerSet')
    await waitFor('traffic as before', async () => (await running.send(port.plain)).status === 200)
  })
})
