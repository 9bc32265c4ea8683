import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Authority } from '../support/certificates.ts'
import { freePort, type RunningGateway, startGateway } from '../support/gateway.ts'
import {
  gateway,
  httpRoute,
  manifest,
  policy,
  staticBackend,
  streamRoute,
  tlsSecret,
  toBackend,
} from '../support/manifests.ts'
import { echo, type StreamUpstream, startTcpUpstream } from '../support/stream-upstream.ts'
import { clientHello } from '../support/tls-client.ts'
import { startUpstream, type Upstream } from '../support/upstream.ts'
import { waitFor } from '../support/wait-for.ts'

let authority: Authority
let upstream: Upstream
let bytes: StreamUpstream
let port: Record<'http' | 'https' | 'tcp' | 'pass', number>
/** One that believes X-Forwarded-For, one that believes PROXY headers, and one that believes nobody. */
let believing: RunningGateway
let balanced: RunningGateway
let plain: RunningGateway

const line = (address: string) => `PROXY TCP4 ${address} 198.51.100.1 4711 443\r\n`
const request = 'GET / HTTP/1.1\r\nhost: a.example.com\r\nconnection: close\r\n\r\n'

/** What comes back for these bytes; `reset` where the connection is broken. */
async function answer(to: number, ...parts: string[]): Promise<string> {
  const socket = connect({ port: to, host: '127.0.0.1' })
  let text = ''
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString('latin1')
  })
  const over = new Promise<string>((resolve) => {
    socket.once('end', () => resolve(text))
    socket.once('error', () => resolve('reset'))
  })
  for (const part of parts) {
    socket.write(part, 'latin1')
    await new Promise((resolve) => setImmediate(resolve))
  }
  return over
}

async function start(args: string[]): Promise<[RunningGateway, typeof port]> {
  const own = {
    http: await freePort(),
    https: await freePort(),
    tcp: await freePort(),
    pass: await freePort(),
  }
  const tls = { certificateRefs: [{ name: 'cert' }] }
  const listeners = [
    { name: 'http', port: own.http, protocol: 'HTTP' },
    { name: 'https', port: own.https, protocol: 'HTTPS', tls },
    { name: 'tcp', port: own.tcp, protocol: 'TCP' },
    { name: 'pass', port: own.pass, protocol: 'TLS', tls: { mode: 'Passthrough' } },
  ]
  const running = await startGateway({
    args,
    manifests: {
      'all.yaml': manifest(
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
      ),
    },
  })
  return [running, own]
}

beforeAll(async () => {
  authority = new Authority()
  upstream = await startUpstream('main')
  bytes = await startTcpUpstream(echo('bytes'))
})

afterAll(async () => {
  for (const running of [believing, balanced, plain]) await running?.dispose()
  await upstream?.close()
  await bytes?.close()
  authority?.dispose()
})

describe('X-Forwarded-For', () => {
  beforeAll(async () => {
    ;[believing, port] = await start(['--trusted-proxies', '127.0.0.1,192.0.2.0/24'])
  })

  const inside = (...forwarded: string[]) =>
    believing
      .send(port.http, { path: '/inside', headers: { 'x-forwarded-for': forwarded } })
      .then(({ status }) => status)

  it('of a trusted proxy names the client', async () => {
    expect(await inside('10.1.2.3')).toBe(200)
    expect(await inside('203.0.113.9')).toBe(403)
    expect(await inside('10.1.2.3:5555')).toBe(200)
    // Another text for the same address.
    expect(await inside('::FFFF:10.1.2.3')).toBe(200)
    expect(await inside('::ffff:203.0.113.9')).toBe(403)
    await waitFor('the log', () => believing.stdout.includes(' src.addr=10.1.2.3:5555 '))
  })

  it('is read from its end, past trusted hops and no further', async () => {
    expect(await inside('203.0.113.9, 10.1.2.3, 192.0.2.7')).toBe(200)
    expect(await inside('10.1.2.3, 203.0.113.9, 192.0.2.7')).toBe(403)
    // More lines are one list, as for every header field.
    expect(await inside('10.1.2.3', '203.0.113.9')).toBe(403)
    expect(await inside('203.0.113.9', '10.1.2.3')).toBe(200)
  })

  it('with anything but an address ends there', async () => {
    expect(await inside('10.1.2.3, unknown')).toBe(403)
    expect(await inside('10.1.2.3, 999.0.0.1')).toBe(403)
    expect(await inside('')).toBe(403)
  })

  it('of anybody else is not believed', async () => {
    ;[plain, port] = await start([])
    const sent = { path: '/inside', headers: { 'x-forwarded-for': '10.1.2.3' } }
    expect((await plain.send(port.http, sent)).status).toBe(403)
    await waitFor('the log', () => / src\.addr=127\.0\.0\.1:\d+ /.test(plain.stdout))
    expect(plain.stdout).not.toContain('src.addr=10.')
    // Nor is a PROXY header where none is expected: it is a malformed request.
    expect(await answer(port.http, line('10.1.2.3'), request)).toMatch(/^HTTP\/1.1 400 /)
  })
})

describe('a PROXY header', () => {
  let stats: string

  beforeAll(async () => {
    stats = `127.0.0.1:${await freePort()}`
    ;[balanced, port] = await start([
      '--proxy-protocol-from',
      '127.0.0.1',
      '--stats-address',
      stats,
    ])
  })

  it('names the client of plain HTTP, wherever its bytes are cut', async () => {
    const guarded = request.replace('GET /', 'GET /inside')
    expect(await answer(port.http, line('10.1.2.3'), guarded)).toMatch(/^HTTP\/1.1 200 /)
    expect(await answer(port.http, line('10.1.2.3') + guarded)).toMatch(/^HTTP\/1.1 200 /)
    expect(await answer(port.http, line('203.0.113.9') + guarded)).toMatch(/^HTTP\/1.1 403 /)
    const [head, tail] = [line('10.1.2.3').slice(0, 9), line('10.1.2.3').slice(9)]
    expect(await answer(port.http, head, tail, guarded)).toMatch(/^HTTP\/1.1 200 /)
    await waitFor('the log', () => balanced.stdout.includes(' src.addr=10.1.2.3:4711 '))
    // Of version 2, by which the balancer speaks for itself.
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

  it('comes before TLS that ends here', async () => {
    const secure = await overTls(port.https)
    secure.write(request.replace('GET /', 'GET /inside'))
    expect(String(await once(secure, 'data'))).toMatch(/^HTTP\/1.1 200 /)
    secure.destroy()
  })

  it('comes before bytes that are forwarded, and is not forwarded', async () => {
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

  it('comes before TLS that passes through, of which no byte is lost', async () => {
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

  it('is demanded: a connection without one is dropped and counted', async () => {
    expect(await answer(port.http, request)).toBe('reset')
    const metrics = await (await fetch(`http://${stats}/metrics`)).text()
    expect(metrics).toMatch(/^sluice_proxy_headers_refused_total 1$/m)
  })
})

describe('a proxy with as many connections as it may have', () => {
  it('resets the next ones, whichever worker they meet, and takes more when one has gone', async () => {
    const stats = `127.0.0.1:${await freePort()}`
    const some = ['--max-connections', '3', '--workers', '2', '--stats-address', stats]
    const [running, own] = await start(some)
    // All at once: the workers decide at the same time.
    const open = Array.from({ length: 24 }, () => connect({ port: own.http, host: '127.0.0.1' }))
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
    await waitFor('room', async () => (await answer(own.http, request)).startsWith('HTTP/1.1 200'))
    for (const socket of held) socket.destroy()
    await running.dispose()
  })
})
