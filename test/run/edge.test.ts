import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { describe, expect, it } from 'vitest'
import { useAuthority, useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, freePorts, type GatewayOptions } from '../support/gateway.ts'
import {
  gateway,
  httpRoute,
  policy,
  staticBackend,
  streamRoute,
  tlsSecret,
  toBackend,
} from '../support/manifests.ts'
import { answerTo } from '../support/raw-answer.ts'
import { echo, startTcpUpstream } from '../support/stream-upstream.ts'
import { clientHello } from '../support/tls-client.ts'
import { waitFor } from '../support/wait-for.ts'

const authority = useAuthority()
const upstream = useUpstream('main')
const bytes = useFixture(() => startTcpUpstream(echo('bytes')))

const newPorts = () => freePorts('http', 'https', 'tcp', 'pass')
const ports = {
  trusting: await newPorts(),
  plain: await newPorts(),
  balanced: await newPorts(),
  limited: await newPorts(),
}
const stats = `127.0.0.1:${await freePort()}`

const line = (address: string) => `PROXY TCP4 ${address} 198.51.100.1 4711 443\r\n`
const request = 'GET / HTTP/1.1\r\nhost: a.example.com\r\nconnection: close\r\n\r\n'

const answer = (to: number, ...parts: string[]) => answerTo({ port: to }, ...parts)

function options(port: (typeof ports)['plain'], ...args: string[]): GatewayOptions {
  const tls = { certificateRefs: [{ name: 'cert' }] }
  const listeners = [
    { name: 'http', port: port.http, protocol: 'HTTP' },
    { name: 'https', port: port.https, protocol: 'HTTPS', tls },
    { name: 'tcp', port: port.tcp, protocol: 'TCP' },
    { name: 'pass', port: port.pass, protocol: 'TLS', tls: { mode: 'Passthrough' } },
  ]
  return {
    args,
    manifests: [
      gateway(0, { listeners }),
      tlsSecret('cert', authority.issue(['a.example.com'])),
      staticBackend('main', upstream.port),
      staticBackend('bytes', bytes.port),
      httpRoute('open', { rules: [{ backendRefs: [toBackend('main')] }] }),
      httpRoute('inside', {
        rules: [
          {
            matches: [{ path: { type: 'PathPrefix', value: '/inside' } }],
            backendRefs: [toBackend('main')],
          },
        ],
      }),
      policy('inside', 'HTTPRoute/inside', {
        traffic: {
          authorization: {
            policy: {
              matchExpressions: [
                'cidr("10.0.0.0/8").containsIP(source.address) && source.rawAddress == "127.0.0.1"',
              ],
            },
          },
        },
      }),
      streamRoute('TCPRoute', 'bytes', 'tcp', [toBackend('bytes')]),
      streamRoute('TLSRoute', 'pass', 'pass', [toBackend('bytes')], {
        hostnames: ['a.example.com'],
      }),
    ],
  }
}

describe('X-Forwarded-For', () => {
  const port = ports.trusting
  const trusting = useGateway(() => options(port, '--trusted-proxies', '127.0.0.1,192.0.2.0/24'))
  const plain = useGateway(() => options(ports.plain))

  const inside = (...forwarded: string[]) =>
    trusting
      .send(port.http, { path: '/inside', headers: { 'x-forwarded-for': forwarded } })
      .then(({ status }) => status)

  it('identifies the client if a trusted proxy sends it', async () => {
    expect(await inside('10.1.2.3')).toBe(200)
    expect(await inside('203.0.113.9')).toBe(403)
    expect(await inside('10.1.2.3:5555')).toBe(200)
    // Another text for the same address.
    expect(await inside('::FFFF:10.1.2.3')).toBe(200)
    expect(await inside('::ffff:203.0.113.9')).toBe(403)
    await waitFor('the log', () => trusting.stdout.includes(' src.addr=10.1.2.3:5555 '))
  })

  it('is read from the right, past trusted hops and no further', async () => {
    expect(await inside('203.0.113.9, 10.1.2.3, 192.0.2.7')).toBe(200)
    expect(await inside('10.1.2.3, 203.0.113.9, 192.0.2.7')).toBe(403)
    // More lines are one list, as for every header field.
    expect(await inside('10.1.2.3', '203.0.113.9')).toBe(403)
    expect(await inside('203.0.113.9', '10.1.2.3')).toBe(200)
  })

  it('is read no further than an entry that is not an address', async () => {
    expect(await inside('10.1.2.3, unknown')).toBe(403)
    expect(await inside('10.1.2.3, 999.0.0.1')).toBe(403)
    expect(await inside('')).toBe(403)
  })

  it('is ignored if an untrusted client sends it', async () => {
    const sent = { path: '/inside', headers: { 'x-forwarded-for': '10.1.2.3' } }
    expect((await plain.send(ports.plain.http, sent)).status).toBe(403)
    await waitFor('the log', () => / src\.addr=127\.0\.0\.1:\d+ /.test(plain.stdout))
    expect(plain.stdout).not.toContain('src.addr=10.')
    // A PROXY header on a port that does not expect one is a malformed request.
    expect(await answer(ports.plain.http, line('10.1.2.3'), request)).toMatch(/^HTTP\/1.1 400 /)
  })
})

describe('a PROXY header', () => {
  const port = ports.balanced
  const balanced = useGateway(() =>
    options(port, '--proxy-protocol-from', '127.0.0.1', '--stats-address', stats),
  )

  it('identifies the client of plain HTTP, however its bytes are split', async () => {
    const guarded = request.replace('GET /', 'GET /inside')
    expect(await answer(port.http, line('10.1.2.3'), guarded)).toMatch(/^HTTP\/1.1 200 /)
    expect(await answer(port.http, line('10.1.2.3') + guarded)).toMatch(/^HTTP\/1.1 200 /)
    expect(await answer(port.http, line('203.0.113.9') + guarded)).toMatch(/^HTTP\/1.1 403 /)
    const [head, tail] = [line('10.1.2.3').slice(0, 9), line('10.1.2.3').slice(9)]
    expect(await answer(port.http, head, tail, guarded)).toMatch(/^HTTP\/1.1 200 /)
    await waitFor('the log', () => balanced.stdout.includes(' src.addr=10.1.2.3:4711 '))
    // A version 2 header with the command LOCAL, which health checks of a load balancer send.
    const local = '\r\n\r\n\0\r\nQUIT\n\x20\0\0\0'
    expect(await answer(port.http, local + request)).toMatch(/^HTTP\/1.1 200 /)
    expect(await answer(port.http, local + guarded)).toMatch(/^HTTP\/1.1 403 /)
  })

  const overTls = async (to: number): Promise<TLSSocket> => {
    const socket: Socket = connect({ port: to, host: '127.0.0.1' })
    await once(socket, 'connect')
    socket.write(line('10.9.8.7'))
    const options = { socket, ca: authority.certificate, servername: 'a.example.com' }
    const secure = connectTls(options)
    await once(secure, 'secureConnect')
    return secure
  }

  it('is read before TLS that the gateway terminates', async () => {
    const secure = await overTls(port.https)
    secure.write(request.replace('GET /', 'GET /inside'))
    expect(String(await once(secure, 'data'))).toMatch(/^HTTP\/1.1 200 /)
    secure.destroy()
  })

  it('is read before forwarded bytes, and is not forwarded', async () => {
    const socket = connect({ port: port.tcp, host: '127.0.0.1' })
    socket.write(`${line('10.9.8.7')}hello`)
    let text = ''
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString()
    })
    await waitFor('the echo', () => text === 'bytes:hello')
    socket.end()
    await waitFor('the log', () =>
      balanced.stdout
        .split('\n')
        .some(
          (entry) => entry.includes('route=default/bytes') && entry.includes('src.addr=10.9.8.7:'),
        ),
    )
  })

  it('is read before passthrough TLS, and no byte is lost', async () => {
    const hello = await clientHello('a.example.com')
    const socket = connect({ port: port.pass, host: '127.0.0.1' })
    const chunks: Buffer[] = []
    socket.on('data', (chunk: Buffer) => chunks.push(chunk))
    socket.write(line('10.9.8.7'))
    socket.write(hello)
    socket.write('early')
    setImmediate(() => socket.write(' data'))
    const expected = Buffer.concat([Buffer.from('bytes:'), hello, Buffer.from('early data')])
    await waitFor('the echo', () => Buffer.concat(chunks).equals(expected))
    socket.end()
  })

  it('is required: a connection without one is reset and counted', async () => {
    expect(await answer(port.http, request)).toBe('reset')
    const metrics = await (await fetch(`http://${stats}/metrics`)).text()
    expect(metrics).toMatch(/^sluice_proxy_headers_refused_total 1$/m)
  })
})

describe('a proxy at its connection limit', () => {
  const some = ['--max-connections', '3', '--workers', '2', '--stats-address', stats]
  useGateway(() => options(ports.limited, ...some))

  it('resets further connections on every worker, and accepts again once one closes', async () => {
    // All at once: the workers decide at the same time.
    const open = Array.from({ length: 24 }, () =>
      connect({ port: ports.limited.http, host: '127.0.0.1' }),
    )
    const held: Socket[] = []
    const decided = open.map(async (socket) => {
      socket.write('GET / HTTP/1.1\r\nhost: a.example.com\r\n\r\n')
      await once(socket, 'data').then(
        () => held.push(socket),
        () => undefined,
      )
    })
    await Promise.all(decided)
    expect(held).toHaveLength(3)
    const metrics = await (await fetch(`http://${stats}/metrics`)).text()
    expect(metrics).toMatch(/^sluice_downstream_connections_refused_total 21$/m)
    held[0]?.destroy()
    await waitFor('room', async () =>
      (await answer(ports.limited.http, request)).startsWith('HTTP/1.1 200'),
    )
    for (const socket of held) socket.destroy()
  })
})
