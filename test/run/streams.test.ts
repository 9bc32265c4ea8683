import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { describe, expect, it } from 'vitest'
import { useAuthority, useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, freePorts, startGateway } from '../support/gateway.ts'
import {
  gateway,
  httpRoute,
  manifest,
  staticBackend,
  streamRoute,
  tlsSecret,
  toBackend,
} from '../support/manifests.ts'
import {
  converse,
  echo,
  readAll,
  startTcpUpstream,
  startTlsUpstream,
} from '../support/stream-upstream.ts'
import { handshake, sendTls } from '../support/tls-client.ts'
import { waitFor } from '../support/wait-for.ts'

const listener = (name: keyof typeof port, more: object = {}) => ({
  name,
  port: port[name],
  protocol: 'TCP',
  ...more,
})
const tls = (name: string, hostname: string | undefined, secret?: string) => ({
  name,
  port: port.tls,
  protocol: 'TLS',
  ...(hostname !== undefined && { hostname }),
  tls: secret === undefined ? { mode: 'Passthrough' } : { certificateRefs: [{ name: secret }] },
})
const client = (servername: string) => ({ ca: authority.certificate, servername })

const metric = async (name: string, ...labels: string[]): Promise<number> => {
  const text = await (await fetch(`http://${stats}/metrics`)).text()
  return text
    .split('\n')
    .filter((line) => line.startsWith(`sluice_${name}{`) || line.startsWith(`sluice_${name} `))
    .filter((line) => labels.every((label) => line.includes(label)))
    .reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0)
}

const logLine = (...parts: string[]) =>
  waitFor(`a line of the access log with ${parts.join(', ')}`, () =>
    running.stdout.split('\n').find((line) => parts.every((part) => line.includes(part))),
  )

const authority = useAuthority()
const certificates = {
  web: authority.issue(['web.example.com']),
  db: authority.issue(['db.example.com']),
  pass: authority.issue(['one.pass.example.com', 'two.pass.example.com', '*.any.example.com']),
}
const web = useUpstream('web')
const upstreams = {
  a: useFixture(() => startTcpUpstream(echo('a'))),
  b: useFixture(() => startTcpUpstream(echo('b'))),
  held: useFixture(() => startTcpUpstream((socket) => socket.pause())),
  pass: useFixture(() => startTlsUpstream(certificates.pass, echo('pass'))),
  pass2: useFixture(() => startTlsUpstream(certificates.pass, echo('pass2'))),
}
const port = await freePorts('tcp', 'share', 'bad', 'held', 'tls', 'none', 'dead')
const stats = `127.0.0.1:${await freePort()}`
const running = useGateway(async () => {
  const listeners = [
    ...(['tcp', 'share', 'bad', 'held', 'none', 'dead'] as const).map((name) => listener(name)),
    tls('pass', '*.pass.example.com'),
    tls('any', '*.example.com'),
    tls('db', 'db.example.com', 'db'),
    tls('again', 'again.example.com', 'db'),
    { ...tls('web', 'web.example.com', 'web'), protocol: 'HTTPS' },
  ]
  const pass = { hostnames: ['one.pass.example.com'] }
  return {
    args: ['--stats-address', stats],
    manifests: {
      'gateway.yaml': manifest(
        gateway(0, { listeners }),
        tlsSecret('db', certificates.db),
        tlsSecret('web', certificates.web),
        staticBackend('web', web.port),
        staticBackend('secure', upstreams.pass.port, {
          tls: { sni: 'one.pass.example.com', caCertificateRefs: [{ name: 'ca' }] },
        }),
        {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { name: 'ca' },
          data: { 'ca.crt': authority.certificate },
        },
        staticBackend('dead', await freePort()),
        ...Object.entries(upstreams).map(([name, upstream]) => staticBackend(name, upstream.port)),
      ),
      'routes.yaml': manifest(
        streamRoute('TCPRoute', 'tcp', 'tcp', [toBackend('a')]),
        // The younger of two routes on one listener gets nothing.
        streamRoute('TCPRoute', 'younger', 'tcp', [toBackend('b')]),
        streamRoute('TCPRoute', 'share', 'share', [
          toBackend('a', { weight: 1 }),
          toBackend('b', { weight: 3 }),
          toBackend('held', { weight: 0 }),
        ]),
        streamRoute('TCPRoute', 'bad', 'bad', [toBackend('absent')]),
        streamRoute('TCPRoute', 'held', 'held', [toBackend('held')]),
        streamRoute('TCPRoute', 'dead', 'dead', [toBackend('dead')]),
        streamRoute('TLSRoute', 'one', 'pass', [toBackend('pass')], pass),
        streamRoute('TLSRoute', 'any', 'any', [toBackend('pass2')], {
          hostnames: ['*.example.com'],
        }),
        streamRoute('TCPRoute', 'db', 'db', [toBackend('b')]),
        streamRoute('TCPRoute', 'again', 'again', [toBackend('secure')]),
        httpRoute('web', { rules: [{ backendRefs: [toBackend('web')] }] }),
      ),
    },
  }
})

describe('a TCPRoute', () => {
  it('forwards bytes both ways, and half-closes independently', async () => {
    expect(await converse(port.tcp, 'hello')).toBe('a:hello')
    const line = await logLine('listener=tcp', 'protocol=tcp')
    expect(line).toMatch(
      new RegExp(
        ` gateway=default/edge listener=tcp route=default/tcp endpoint=127.0.0.1:${upstreams.a.port} src.addr=127.0.0.1:\\d+ protocol=tcp bytes.received=5 bytes.sent=7 duration=\\d+ms$`,
      ),
    )
    await waitFor(
      'the counters',
      async () => (await metric('streams_total', 'route="default/tcp"')) >= 1,
    )
    expect(
      await metric('downstream_received_bytes_total', 'protocol="tcp"'),
    ).toBeGreaterThanOrEqual(5)
    expect(await metric('downstream_connections', 'protocol="tcp"')).toBe(0)
  })

  it('forwards megabytes without losing one', async () => {
    const sent = Buffer.alloc(8 * 1024 * 1024, 'abcdefghijklm')
    const got = await converse(port.tcp, sent)
    expect(got.length).toBe(sent.length + 2)
    expect(got.slice(2) === sent.toString()).toBe(true)
  })

  it('spreads connections by weight, and gives none to weight 0', async () => {
    const counts = { a: 0, b: 0 }
    for (let at = 0; at < 80; at++) {
      const [name] = (await converse(port.share, '')).split(':')
      if (name === 'a' || name === 'b') counts[name]++
    }
    expect(counts.a + counts.b).toBe(80)
    expect(counts.a).toBeGreaterThan(5)
    expect(counts.b).toBeGreaterThan(counts.a)
    expect(upstreams.held.sockets).toHaveLength(0)
  })

  it('applies backpressure to the client while the backend does not read', async () => {
    const socket = connect({ port: port.held, host: '127.0.0.1' })
    socket.on('error', () => {})
    const chunk = Buffer.alloc(1024 * 1024)
    let written = 0
    while (socket.write(chunk) || written < 64) {
      written++
      if (socket.writableLength > 48 * 1024 * 1024) break
      await new Promise((resolve) => setImmediate(resolve))
    }
    // Far more waits in the client than the gateway and the system could have taken.
    expect(socket.writableLength).toBeGreaterThan(32 * 1024 * 1024)
    const [backend] = await waitFor('the connection', () =>
      upstreams.held.sockets.length > 0 ? upstreams.held.sockets : undefined,
    )
    let received = 0
    backend?.on('data', (bytes: Buffer) => {
      received += bytes.length
    })
    backend?.resume()
    await waitFor('the rest', () => socket.writableLength === 0)
    socket.end()
    await once(backend as Socket, 'end')
    expect(received).toBe(socket.bytesWritten)
    backend?.end()
  })

  it('resets connections if the backend is missing or refuses, or no route is attached', async () => {
    for (const name of ['bad', 'dead', 'none'] as const) {
      await expect(converse(port[name], 'x')).rejects.toThrow('ECONNRESET')
    }
    await logLine('route=default/bad', 'error="service not found', 'reason=NotFound')
    await logLine('route=default/dead', 'reason=UpstreamFailure')
    await logLine('listener=none', 'error="route not found"', 'reason=NotFound')
  })

  it('forwards a reset of one side to the other', async () => {
    const before = upstreams.a.sockets.length
    const socket = connect({ port: port.tcp, host: '127.0.0.1' })
    await once(socket, 'data')
    const backend = upstreams.a.sockets[before]
    socket.resetAndDestroy()
    await waitFor('the abort', () => backend?.destroyed)
    const other = connect({ port: port.tcp, host: '127.0.0.1' })
    await once(other, 'data')
    const reset = once(other, 'error')
    upstreams.a.sockets.at(-1)?.resetAndDestroy()
    expect(await reset).toMatchObject([{ code: 'ECONNRESET' }])
  })

  it('keeps open connections through a change, which applies to new ones', async () => {
    const open = connect({ port: port.tcp, host: '127.0.0.1' })
    expect(String(await once(open, 'data'))).toBe('a:')
    running.write('later.yaml', manifest(streamRoute('TCPRoute', 'late', 'none', [toBackend('b')])))
    await waitFor('the new route', async () => {
      const text = await converse(port.none, 'now').catch(() => '')
      return text === 'b:now'
    })
    open.end('still')
    expect(String(await once(open, 'data'))).toBe('still')
    running.remove('later.yaml')
    await waitFor('the end of the route', async () => {
      return (await converse(port.none, 'now').catch(() => 'reset')) === 'reset'
    })
  })
})

describe('TLS on one port', () => {
  it('passes through to the backend of its SNI, unread', async () => {
    const one = await handshake(port.tls, client('one.pass.example.com'))
    expect(one.getPeerCertificate().subject.CN).toBe('one.pass.example.com')
    expect(await readAll(one, 'hi')).toBe('pass:hi')
    const line = await logLine('route=default/one', 'tls.sni=one.pass.example.com')
    expect(line).toContain(' protocol=tls ')
    const other = await handshake(port.tls, client('b.any.example.com'))
    expect(await readAll(other, 'hi')).toBe('pass2:hi')
  })

  it('is closed without an alert if no listener or no route has the name', async () => {
    // The better listener takes the name, and has no route for it: the worse one does not step in.
    for (const name of ['two.pass.example.com', 'example.org', '']) {
      await expect(handshake(port.tls, client(name))).rejects.toThrow(/disconnected|reset/)
    }
    const plain = connect({ port: port.tls, host: '127.0.0.1' })
    expect(await readAll(plain, 'GET / HTTP/1.1\r\nhost: db.example.com\r\n\r\n')).toBe('')
  })

  it('is terminated in mode Terminate, and forwarded as plain TCP', async () => {
    const socket = await handshake(port.tls, client('db.example.com'))
    expect(socket.getPeerCertificate().subject.CN).toBe('db.example.com')
    expect(await readAll(socket, 'select 1')).toBe('b:select 1')
    await logLine('listener=db', 'route=default/db', 'tls.sni=db.example.com')
  })

  it('is re-encrypted towards the backend if a policy says so', async () => {
    const trusting = { ...client('again.example.com'), checkServerIdentity: () => undefined }
    const socket = await handshake(port.tls, trusting)
    expect(await readAll(socket, 'hi')).toBe('pass:hi')
  })

  it('shares the port with HTTPS by name, and answers 421 to requests for passthrough names', async () => {
    expect(await sendTls(port.tls, client('web.example.com'))).toMatchObject({ status: 200 })
    const stray = { host: 'db.example.com' }
    expect(await sendTls(port.tls, client('web.example.com'), stray)).toMatchObject({ status: 421 })
  })
})

describe('a connection that is forwarded', () => {
  it('[DynamicForwardProxyBackend.sni] is reset after its idle timeout, and a dynamic forward proxy sends it to the host of its SNI', async () => {
    const own = { tcp: await freePort(), tls: await freePort() }
    const idle = await startGateway({
      env: { SLUICE_STREAM_IDLE_TIMEOUT: '1s' },
      manifests: {
        'all.yaml': manifest(
          gateway(0, {
            listeners: [
              { name: 'tcp', port: own.tcp, protocol: 'TCP' },
              { name: 'tls', port: own.tls, protocol: 'TLS', tls: { mode: 'Passthrough' } },
            ],
          }),
          staticBackend('a', upstreams.a.port),
          streamRoute('TCPRoute', 'tcp', 'tcp', [toBackend('a')]),
          {
            apiVersion: 'sluice.dev/v1alpha1',
            kind: 'GatewayBackend',
            metadata: { name: 'anywhere' },
            spec: { dynamicForwardProxy: {} },
          },
          streamRoute('TLSRoute', 'anywhere', 'tls', [toBackend('anywhere')], {
            hostnames: ['*.invalid', 'metadata.google.internal'],
          }),
        ),
      },
    })
    const lines = () => idle.stdout.split('\n')
    const quiet = connect({ port: own.tcp, host: '127.0.0.1' })
    const cut = once(quiet, 'error')
    await once(quiet, 'data')
    expect(await cut).toMatchObject([{ code: 'ECONNRESET' }])
    await waitFor('the line', () =>
      lines().find((line) => line.includes('error="no bytes for too long" reason=Timeout')),
    )
    // A dynamic forward proxy resolves the server name of the handshake; this one does not exist.
    await expect(handshake(own.tls, client('nobody.invalid'))).rejects.toThrow()
    await waitFor('the other line', () =>
      lines().find((line) => line.includes('tls.sni=nobody.invalid') && line.includes('DNS')),
    )
    await idle.dispose()
  })
})

describe('a gateway that shuts down', () => {
  it('waits for forwarded connections, then closes them', async () => {
    const own = await freePort()
    const stopping = await startGateway({
      env: { CONNECTION_TERMINATION_DEADLINE: '1s' },
      manifests: {
        'all.yaml': manifest(
          gateway(0, { listeners: [{ name: 'tcp', port: own, protocol: 'TCP' }] }),
          staticBackend('a', upstreams.a.port),
          streamRoute('TCPRoute', 'tcp', 'tcp', [toBackend('a')]),
        ),
      },
    })
    const [quick, slow] = [0, 1].map(() => connect({ port: own, host: '127.0.0.1' }))
    if (quick === undefined || slow === undefined) throw new Error('two sockets')
    await Promise.all([once(quick, 'data'), once(slow, 'data')])
    const cut = once(slow, 'error')
    const ended = stopping.stop()
    await waitFor('the port to close', async () =>
      (await converse(own, '').catch((error: Error) => error.message)).includes('ECONNREFUSED'),
    )
    quick.end('last words')
    expect(String(await once(quick, 'data'))).toBe('last words')
    expect(await cut).toMatchObject([{ code: 'ECONNRESET' }])
    expect(await ended).toBe(0)
    await stopping.dispose()
  })
})
