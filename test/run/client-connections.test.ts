import { connect } from 'node:net'
import { describe, expect, it } from 'vitest'
import { useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePort, freePorts } from '../support/gateway.ts'
import {
  gateway,
  httpRoute,
  policy,
  staticBackend,
  streamRoute,
  toBackend,
} from '../support/manifests.ts'
import { answerTo } from '../support/raw-answer.ts'
import { echo, startTcpUpstream, startUdpUpstream, UdpClient } from '../support/stream-upstream.ts'
import { readUntil } from '../support/tunnel-client.ts'
import { waitFor } from '../support/wait-for.ts'

const upstream = useUpstream('main')
const bytes = useFixture(() => startTcpUpstream(echo('bytes')))
const datagrams = useFixture(() => startUdpUpstream('a'))

const request = (path: string, ...fields: string[]) =>
  [`GET ${path} HTTP/1.1`, 'host: a.example.com', 'connection: close', ...fields, '', ''].join(
    '\r\n',
  )
const line = (address: string) => `PROXY TCP4 ${address} 198.51.100.1 4711 443\r\n`

const char = (...codes: number[]) => String.fromCharCode(...codes)
const tlv = (type: number, value: string) => char(type, 0, value.length) + value

/** A header of version 2 from 10.1.2.3. */
function binary(...tlvs: string[]): string {
  const body = char(10, 1, 2, 3, 198, 51, 100, 1, 18, 103, 1, 187) + tlvs.join('')
  return `\r\n\r\n\0\r\nQUIT\n\x21\x11${char(0, body.length)}${body}`
}

const byPath = (name: string, expression: string) => [
  httpRoute(name, {
    parentRefs: [{ name: 'edge' }, { name: 'other' }],
    rules: [
      {
        matches: [{ path: { type: 'PathPrefix', value: `/${name}` } }],
        backendRefs: [toBackend('main')],
      },
    ],
  }),
  policy(name, `HTTPRoute/${name}`, {
    traffic: { authorization: { policy: { matchExpressions: [expression] } } },
  }),
]

describe('frontend.proxyProtocol', () => {
  const ports = { strict: 0, optional: 0, first: 0 }
  useGateway(async () => {
    Object.assign(ports, await freePorts('strict', 'optional', 'first'))
    return {
      manifests: [
        gateway(0, { listeners: [{ name: 'tcp', protocol: 'TCP', port: ports.first }] }, 'first'),
        staticBackend('bytes', bytes.port),
        streamRoute('TCPRoute', 'first', 'tcp', [toBackend('bytes')], {
          parentRefs: [{ name: 'first' }],
        }),
        policy('first', 'Gateway/first', { frontend: { proxyProtocol: { mode: 'Optional' } } }),
        gateway(ports.strict),
        gateway(ports.optional, {}, 'other'),
        staticBackend('main', upstream.port),
        ...byPath('inside', 'source.address == "10.1.2.3"'),
        ...byPath('aws', 'source.proxyProtocol.awsVpcEndpointId == "vpce-1"'),
        ...byPath('azure', 'source.proxyProtocol.azurePrivateEndpointLinkId == 258'),
        ...byPath('google', 'source.proxyProtocol.gcpPscConnectionId == 258'),
        ...byPath('name', 'source.proxyProtocol.authority == "a.test"'),
        ...byPath('own', 'source.proxyProtocol.tlvs["0xE1"] == b"x"'),
        ...byPath('v2', 'source.proxyProtocol.version == 2'),
        policy('strict', 'Gateway/edge', { frontend: { proxyProtocol: {} } }),
        policy('optional', 'Gateway/other', {
          frontend: {
            proxyProtocol: {
              version: 'All',
              mode: 'Optional',
              from: ['127.0.0.1', '127.0.1.0/24'],
            },
          },
        }),
      ],
    }
  })

  const status = async (to: 'strict' | 'optional', from: string, ...parts: string[]) =>
    (await answerTo({ port: ports[to], from }, ...parts)).split(' ', 2)[1] ?? 'reset'

  it('names the client of a connection, and requires version 2 if nothing else is set', async () => {
    expect(await status('strict', '127.0.0.1', binary(), request('/inside'))).toBe('200')
    expect(await status('strict', '127.0.0.1', request('/inside'))).toBe('reset')
    expect(await status('strict', '127.0.0.1', line('10.1.2.3'), request('/inside'))).toBe('reset')
  })

  it('accepts connections without a header if it is optional, but none with a malformed header', async () => {
    const { length } = 'PROXY '
    const header = line('10.1.2.3')
    const split = [header.slice(0, length), header.slice(length)]
    expect(await status('optional', '127.0.0.1', ...split, request('/inside'))).toBe('200')
    expect(await status('optional', '127.0.0.1', binary(), request('/inside'))).toBe('200')
    expect(await status('optional', '127.0.0.1', request('/inside'))).toBe('403')
    // Begins like a header.
    expect(await status('optional', '127.0.0.1', 'P', request('/inside').slice(1))).not.toBe('200')
    expect(await status('optional', '127.0.0.1', 'PROXY TCP4 x\r\n', request('/'))).toBe('reset')
  })

  it('forwards a connection that has not begun an optional header for 3 seconds', async () => {
    const silent = connect({ port: ports.first, host: '127.0.0.1' })
    const brief = connect({ port: ports.first, host: '127.0.0.1' })
    // A signature of version 2 also begins with an empty line.
    brief.write('\r\n')
    expect(await readUntil(silent, 'bytes:')).toBe('bytes:')
    expect(await readUntil(brief, '\r\n')).toBe('bytes:\r\n')
    silent.write('later')
    expect(await readUntil(silent, 'later')).toBe('later')
    silent.destroy()
    brief.destroy()
    expect(await answerTo({ port: ports.first }, line('10.1.2.3'))).toBe('reset')
  })

  it('does not read headers from addresses that are not in `from`', async () => {
    expect(await status('optional', '127.0.1.7', binary(), request('/inside'))).toBe('200')
    expect(await status('optional', '127.0.0.2', line('10.1.2.3'), request('/inside'))).toBe('400')
    expect(await status('optional', '127.0.0.2', request('/inside'))).toBe('403')
  })

  it.each([
    ['aws', tlv(0xea, '\x01vpce-1'), tlv(0xea, '\x02vpce-1')],
    ['azure', tlv(0xee, '\x01\x02\x01\0\0'), tlv(0xee, '\x01\x02\x01\0')],
    ['google', tlv(0xe0, '\0\0\0\0\0\0\x01\x02'), tlv(0xe0, '\x01\x02')],
    ['name', tlv(0x02, 'a.test'), tlv(0x02, 'b.test')],
    ['own', tlv(0xe1, 'x'), tlv(0xe1, 'y')],
  ])('gives expressions the extensions of %s', async (path, right, wrong) => {
    const send = (...tlvs: string[]) =>
      status('strict', '127.0.0.1', binary(...tlvs), request(`/${path}`))
    expect(await send(right)).toBe('200')
    expect(await send(wrong)).toBe('403')
    expect(await send()).toBe('403')
    // Of equal types, the first counts.
    expect(await send(wrong, right)).toBe('403')
  })

  it('says which version the header has', async () => {
    expect(await status('optional', '127.0.0.1', binary(), request('/v2'))).toBe('200')
    expect(await status('optional', '127.0.0.1', line('10.1.2.3'), request('/v2'))).toBe('403')
  })
})

/** A policy for one port of the Gateway. */
function onPort(name: string, port: number, frontend: object) {
  const target = { group: 'gateway.networking.k8s.io', kind: 'Gateway', name: 'edge', port }
  return policy(name, 'Gateway/edge', { targetRefs: [target], frontend })
}

describe('frontend.networkAuthorization', () => {
  const ports = { http: 0, shared: 0, tcp: 0, udp: 0, set: 0 }
  const clients: UdpClient[] = []
  const rules = (action: string, ...matchExpressions: string[]) => ({
    networkAuthorization: { action, policy: { matchExpressions } },
  })
  const stats: { address?: string } = {}
  const running = useGateway(async () => {
    Object.assign(ports, await freePorts('http', 'shared', 'tcp', 'udp', 'set'))
    stats.address = `127.0.0.1:${await freePort()}`
    const listener = (name: string, protocol: string, port: number, hostname?: string) => ({
      name,
      protocol,
      port,
      ...(hostname !== undefined && { hostname }),
    })
    return {
      args: ['--stats-address', stats.address, '--trusted-proxies', '127.0.0.0/8'],
      manifests: [
        gateway(0, {
          listeners: [
            listener('http', 'HTTP', ports.http),
            listener('closed', 'HTTP', ports.shared, 'closed.test'),
            listener('tcp', 'TCP', ports.tcp),
            listener('udp', 'UDP', ports.udp),
          ],
          allowedListeners: { namespaces: { from: 'Same' } },
        }),
        {
          apiVersion: 'gateway.networking.k8s.io/v1',
          kind: 'ListenerSet',
          metadata: { name: 'more' },
          spec: {
            parentRef: { name: 'edge' },
            listeners: [listener('set', 'HTTP', ports.set)],
          },
        },
        httpRoute('set', {
          parentRefs: [{ kind: 'ListenerSet', name: 'more' }],
          rules: [{ backendRefs: [toBackend('main')] }],
        }),
        onPort('set', ports.set, rules('Deny', 'source.address == "127.0.0.2"')),
        staticBackend('main', upstream.port),
        staticBackend('bytes', bytes.port),
        staticBackend('datagrams', datagrams.port),
        httpRoute('all', { rules: [{ backendRefs: [toBackend('main')] }] }),
        streamRoute('TCPRoute', 'tcp', 'tcp', [toBackend('bytes')]),
        streamRoute('UDPRoute', 'udp', 'udp', [toBackend('datagrams')]),
        policy('all', 'Gateway/edge', { frontend: rules('Deny', 'source.address == "127.0.0.3"') }),
        onPort('http', ports.http, rules('Allow', 'source.address == "127.0.0.1"')),
        onPort('http-too', ports.http, rules('Deny', 'source.port == 1')),
        onPort('tcp', ports.tcp, rules('Deny', 'source.address.startsWith("127.0.0.2")')),
        onPort('udp', ports.udp, rules('Deny', 'source.address == "127.0.0.2"')),
        // Another Gateway on the same port, without rules.
        gateway(0, { listeners: [listener('open', 'HTTP', ports.shared, 'open.test')] }, 'open'),
        httpRoute('open', {
          parentRefs: [{ name: 'open' }],
          rules: [{ backendRefs: [toBackend('main')] }],
        }),
        onPort('closed', ports.shared, rules('Deny', 'source.address == "127.0.0.2"')),
      ],
    }
  })

  it('resets connections before a byte is read, whatever X-Forwarded-For says', async () => {
    const to = (from: string) => ({ port: ports.http, from })
    expect(await answerTo(to('127.0.0.1'), request('/'))).toMatch(/^HTTP\/1.1 200 /)
    expect(await answerTo(to('127.0.0.2'), request('/'))).toBe('reset')
    // The rules of the whole Gateway and of the port are combined.
    expect(await answerTo(to('127.0.0.3'), request('/'))).toBe('reset')
    const forged = request('/', 'x-forwarded-for: 127.0.0.1')
    expect(await answerTo(to('127.0.0.2'), forged)).toBe('reset')
    // The rules are about connections, so they ignore the address that a trusted proxy reports.
    const reported = request('/', 'x-forwarded-for: 203.0.113.1')
    expect(await answerTo(to('127.0.0.1'), reported)).toMatch(/^HTTP\/1.1 200 /)
    const metrics = await (await fetch(`http://${stats.address}/metrics`)).text()
    expect(metrics).toMatch(/^sluice_downstream_connections_unauthorized_total 3$/m)
  })

  it('refuses requests for a Gateway whose rules refuse the connection, if another Gateway shares the port', async () => {
    const send = (from: string, host: string) =>
      answerTo({ port: ports.shared, from }, request('/').replace('a.example.com', host))
    expect(await send('127.0.0.2', 'open.test')).toMatch(/^HTTP\/1.1 200 /)
    expect(await send('127.0.0.2', 'closed.test')).toMatch(/^HTTP\/1.1 403 /)
    expect(await send('127.0.0.1', 'closed.test')).toMatch(/^HTTP\/1.1 200 /)
  })

  it('applies to a port that only a ListenerSet has', async () => {
    const to = (from: string) => ({ port: ports.set, from })
    expect(await answerTo(to('127.0.0.1'), request('/'))).toMatch(/^HTTP\/1.1 200 /)
    expect(await answerTo(to('127.0.0.2'), request('/'))).toBe('reset')
  })

  it('resets forwarded connections', async () => {
    expect(await answerTo({ port: ports.tcp, from: '127.0.0.2' }, 'hello')).toBe('reset')
  })

  it('drops datagrams', async () => {
    const [allowed, refused] = [new UdpClient(ports.udp), new UdpClient(ports.udp, '127.0.0.2')]
    clients.push(allowed, refused)
    await waitFor('an answer', async () => {
      await refused.send('x')
      await allowed.send('x')
      return allowed.answers.length > 0
    })
    expect(refused.answers).toEqual([])
    await waitFor('the log', () => running.stdout.includes('src.addr=127.0.0.2:'))
    for (const client of clients) client.close()
  })
})

describe('a port that several Gateways share', () => {
  let port = 0
  const running = useGateway(async () => {
    port = await freePort()
    const of = (name: string) => [
      gateway(
        0,
        { listeners: [{ name: 'http', protocol: 'HTTP', port, hostname: `${name}.test` }] },
        name,
      ),
      httpRoute(name, {
        parentRefs: [{ name }],
        rules: [{ backendRefs: [toBackend('main')] }],
      }),
    ]
    return {
      manifests: [
        ...of('strict'),
        ...of('tunnels'),
        ...of('senders'),
        staticBackend('main', upstream.port),
        policy('oldest', 'Gateway/strict', { frontend: { connect: { mode: 'Deny' } } }),
        // The Gateway whose name comes last has the older of the two policies about headers.
        policy('older', 'Gateway/tunnels', {
          frontend: {
            proxyProtocol: { version: 'All', mode: 'Optional' },
            connect: { mode: 'Route' },
          },
        }),
        policy('newer', 'Gateway/strict', { frontend: { proxyProtocol: {} } }),
        policy('newest', 'Gateway/senders', {
          frontend: { proxyProtocol: { from: ['192.0.2.0/24'] } },
        }),
      ],
    }
  })
  const answer = (host: string, ...parts: string[]) =>
    answerTo({ port, from: '127.0.0.1' }, ...parts, request('/').replace('a.example.com', host))

  it('applies the PROXY settings of the oldest policy, and reports them in the status of the other policy', async () => {
    expect(await answer('tunnels.test')).toMatch(/^HTTP\/1.1 200 /)
    const { message } = await running.condition('GatewayPolicy', 'newer', 'Programmed', 'False')
    expect(message).toContain(
      `no effect on port ${port}: Gateway default/tunnels shares it, and its older policy default/older sets frontend.proxyProtocol`,
    )
  })

  it('refuses requests without a PROXY header for a Gateway that requires one', async () => {
    expect(await answer('strict.test')).toMatch(/^HTTP\/1.1 403 /)
    expect(await answer('strict.test', binary())).toMatch(/^HTTP\/1.1 200 /)
  })

  it('refuses requests with a PROXY header for a Gateway that permits its sender none', async () => {
    expect(await answer('senders.test', binary())).toMatch(/^HTTP\/1.1 403 /)
    expect(await answer('senders.test')).toMatch(/^HTTP\/1.1 200 /)
  })

  it('opens tunnels only for the Gateway that permits them', async () => {
    const ask = (host: string) =>
      answerTo(
        { port, from: '127.0.0.1' },
        binary(),
        `CONNECT ${host}:443 HTTP/1.1\r\nhost: ${host}:443\r\n\r\n`,
        request('/'),
      )
    expect(await ask('tunnels.test')).toMatch(/^HTTP\/1.1 200 /)
    expect(await ask('strict.test')).toMatch(/^HTTP\/1.1 405 /)
  })
})
