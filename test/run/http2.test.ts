import { once } from 'node:events'
import {
  type ClientHttp2Session,
  connect,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
} from 'node:http2'
import { describe, expect, it } from 'vitest'
import { useAuthority, useFixture, useGateway } from '../support/fixture.ts'
import { freePort } from '../support/gateway.ts'
import { send } from '../support/http-client.ts'
import {
  gateway,
  httpRoute,
  policy,
  service,
  staticBackend,
  tlsSecret,
  toBackend,
} from '../support/manifests.ts'
import { startVersionUpstream } from '../support/version-upstream.ts'
import { waitFor } from '../support/wait-for.ts'

const authority = useAuthority()
const certificate = authority.issue(['backend.example.com'])
const plain = useFixture(startVersionUpstream)
const secure = useFixture(() => startVersionUpstream(certificate))
const port = await freePort()
const securePort = await freePort()
const running = useGateway(() => {
  const tls = { sni: 'backend.example.com', caCertificateRefs: [{ name: 'authorities' }] }
  const backends = {
    plain: toBackend('plain'),
    http1: toBackend('http1'),
    http2: toBackend('http2'),
    secure: toBackend('secure'),
    'secure-http2': toBackend('secure-http2'),
    'offers-http1': toBackend('offers-http1'),
    'offers-http2': toBackend('offers-http2'),
    h2c: { name: 'h2c', port: 80 },
    'says-http': { name: 'says-http', port: 80 },
  }
  return {
    manifests: [
      gateway(port, {
        listeners: [
          { name: 'http', port, protocol: 'HTTP' },
          {
            name: 'https',
            port: securePort,
            protocol: 'HTTPS',
            hostname: '*.example.com',
            tls: { certificateRefs: [{ name: 'edge-tls' }] },
          },
          {
            name: 'other',
            port: securePort,
            protocol: 'HTTPS',
            hostname: 'other.test',
            tls: { certificateRefs: [{ name: 'edge-tls' }] },
          },
        ],
      }),
      tlsSecret('edge-tls', authority.issue(['*.example.com', 'other.test'])),
      {
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'authorities' },
        data: { 'ca.crt': authority.certificate },
      },
      staticBackend('plain', plain.port),
      staticBackend('http1', plain.port, { http: { version: 'HTTP1' } }),
      staticBackend('http2', plain.port, { http: { version: 'HTTP2' } }),
      staticBackend('secure', secure.port, { tls }),
      staticBackend('secure-http2', secure.port, { tls, http: { version: 'HTTP2' } }),
      staticBackend('offers-http1', secure.port, {
        tls: { ...tls, alpnProtocols: ['http/1.1'] },
      }),
      staticBackend('offers-http2', secure.port, { tls: { ...tls, alpnProtocols: ['h2'] } }),
      ...service('h2c', [plain.port], { appProtocol: 'kubernetes.io/h2c' }),
      ...service('says-http', [plain.port], { appProtocol: 'http' }),
      ...Object.entries(backends).map(([name, backend]) =>
        httpRoute(name, {
          hostnames: [`${name}.example.com`],
          rules: [{ backendRefs: [backend] }],
        }),
      ),
      httpRoute('closed', {
        hostnames: ['closed.example.com'],
        rules: [{ backendRefs: [toBackend('plain')] }],
      }),
      policy('closed', 'HTTPRoute/closed', {
        traffic: { authorization: { action: 'Allow', policy: { matchExpressions: ['false'] } } },
      }),
    ],
  }
})
const overPlain = useFixture(
  () => connect(`http://127.0.0.1:${port}`),
  (part) => part.destroy(),
)
const overTls = useFixture(
  () =>
    connect(`https://127.0.0.1:${securePort}`, {
      ca: authority.certificate,
      servername: 'a.example.com',
    }),
  (part) => part.destroy(),
)

interface Answer {
  headers: IncomingHttpHeaders
  body: string
}

async function ask(session: ClientHttp2Session, headers: OutgoingHttpHeaders): Promise<Answer> {
  const stream = session.request(headers)
  let got: IncomingHttpHeaders = {}
  let body = ''
  stream.on('response', (fields) => {
    got = fields
  })
  stream.on('data', (part: Buffer) => {
    body += part
  })
  await once(stream, 'end')
  return { headers: got, body }
}

const versionOf = async (session: ClientHttp2Session, kind: string, more = {}) =>
  (await ask(session, { ':path': '/', ':authority': `${kind}.example.com`, ...more })).body

const overHttp1 = async (kind: string) => {
  const response = await send(port, { host: `${kind}.example.com` })
  return response.body
}

describe('the HTTP version towards a backend', () => {
  it('[BackendHTTP.version] [BackendHTTP.version=HTTP1] is that of the policy', async () => {
    expect(await versionOf(overPlain, 'http1')).toBe('1.1')
    expect(await versionOf(overTls, 'http2')).toBe('2.0')
    expect(await overHttp1('http2')).toBe('2.0')
  })

  it('[BackendHTTP.version=HTTP2] is negotiated by ALPN over TLS, and fixed in plaintext', async () => {
    expect(await overHttp1('secure-http2')).toBe('2.0')
    expect(await overHttp1('http2')).toBe('2.0')
    expect(await overHttp1('secure')).toBe('1.1')
  })

  it('[BackendTLS.alpnProtocols] is the only one that ALPN offers, whatever the client speaks', async () => {
    expect(await versionOf(overPlain, 'secure')).toBe('2.0')
    expect(await versionOf(overPlain, 'offers-http1')).toBe('1.1')
    expect(await overHttp1('offers-http2')).toBe('2.0')
    expect(await versionOf(overTls, 'offers-http2')).toBe('2.0')
  })

  it('[BackendHTTP.version.default] follows appProtocol, then gRPC, then the client', async () => {
    expect(await overHttp1('h2c')).toBe('2.0')
    expect(await versionOf(overPlain, 'says-http')).toBe('1.1')
    expect(await overHttp1('plain')).toBe('1.1')
    expect(await versionOf(overPlain, 'plain')).toBe('2.0')
    expect(await versionOf(overTls, 'plain')).toBe('1.1')
    const grpc = { ':method': 'POST', 'content-type': 'application/grpc+proto' }
    expect(await versionOf(overTls, 'plain', grpc)).toBe('2.0')
  })
})

describe('requests of HTTP/2', () => {
  it('are routed, refused and logged like those of HTTP/1.1', async () => {
    const refused = await ask(overTls, { ':path': '/', ':authority': 'closed.example.com' })
    expect([refused.headers[':status'], refused.body]).toEqual([403, 'authorization failed'])
    const lost = await ask(overPlain, { ':path': '/', ':authority': 'nowhere.example.com' })
    expect([lost.headers[':status'], lost.body]).toEqual([404, 'route not found'])
    await waitFor('the log line', () =>
      /closed\.example\.com http\.path=\/ http\.version=HTTP\/2 http\.status=403/.test(
        running.stdout,
      ),
    )
  })

  it('are answered 421 if their host belongs to another listener than the connection', async () => {
    for (const name of ['other.test', 'other.test.', `OTHER.test.:${securePort}`]) {
      const { headers } = await ask(overTls, { ':path': '/', ':authority': name })
      expect(headers[':status'], name).toBe(421)
    }
  })

  it('match routes and policies with a trailing dot in the host too', async () => {
    const statusOf = async (name: string) =>
      (await ask(overTls, { ':path': '/', ':authority': name })).headers[':status']
    expect(await statusOf('http1.example.com.')).toBe(200)
    expect(await statusOf(`http1.example.com.:${securePort}`)).toBe(200)
    expect(await statusOf('closed.example.com.')).toBe(403)
    expect(await statusOf('http1.example.com..')).toBe(400)
  })
})
