import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import type { Socket } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { ProxyAgent, fetch as undiciFetch } from 'undici'
import { describe, expect, it } from 'vitest'
import { useFolder } from '../support/fixture.ts'
import { clientHello } from '../support/tls-client.ts'
import {
  askHttp2Tunnel,
  askTunnel,
  closed,
  openHttp2,
  readUntil,
  sendRaw,
} from '../support/tunnel-client.ts'
import { waitFor } from '../support/wait-for.ts'
import { authority, echo, logLine, nextAccepted, port, secure, stats, web } from './connect-rig.ts'

const run = promisify(execFile)
const folder = useFolder('connect-')
const caFile = join(folder, 'ca.crt')
const proxy = `http://127.0.0.1:${port.proxy}`
const basic = (user: string) => `Basic ${Buffer.from(`${user}:pw`).toString('base64')}`
const loggedBytes = (line: string, name: string) =>
  Number(new RegExp(`${name}=(\\d+)`).exec(line)?.[1])

describe('CONNECT', () => {
  it('gets 405 without frontend.connect, over HTTP/1.1 and HTTP/2', async () => {
    expect((await askTunnel(port.closed, `a.example.com:${echo.port}`)).status).toBe(405)
    const session = await openHttp2(port.closed)
    expect((await askHttp2Tunnel(session, `b.example.com:${echo.port}`)).status).toBe(405)
    session.destroy()
    for (const host of ['a', 'b']) {
      const target = `http.host=${host}.example.com:${echo.port}`
      await logLine('http.method=CONNECT', target, 'http.status=405', 'gateway=default/closed')
    }
  })

  it('carries bytes both ways after a 200 without framing fields, including bytes that the client sent with the head', async () => {
    const { status, head, rest, socket } = await askTunnel(
      port.proxy,
      `a.example.com:${echo.port}`,
      {},
      'early',
    )
    expect(status).toBe(200)
    expect(head).not.toMatch(/content-length|transfer-encoding|connection|upgrade/i)
    socket.write('late')
    expect(await readUntil(socket, 'late', rest)).toBe('hello\nearlylate')
    socket.end()
    expect(await readUntil(socket, '')).toBe('')
    const line = await logLine('CONNECT', `a.example.com:${echo.port}`, 'http.status=200')
    expect([loggedBytes(line, 'bytes.received'), loggedBytes(line, 'bytes.sent')]).toEqual([9, 15])
    await waitFor('the metrics', async () => {
      const text = await (await fetch(`http://${stats}/metrics`)).text()
      const labels =
        'reason="Upstream",gateway="default/proxy",listener="http",route="default/open"'
      return text.includes(`sluice_tunnel_received_bytes_total{${labels}}`)
    })
  })

  it('carries bytes both ways over HTTP/2, and ends each direction separately', async () => {
    const session = await openHttp2(port.proxy)
    const { status, stream } = await askHttp2Tunnel(session, `a.example.com:${echo.port}`)
    expect(status).toBe(200)
    stream.end('over h2')
    expect(await readUntil(stream, '')).toBe('hello\nover h2')
    session.destroy()
  })

  it('moves megabytes with back-pressure', async () => {
    const { rest, socket } = await askTunnel(port.proxy, `a.example.com:${echo.port}`)
    const size = 8 * 1024 * 1024
    socket.end(Buffer.alloc(size, 'x'))
    const got = await readUntil(socket, '', rest)
    expect(got.length).toBe('hello\n'.length + size)
  })

  it('resets the client if the destination resets, and the destination if the client does', async () => {
    const to = `b.example.com:${echo.port}`
    const client: { socket?: Socket } = {}
    const open = () =>
      nextAccepted(async () => {
        client.socket = (await askTunnel(port.proxy, to)).socket
      })
    const destination = await open()
    const wasReset = closed(client.socket as Socket)
    destination.resetAndDestroy()
    expect(await wasReset).toBe(true)
    await logLine('CONNECT', to, 'reason=UpstreamFailure')
    const another = await open()
    const wasAnotherReset = closed(another)
    client.socket?.resetAndDestroy()
    expect(await wasAnotherReset).toBe(true)
  })

  it('opens tunnels only to names that a route has and to ports that the policy lists', async () => {
    expect((await askTunnel(port.proxy, `other.example.com:${echo.port}`)).status).toBe(404)
    const refused = await askTunnel(port.proxy, 'a.example.com:25')
    expect(refused.status).toBe(403)
    expect(refused.head).toContain('proxy-status: sluice; error=http_request_denied')
    expect((await askTunnel(port.proxy, 'a.example.com:1')).status).toBe(403)
  })

  it('closes the connection after a refusal, so that bytes for the tunnel become no request', async () => {
    const smuggled = 'GET / HTTP/1.1\r\nhost: a.example.com\r\n\r\n'
    const { status, rest, socket } = await askTunnel(port.proxy, 'a.example.com:25', {}, smuggled)
    expect(status).toBe(403)
    expect(await readUntil(socket, '', rest)).not.toContain('HTTP/1.1')
  })

  it.each([
    [
      'a body of known length',
      `CONNECT a.example.com:443 HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello`,
    ],
    [
      'a chunked body',
      `CONNECT a.example.com:443 HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    ['no port', 'CONNECT a.example.com HTTP/1.1\r\nhost: a\r\n\r\n'],
    ['port 0', 'CONNECT a.example.com:0 HTTP/1.1\r\nhost: a\r\n\r\n'],
    ['a port out of range', 'CONNECT a.example.com:65979 HTTP/1.1\r\nhost: a\r\n\r\n'],
    ['an endless port', `CONNECT a.example.com:${'0'.repeat(300)}443 HTTP/1.1\r\nhost: a\r\n\r\n`],
    ['user information', 'CONNECT b@a.example.com:443 HTTP/1.1\r\nhost: a\r\n\r\n'],
    ['a path', 'CONNECT a.example.com:443/x HTTP/1.1\r\nhost: a\r\n\r\n'],
    ['a scheme', 'CONNECT https://a.example.com:443 HTTP/1.1\r\nhost: a\r\n\r\n'],
    ['a name in UTF-8', 'CONNECT b\u00c3\u00bccher.example.com:443 HTTP/1.1\r\nhost: a\r\n\r\n'],
    ['an IPv6 address without brackets', 'CONNECT ::1:443 HTTP/1.1\r\nhost: a\r\n\r\n'],
    ['a zone', 'CONNECT [fe80::1%25eth0]:443 HTTP/1.1\r\nhost: a\r\n\r\n'],
    ['two hosts', 'CONNECT a.example.com:443 HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n'],
  ])('gets 400 with %s', async (_, text) => {
    expect((await sendRaw(port.proxy, text)).status).toBe(400)
  })

  it('finds the route by the name in lower case, without its root dot, and ignores Host', async () => {
    const text = `CONNECT A.Example.com.:${echo.port} HTTP/1.1\r\nhost: other.example.com\r\n\r\n`
    const { status, socket } = await sendRaw(port.proxy, text)
    expect(status).toBe(200)
    socket.destroy()
  })

  it('refuses names of metadata services, also numeric forms of their addresses', async () => {
    const by = { 'x-address': 'yes' }
    expect((await askTunnel(port.proxy, 'metadata.example.com:443')).status).toBe(403)
    for (const host of [
      '169.254.169.254',
      '[::ffff:169.254.169.254]',
      '2852039166',
      '0xa9fea9fe',
    ]) {
      expect([host, (await askTunnel(port.proxy, `${host}:443`, by)).status]).not.toEqual([
        host,
        200,
      ])
    }
    expect((await askTunnel(port.proxy, `[::1]:${web.port}`, by)).status).not.toBe(404)
  })

  it('asks for credentials of the proxy with 407, and decides by the principal', async () => {
    const to = `localhost:${web.port}`
    const asked = await askTunnel(port.proxy, to)
    expect(asked.status).toBe(407)
    expect(asked.head).toContain('proxy-authenticate: Basic realm="proxy"')
    expect(asked.head).not.toContain('www-authenticate')
    const withCredentials = (user: string, name = 'proxy-authorization') =>
      askTunnel(port.proxy, to, { [name]: basic(user) })
    expect((await withCredentials('bob')).status).toBe(403)
    expect((await withCredentials('alice', 'authorization')).status).toBe(407)
    const { status, socket } = await withCredentials('alice')
    expect(status).toBe(200)
    socket.destroy()
  })

  it('limits the tunnels of a listener, and cuts idle tunnels', async () => {
    const to = `a.example.com:${echo.port}`
    const first = await askTunnel(port.limited, to)
    const second = await askTunnel(port.limited, to)
    expect([first.status, second.status]).toEqual([200, 200])
    expect((await askTunnel(port.limited, to)).status).toBe(503)
    expect(await closed(first.socket)).toBe(true)
    expect(await closed(second.socket)).toBe(true)
    await logLine('CONNECT', 'no bytes for too long')
    const { status, socket } = await askTunnel(port.limited, to)
    expect(status).toBe(200)
    socket.destroy()
  })

  it('forwards nothing unless the client begins TLS for the host of the tunnel, if the policy requires it', async () => {
    const to = `a.example.com:${echo.port}`
    const open = async (first: Buffer | string) => {
      const answered = await askTunnel(port.named, to)
      answered.socket.write(first)
      return answered
    }
    const hello = await clientHello('A.example.com')
    const right = await open(hello.subarray(0, 50))
    right.socket.write(hello.subarray(50))
    const back = await readUntil(right.socket, hello.toString('latin1').slice(-40), right.rest)
    expect(back).toBe(`hello\n${hello.toString('latin1')}`)
    expect(await closed(right.socket)).toBe(true)
    await logLine('CONNECT', 'tunnel open for too long')
    for (const wrong of [
      await clientHello('b.example.com'),
      'GET / HTTP/1.1\r\n\r\n',
      Buffer.alloc(0),
    ]) {
      const one = await open(wrong)
      if (wrong.length === 0) one.socket.end()
      expect(await closed(one.socket)).toBe(true)
    }
    expect(await logLine('CONNECT', 'TLS for b.example.com')).toContain('reason=Authorization')
  })

  it('cuts tunnels whose clients do not begin TLS within the handshake timeout, if they must', async () => {
    const { socket } = await askTunnel(port.prompt, `a.example.com:${echo.port}`)
    expect(await closed(socket)).toBe(true)
    await logLine('CONNECT', 'the client has not sent its ClientHello in time')
  })
})

describe('clients of forward proxies', () => {
  it('works with curl, over plain text and TLS', async () => {
    writeFileSync(caFile, authority.certificate)
    const dnsName = `https://a.example.com:${secure.port}/by-curl`
    const { stdout } = await run('curl', [
      '-sS',
      '--noproxy',
      '',
      '-x',
      proxy,
      '--cacert',
      caFile,
      dnsName,
    ])
    expect(JSON.parse(stdout)).toMatchObject({ path: '/by-curl', upstream: 'secure' })
    const asked = ['-sS', '--noproxy', '', '-p', '-x', proxy, '-U', 'alice:pw']
    const plain = await run('curl', [...asked, `http://localhost:${web.port}/plain`])
    expect(JSON.parse(plain.stdout)).toMatchObject({ path: '/plain', upstream: 'web' })
    const { headers } = JSON.parse(plain.stdout)
    expect(headers['proxy-authorization']).toBeUndefined()
  })

  it('works with undici', async () => {
    const agent = new ProxyAgent({
      uri: proxy,
      token: basic('alice'),
      proxyTunnel: true,
      requestTls: { ca: authority.certificate },
    })
    const response = await undiciFetch(`https://b.example.com:${secure.port}/by-undici`, {
      dispatcher: agent,
    })
    expect(await response.json()).toMatchObject({ path: '/by-undici', upstream: 'secure' })
    await agent.close()
  })
})
