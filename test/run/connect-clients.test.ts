import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { startExtAuthServer } from '../support/ext-auth-server.ts'
import { useFixture, useFolder, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { gateway, httpRoute, policy, staticBackend, toBackend } from '../support/manifests.ts'
import { describeWithParts, partPath } from '../support/parts.ts'
import { clientHello } from '../support/tls-client.ts'
import { askHttp2Tunnel, askTunnel, openHttp2, readUntil } from '../support/tunnel-client.ts'
import { authority, echo, logLine, port, secure } from './connect-rig.ts'

const run = promisify(execFile)
const folder = useFolder('connect-clients-')
const caFile = join(folder, 'ca.crt')
const isOpen = ({ status }: { status: number }) => status === 200
const tunnelTo = () => `a.example.com:${echo.port}`

describe('a CONNECT that arrives slowly', () => {
  it('opens the tunnel, and loses no byte that follows the head', async () => {
    const socket = connect({ port: port.proxy, host: '127.0.0.1', noDelay: true })
    const text = `CONNECT ${tunnelTo()} HTTP/1.1\r\nhost: a.example.com\r\n\r\nearly`
    for (const char of text) {
      socket.write(char)
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(await readUntil(socket, 'early')).toMatch(/^HTTP\/1\.1 200 [\s\S]*hello\nearly$/)
    socket.destroy()
  })
})

describe('a tunnel over HTTP/2', () => {
  it('moves more bytes than the windows of both sides', async () => {
    const session = await openHttp2(port.proxy)
    const { stream } = await askHttp2Tunnel(session, tunnelTo())
    const size = 2 * 1024 * 1024
    stream.end(Buffer.alloc(size, 'x'))
    expect((await readUntil(stream, '')).length).toBe('hello\n'.length + size)
    session.destroy()
  })

  it('is reset if the client sends trailers', async () => {
    const session = await openHttp2(port.proxy)
    const stream = session.request(
      { ':method': 'CONNECT', ':authority': tunnelTo() },
      { waitForTrailers: true },
    )
    stream.on('error', () => {}).on('wantTrailers', () => stream.sendTrailers({ x: 'y' }))
    expect(await readUntil(stream, 'hello\n')).toBe('hello\n')
    const over = new Promise((resolve) => stream.once('close', resolve))
    stream.end('last')
    stream.resume()
    await over
    expect(stream.rstCode).not.toBe(0)
    session.destroy()
  })
})

describe('the check of server names over HTTP/2', () => {
  it('accepts a ClientHello in frames of one byte', async () => {
    const session = await openHttp2(port.named)
    const { stream } = await askHttp2Tunnel(session, tunnelTo())
    const hello = await clientHello('a.example.com')
    for (const byte of hello) stream.write(Buffer.of(byte))
    const end = hello.toString('latin1').slice(-40)
    expect(await readUntil(stream, end)).toBe(`hello\n${hello.toString('latin1')}`)
    session.destroy()
  })

  it('resets a stream whose first 32 KiB contain no whole ClientHello, and gives back their window', async () => {
    const session = await openHttp2(port.named)
    // 60 KB of records with one byte each, which are a part of a ClientHello of 16 KiB.
    const record = (byte: number) => Buffer.of(22, 3, 1, 0, 1, byte)
    const hello = [1, 0, 0x40, 0, ...Array<number>(10_000).fill(0)].map(record)
    for (let at = 0; at < 4; at++) {
      const { stream } = await askHttp2Tunnel(session, tunnelTo())
      const over = new Promise((resolve) => stream.once('close', resolve))
      stream.write(Buffer.concat(hello))
      stream.resume()
      await over
      expect(stream.rstCode).not.toBe(0)
    }
    // The connection can still send: the window of the refused bytes was given back.
    const { stream } = await askHttp2Tunnel(session, tunnelTo())
    const right = await clientHello('a.example.com')
    stream.write(right)
    expect(await readUntil(stream, right.toString('latin1').slice(-40))).toContain('hello\n')
    session.destroy()
    // Tunnels of this listener are also cut after a second.
    await logLine('CONNECT', 'the client does not begin with TLS')
  })
})

describe('a gateway that stops', () => {
  const stopping = { port: 0 }
  const running = useGateway(async () => {
    stopping.port = await freePort()
    return {
      env: { CONNECTION_TERMINATION_DEADLINE: '2s' },
      manifests: [
        gateway(stopping.port),
        staticBackend('echo', echo.port),
        httpRoute('all', { rules: [{ backendRefs: [toBackend('echo')] }] }),
        policy('edge', 'Gateway/edge', { frontend: { connect: { mode: 'Route' } } }),
      ],
    }
  })

  it('keeps tunnels open until the end of the drain, and cuts them then', async () => {
    const { socket, rest } = await askTunnel(stopping.port, 'x.test:443')
    await readUntil(socket, 'hello\n', rest)
    const stopped = running.stop()
    await expect
      .poll(() => askTunnel(stopping.port, 'x.test:443').then(isOpen, () => false))
      .toBe(false)
    socket.write('during the drain')
    expect(await readUntil(socket, 'during the drain')).toBe('during the drain')
    await readUntil(socket, '')
    socket.destroy()
    expect(await stopped).toBe(0)
  })
})

describe('external authorization of tunnels', () => {
  const judge = useFixture(startExtAuthServer)
  const guarded = { port: 0 }
  useGateway(async () => {
    guarded.port = await freePort()
    return {
      manifests: [
        gateway(guarded.port),
        staticBackend('echo', echo.port),
        staticBackend('judge', judge.port),
        httpRoute('all', { rules: [{ backendRefs: [toBackend('echo')] }] }),
        policy('edge', 'Gateway/edge', { frontend: { connect: { mode: 'Route' } } }),
        policy('judge', 'HTTPRoute/all', {
          traffic: { extAuth: { backendRef: toBackend('judge'), grpc: {} } },
        }),
      ],
    }
  })

  it('receives the method, the host and the credentials of the client, and allows or refuses the tunnel', async () => {
    judge.answerEach((asked) => {
      const { authorization } = asked?.request?.http?.headers ?? {}
      const isRight = authorization === 'Bearer right'
      return { status: { code: isRight ? 0 : 16 }, httpResponse: isRight ? undefined : denied }
    })
    const ask = (token: string) =>
      askTunnel(guarded.port, 'x.test:443', { 'proxy-authorization': `Bearer ${token}` })
    const refused = await ask('wrong')
    expect(refused.status).toBe(407)
    expect(refused.head).toContain('proxy-authenticate: Bearer')
    const { status, socket } = await ask('right')
    expect(status).toBe(200)
    socket.destroy()
    expect(judge.asked.at(-1)?.request?.http).toMatchObject({
      method: 'CONNECT',
      host: 'x.test:443',
    })
  })

  const denied = {
    case: 'deniedResponse' as const,
    value: {
      status: { code: 401 },
      headers: [{ header: { key: 'www-authenticate', value: 'Bearer' } }],
    },
  }
})

const standardLibrary = `
import http.client, ssl, sys
proxy, target, ca = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
client = http.client.HTTPSConnection('127.0.0.1', proxy, context=ssl.create_default_context(cafile=ca))
client.set_tunnel('a.example.com', target)
client.request('GET', '/by-http-client')
print(client.getresponse().read().decode())
`
const httpx = `
import httpx, ssl, sys
proxy, target, ca = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
with httpx.Client(proxy=f'http://127.0.0.1:{proxy}', verify=ssl.create_default_context(cafile=ca)) as client:
    print(client.get(f'https://b.example.com:{target}/by-httpx').text)
`

describeWithParts(['python3', 'python-tools'], 'Python clients of forward proxies', () => {
  it.each([
    ['http.client', '/by-http-client', standardLibrary],
    ['httpx', '/by-httpx', httpx],
  ])('work with %s', async (_, path, program) => {
    writeFileSync(caFile, authority.certificate)
    const args = ['-c', program, String(port.proxy), String(secure.port), caFile]
    const env = { ...process.env, PYTHONPATH: partPath('python-tools'), NO_PROXY: '' }
    const { stdout } = await run('python3', args, { env })
    expect(JSON.parse(stdout)).toMatchObject({ path, upstream: 'secure' })
  })
})
