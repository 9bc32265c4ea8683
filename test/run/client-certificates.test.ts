import { once } from 'node:events'
import { Agent, request } from 'node:https'
import type { TLSSocket } from 'node:tls'
import { describe, expect, it } from 'vitest'
import { useAuthority, useFixture, useGateway, useUpstream } from '../support/fixture.ts'
import { freePorts } from '../support/gateway.ts'
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
import { echo, readAll, startTcpUpstream } from '../support/stream-upstream.ts'
import { handshake, sendTls, type TlsClient } from '../support/tls-client.ts'
import { waitFor } from '../support/wait-for.ts'

const spiffe = 'spiffe://example.org/ns/team/sa/alice'

const client = (name?: keyof typeof people): TlsClient => ({
  ca: authority.certificate,
  servername: 'a.example.com',
  ...(name && { cert: people[name].certificate, key: people[name].key }),
})

const authorities = (...pem: string[]) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'clients' },
  data: { 'ca.crt': pem.join('') },
})

const asked = (kind: string, name: string, more: object = {}) => ({
  validation: { caCertificateRefs: [{ group: '', kind, name }], ...more },
})

/** Status of a request, or what became of the connection. */
const outcome = (to: number, who: keyof typeof people | undefined, path = '/') =>
  sendTls(to, client(who), { path }).then(
    ({ status }) => status,
    () => 'refused',
  )

const rule = (name: string, expression: string) =>
  policy(`only-${name}`, `HTTPRoute/${name}`, {
    traffic: { authorization: { policy: { matchExpressions: [expression] } } },
  })
const route = (name: string) =>
  httpRoute(name, {
    rules: [
      {
        matches: [{ path: { type: 'PathPrefix', value: `/${name}` } }],
        backendRefs: [toBackend('main')],
      },
    ],
  })

const authority = useAuthority()
const clientsOf = useAuthority()
const strangersOf = useAuthority()
const people = {
  alice: clientsOf.issue(['alice', spiffe]),
  bob: clientsOf.issue(['bob']),
  stranger: strangersOf.issue(['alice', spiffe]),
}
const upstream = useUpstream('main')
const bytes = useFixture(() => startTcpUpstream(echo('bytes')))
const port = await freePorts('required', 'fallback', 'unasked', 'stream')
const running = useGateway(() => {
  const tls = { certificateRefs: [{ name: 'server' }] }
  const listeners = Object.entries(port).map(([name, number]) => ({
    name,
    port: number,
    protocol: name === 'stream' ? 'TLS' : 'HTTPS',
    tls,
  }))
  const fallback = asked('Secret', 'clients', { mode: 'AllowInsecureFallback' })
  const frontend = {
    default: asked('ConfigMap', 'clients'),
    perPort: [
      { port: port.fallback, tls: fallback },
      { port: port.unasked, tls: {} },
    ],
  }
  return {
    manifests: {
      'gateway.yaml': manifest(
        gateway(0, { listeners, tls: { frontend } }),
        tlsSecret('server', authority.issue(['a.example.com'])),
        {
          apiVersion: 'v1',
          kind: 'Secret',
          metadata: { name: 'clients' },
          stringData: { 'ca.crt': clientsOf.certificate },
        },
        staticBackend('main', upstream.port),
        staticBackend('bytes', bytes.port),
        httpRoute('open', { rules: [{ backendRefs: [toBackend('main')] }] }),
        ...['cn', 'spiffe'].map(route),
        rule('cn', 'source.subjectCn == "alice"'),
        rule('spiffe', 'source.identity.serviceAccount == "alice"'),
        streamRoute('TCPRoute', 'bytes', 'stream', [toBackend('bytes')]),
      ),
      'clients.yaml': manifest(authorities(clientsOf.certificate)),
    },
  }
})

describe('a Gateway that asks for client certificates', () => {
  it('accepts only clients with a certificate of a trusted authority', async () => {
    expect(await outcome(port.required, 'alice')).toBe(200)
    expect(await outcome(port.required, 'bob')).toBe(200)
    expect(await outcome(port.required, undefined)).toBe('refused')
    expect(await outcome(port.required, 'stranger')).toBe('refused')
  })

  it('exposes the client identity to policies', async () => {
    expect(await outcome(port.required, 'alice', '/cn')).toBe(200)
    expect(await outcome(port.required, 'bob', '/cn')).toBe(403)
    expect(await outcome(port.required, 'alice', '/spiffe')).toBe(200)
    expect(await outcome(port.required, 'bob', '/spiffe')).toBe(403)
  })

  it('mode AllowInsecureFallback accepts all clients, but exposes only verified identities', async () => {
    for (const who of ['alice', 'stranger', undefined] as const) {
      expect(await outcome(port.fallback, who)).toBe(200)
    }
    expect(await outcome(port.fallback, 'alice', '/cn')).toBe(200)
    expect(await outcome(port.fallback, 'stranger', '/cn')).toBe(403)
    expect(await outcome(port.fallback, undefined, '/cn')).toBe(403)
    await running.condition('Gateway', 'edge', 'InsecureFrontendValidationMode', 'True')
  })

  it('requests no certificate on a port whose entry has no validation', async () => {
    expect(await outcome(port.unasked, undefined)).toBe(200)
    expect(await outcome(port.unasked, 'alice', '/cn')).toBe(403)
  })

  it('requests certificates on terminated TLS in front of a TCPRoute too', async () => {
    const socket = await handshake(port.stream, client('bob'))
    expect(await readAll(socket, 'hello')).toBe('bytes:hello')
    const refused = handshake(port.stream, client()).then((open) => readAll(open, 'hello'))
    await expect(refused).rejects.toThrow()
  })

  it('a resumed session keeps its identity, on its own listener only', async () => {
    const first = await handshake(port.required, client('alice'), { maxVersion: 'TLSv1.2' })
    const session = first.getSession()
    first.destroy()
    const again = { ...client(), session, maxVersion: 'TLSv1.2' } as const
    const resumed = await handshake(port.required, client(), again)
    expect(resumed.isSessionReused()).toBe(true)
    resumed.write('GET /cn HTTP/1.1\r\nhost: a.example.com\r\nconnection: close\r\n\r\n')
    expect(String(await once(resumed, 'data'))).toMatch(/^HTTP\/1.1 200 /)
    resumed.destroy()
    const elsewhere = await handshake(port.fallback, client(), again)
    expect(elsewhere.isSessionReused()).toBe(false)
    elsewhere.destroy()
  })

  it('uses changed authorities for new connections and keeps open ones', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const send = () =>
      new Promise<number>((resolve, reject) => {
        const outgoing = request({
          host: '127.0.0.1',
          port: port.required,
          agent,
          ...client('alice'),
          headers: { host: 'a.example.com' },
        })
        outgoing.once('error', reject)
        outgoing.once('response', (response) => {
          response.resume()
          response.once('end', () => resolve(response.statusCode ?? 0))
        })
        outgoing.end()
      })
    expect(await send()).toBe(200)
    const session = Object.values(agent.freeSockets)[0]?.[0] as TLSSocket
    running.write('clients.yaml', manifest(authorities(strangersOf.certificate)))
    await waitFor(
      'the new authority',
      async () => (await outcome(port.required, 'stranger')) === 200,
    )
    expect(await outcome(port.required, 'alice')).toBe('refused')
    expect(await send()).toBe(200)
    expect(Object.values(agent.freeSockets)[0]?.[0]).toBe(session)
    // What it proved before does not help it any more.
    const resumed = { session: session.getSession(), maxVersion: 'TLSv1.3' } as const
    const late = handshake(port.required, client(), resumed).then((open) => readAll(open, 'GET / '))
    await expect(late).rejects.toThrow()
    agent.destroy()
  })

  it('refuses all connections if no authority is left', async () => {
    running.write('clients.yaml', manifest(authorities('')))
    await waitFor('the port to close', async () =>
      sendTls(port.required, client('alice')).then(
        () => false,
        (error: Error) => error.message.includes('ECONNREFUSED'),
      ),
    )
    const status = (await running.status('Gateway', 'edge')) as {
      listeners: { name: string; conditions: { type: string; reason: string }[] }[]
    }
    const accepted = status.listeners
      .find(({ name }) => name === 'required')
      ?.conditions.find(({ type }) => type === 'Accepted')
    expect(accepted).toMatchObject({ status: 'False', reason: 'NoValidCACertificate' })
    expect(await outcome(port.unasked, undefined)).toBe(200)
  })
})
