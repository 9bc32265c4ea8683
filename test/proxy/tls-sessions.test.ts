/** Sessions of TLS that clients take up again: across workers, secrets, and changes of a listener. */
import { once } from 'node:events'
import type { SecureVersion } from 'node:tls'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { rotate, TicketKeyring } from '../../src/engines/http/tls/session-tickets.ts'
import type { TlsChoice } from '../../src/engines/http/tls/tls-choice.ts'
import { ListenerContexts, type ListenerIdentity } from '../../src/engines/http/tls/tls-context.ts'
import type { ClientTlsSettings } from '../../src/ground/exchange/connection.ts'
import { Authority, type Certificate } from '../support/certificates.ts'
import { readAll } from '../support/stream-upstream.ts'
import { handshake } from '../support/tls-client.ts'
import { waitFor } from '../support/wait-for.ts'
import { type EngineRig, startEngine } from './engine-rig.ts'

const versions = ['TLSv1.2', 'TLSv1.3'] as const

let authority: Authority
let people: Authority
let alice: Certificate
let identity: ListenerIdentity
let serving: TlsChoice
let rig: EngineRig
let port: number

const pairOf = ({ certificate, key }: Certificate) => ({
  certificate: Buffer.from(certificate),
  privateKey: Buffer.from(key),
})

beforeAll(async () => {
  authority = new Authority()
  people = new Authority()
  alice = people.issue(['alice'])
  identity = { key: 'a', pairs: [pairOf(authority.issue(['a.example.com', 'b.example.com']))] }
  rig = await startEngine({})
  port = await rig.engine.listen(0, undefined, () => serving)
})

afterAll(async () => {
  await rig?.close()
  for (const each of [authority, people]) each?.dispose()
})

const asking = (required: boolean): ListenerIdentity => ({
  ...identity,
  clients: { authorities: [people.certificate], required },
})

/** From now on handshakes meet this worker. */
function serve(keyring: TicketKeyring, given = identity, settings: ClientTlsSettings = {}): void {
  const place = { gateway: 'ns/gw', listener: 'a' }
  const contexts = new ListenerContexts(given, settings, keyring)
  const { clients } = given
  serving = {
    listener: 'a',
    place,
    carries: 'http',
    contexts,
    ...(clients && { clientCertificate: clients.required ? 'required' : 'requested' }),
  }
}

const proof = () => ({ cert: alice.certificate, key: alice.key })

/** Shakes hands, and returns what the client could take up again. */
async function sessionOf(version: SecureVersion, more: object = {}): Promise<Buffer> {
  const client = { ca: authority.certificate, servername: 'a.example.com', ...more }
  const socket = await handshake(port, client, { maxVersion: version })
  socket.resume()
  const [session] = version === 'TLSv1.3' ? await once(socket, 'session') : [socket.getSession()]
  socket.destroy()
  return session
}

async function resumes(
  session: Buffer,
  maxVersion: SecureVersion,
  servername = 'a.example.com',
): Promise<boolean> {
  const client = { ca: authority.certificate, servername }
  const socket = await handshake(port, client, { session, maxVersion })
  const isReused = socket.isSessionReused()
  socket.destroy()
  return isReused
}

/** A keyring as another worker has it. */
const other = ({ secrets }: TicketKeyring) => new TicketKeyring(structuredClone(secrets))

describe.each(versions)('a session of %s', (version) => {
  it('is resumed by every worker, and is counted', async () => {
    const one = new TicketKeyring(rotate([]))
    serve(one)
    const session = await sessionOf(version)
    const before = rig.engine.counters.tlsSessionsResumed
    serve(other(one))
    const { counters } = rig.engine
    const client = { ca: authority.certificate, servername: 'a.example.com' }
    const socket = await handshake(port, client, { session, maxVersion: version })
    expect(socket.isSessionReused()).toBe(true)
    await waitFor('the count', () => counters.tlsSessionsResumed === before + 1)
    socket.destroy()
    serve(new TicketKeyring(rotate([])))
    expect(await resumes(session, version)).toBe(false)
  })

  it('survives one rotation of ticket keys, in workers old and new, but not two', async () => {
    const keyring = new TicketKeyring(rotate([]))
    serve(keyring)
    const session = await sessionOf(version)
    keyring.secrets = rotate(keyring.secrets)
    expect(await resumes(session, version)).toBe(true)
    const fresh = await sessionOf(version)
    serve(other(keyring))
    expect(await resumes(session, version)).toBe(true)
    keyring.secrets = rotate(keyring.secrets)
    serve(keyring)
    expect([await resumes(session, version), await resumes(fresh, version)]).toEqual([false, true])
  })

  it('is resumed only for the name that it was made with', async () => {
    serve(new TicketKeyring(rotate([])))
    expect(await resumes(await sessionOf(version), version, 'b.example.com')).toBe(false)
  })

  it.each<[string, () => [ListenerIdentity, ClientTlsSettings?]]>([
    ['another listener', () => [{ ...identity, key: 'b' }]],
    [
      'another certificate',
      () => [{ ...identity, pairs: [pairOf(authority.issue(['a.example.com']))] }],
    ],
    [
      'other suites',
      () => [identity, { ciphers: ['TLS_AES_128_GCM_SHA256', 'ECDHE-ECDSA-AES128-GCM-SHA256'] }],
    ],
    ['client validation', () => [asking(false)]],
  ])('is not resumed at a listener with %s', async (_, changed) => {
    const keyring = new TicketKeyring(rotate([]))
    serve(keyring)
    const session = await sessionOf(version)
    expect(await resumes(session, version)).toBe(true)
    const [given, settings] = changed()
    serve(keyring, given, settings)
    expect(await resumes(session, version)).toBe(false)
  })

  it('keeps the client identity, until the client validation changes', async () => {
    const keyring = new TicketKeyring(rotate([]))
    // Clients of TLS 1.3 are done before the server has looked at them.
    const isRefused = async (session: Buffer) => {
      const { counters } = rig.engine
      const before = counters.tlsHandshakesFailed
      const client = { ca: authority.certificate, servername: 'a.example.com' }
      const tried = handshake(port, client, { session, maxVersion: version })
      tried.catch(() => {})
      await waitFor('the refusal', () => counters.tlsHandshakesFailed === before + 1)
    }
    serve(keyring, asking(true))
    const session = await sessionOf(version, proof())
    expect(await resumes(session, version)).toBe(true)
    serve(keyring, {
      ...asking(true),
      clients: { authorities: [authority.certificate], required: true },
    })
    await isRefused(session)
    serve(keyring, asking(false))
    const unproven = await sessionOf(version)
    serve(keyring, asking(true))
    await isRefused(unproven)
  })
})

/** The client identity that the server derives from a session; `refused` if it rejects the client. */
async function whoIs(session: Buffer, maxVersion: SecureVersion): Promise<string> {
  const client = { ca: authority.certificate, servername: 'a.example.com' }
  try {
    const socket = await handshake(port, client, { session, maxVersion })
    // A full handshake without a certificate would prove nothing of the session.
    expect(socket.isSessionReused()).toBe(true)
    const answer = await readAll(socket, 'GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n')
    return answer.slice(answer.lastIndexOf('\n') + 1) || 'refused'
  } catch (error) {
    if (error instanceof Error && 'code' in error) return 'refused'
    throw error
  }
}

interface Begun {
  readonly version: SecureVersion
  readonly required: boolean
  readonly believed: string
  readonly session: Buffer
}

/** Sessions of clients whose certificates, or whose authority's, end in a moment. */
async function begunBefore(keyring: TicketKeyring, notAfter: Date): Promise<Begun[]> {
  const passing = new Authority({ notAfter })
  const ending = people.issue(['bob'], 'ec', { notAfter })
  const begun: Begun[] = []
  for (const [who, believed] of [
    [ending, people.certificate],
    [passing.issue(['carol']), passing.certificate],
  ] as const) {
    for (const required of [true, false]) {
      serve(keyring, { ...identity, clients: { authorities: [believed], required } })
      for (const version of versions) {
        const more = { cert: who.certificate, key: who.key }
        begun.push({ version, required, believed, session: await sessionOf(version, more) })
      }
    }
  }
  passing.dispose()
  return begun
}

it('a resumed session has no identity once a certificate of its chain has expired', async () => {
  rig.plane.request = (exchange) =>
    exchange.respond(200, [], exchange.peerCertificate?.subjectCn ?? 'nobody')
  const keyring = new TicketKeyring(rotate([]))
  let begun: Begun[] = []
  let end = 0
  // Long enough for the handshakes, however slow the machine is today; dates are whole seconds.
  for (let seconds = 1; begun.length === 0 && seconds <= 16; seconds *= 2) {
    end = (Math.ceil(Date.now() / 1_000) + seconds) * 1_000
    begun = await begunBefore(keyring, new Date(end)).catch(() => [])
  }
  serve(keyring, asking(true))
  const lasting = await sessionOf('TLSv1.3', proof())
  await waitFor('the end of the certificates', () => Date.now() > end)
  const found = new Set<string>()
  for (const { version, required, believed, session } of begun) {
    serve(keyring, { ...identity, clients: { authorities: [believed], required } })
    found.add(`${required ? 'required' : 'requested'}: ${await whoIs(session, version)}`)
  }
  expect([begun.length, ...found]).toEqual([8, 'required: refused', 'requested: nobody'])
  serve(keyring, asking(true))
  expect(await whoIs(lasting, 'TLSv1.3')).toBe('alice')
})

it('at most two ticket keys are kept', () => {
  const once = rotate([])
  const twice = rotate(once)
  expect(rotate(twice).map((secret) => twice.indexOf(secret))).toEqual([-1, 0])
  expect(twice[1]).toBe(once[0])
})
