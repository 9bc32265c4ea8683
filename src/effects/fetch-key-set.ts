/** Fetches one JSON Web Key Set over HTTP or HTTPS. */
import { checkServerIdentity, getCACertificates, type PeerCertificate } from 'node:tls'
import { Agent, request } from 'undici'
import { isObject } from '../base/json-object.ts'
import type { KeySetAddress, KeySetTls } from './key-set-address.ts'

/** Value of a secret by its digest; undefined where it is not known. */
export type SecretLookup = (digest: string) => Uint8Array | undefined

export type PublicKeySet = Readonly<Record<string, unknown>>

/** An event that holds the set must stay far below what logs take. */
const maxBytes = 256 * 1024
const timeoutMs = 10_000

/**
 * Resolves with the set, public members only; rejects with an Error for people. Redirects are not
 * followed: the server is the one that the policy names.
 */
export async function fetchKeySet(
  address: KeySetAddress,
  path: string,
  secret: SecretLookup,
  signal: AbortSignal,
): Promise<PublicKeySet> {
  const { host, port, name, tls } = address
  const dispatcher = new Agent({
    maxResponseSize: maxBytes,
    ...(tls && { connect: connectOptions(tls, name, secret) }),
  })
  const authority = host.includes(':') ? `[${host}]` : host
  try {
    const { statusCode, body } = await request(
      `${tls === undefined ? 'http' : 'https'}://${authority}:${port}${path}`,
      {
        dispatcher,
        headers: { host: `${name}:${port}`, accept: 'application/jwk-set+json, application/json' },
        signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      },
    )
    if (statusCode !== 200) {
      await body.dump()
      throw new Error(`the server answers ${statusCode}`)
    }
    return publicKeySet(await body.text())
  } finally {
    await dispatcher.destroy()
  }
}

function connectOptions(tls: KeySetTls, name: string, secret: SecretLookup) {
  const { authorities, authoritiesDigest, certificate, verify, serverName, names } = tls
  const text = (digest: string): Buffer => {
    const value = secret(digest)
    if (value === undefined) throw new Error('the value of a Secret has not arrived')
    return Buffer.from(value)
  }
  const given = authoritiesDigest === undefined ? authorities : text(authoritiesDigest)
  return {
    servername: serverName ?? name,
    ca: given ?? systemAuthorities(),
    ...(certificate && { cert: text(certificate.chain), key: text(certificate.key) }),
    rejectUnauthorized: verify !== 'none',
    checkServerIdentity: (sent: string, peer: PeerCertificate) =>
      verify === 'full' ? checkNames(names ?? [sent], peer) : undefined,
  }
}

/** One of the names is enough. */
function checkNames(names: readonly string[], peer: PeerCertificate): Error | undefined {
  let problem: Error | undefined
  for (const name of names) {
    problem = checkServerIdentity(name, peer)
    if (problem === undefined) return undefined
  }
  return problem
}

/** Those that the machine trusts, or those that come with Node where it has none. */
function systemAuthorities(): string[] {
  const found = [...getCACertificates('system'), ...getCACertificates('extra')]
  return found.length > 0 ? found : [...getCACertificates('bundled')]
}

/** Members of keys that no verifier needs and that must not be written down (RFC 7518 section 6). */
const privateMembers = new Set(['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'])

function publicKeySet(text: string): PublicKeySet {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    throw new Error('the answer is not JSON')
  }
  const keys = (parsed as { keys?: unknown } | null)?.keys
  if (!Array.isArray(keys)) throw new Error('the answer is no key set')
  return { keys: keys.filter(isObject).map(withoutPrivate) }
}

function withoutPrivate(key: Readonly<Record<string, unknown>>): PublicKeySet {
  return Object.fromEntries(Object.entries(key).filter(([name]) => !privateMembers.has(name)))
}
