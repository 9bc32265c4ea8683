/** Fetches one JSON Web Key Set over HTTP or HTTPS. */
import { connect, createSecureContext } from 'node:tls'
import { Agent, type buildConnector, request } from 'undici'
import { bareHost } from '../base/bare-host.ts'
import { isObject } from '../base/json-object.ts'
import type { BackendTlsConfig } from '../model/backend-tls.ts'
import { contextOptions, systemAuthorities } from '../tls-client/context.ts'
import { handshakeOptions, serverIdentity } from '../tls-client/handshake.ts'
import type { KeySetAddress } from './key-set-address.ts'

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
  stop: AbortSignal,
): Promise<PublicKeySet> {
  const { host, port, name, tls } = address
  const signal = AbortSignal.any([stop, AbortSignal.timeout(timeoutMs)])
  const dispatcher = new Agent({
    maxResponseSize: maxBytes,
    ...(tls && { connect: connector(tls, name, secret, signal) }),
  })
  const authority = host.includes(':') ? `[${host}]` : host
  try {
    const { statusCode, body } = await request(
      `${tls === undefined ? 'http' : 'https'}://${authority}:${port}${path}`,
      {
        dispatcher,
        headers: { host: `${name}:${port}`, accept: 'application/jwk-set+json, application/json' },
        signal,
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

/** Without a choice of the user's, a key set is fetched in HTTP/1.1. */
const defaultAlpn = ['http/1.1']

/** As requests connect to the same backend. */
function connector(
  config: BackendTlsConfig,
  host: string,
  secret: SecretLookup,
  signal: AbortSignal,
): buildConnector.connector {
  const value = (digest: string): Uint8Array => {
    const found = secret(digest)
    if (found === undefined) throw new Error('the value of a Secret has not arrived')
    return found
  }
  const tls = {
    ...serverIdentity(config, host),
    context: createSecureContext(contextOptions(config, value, systemAuthorities)),
    alpn: config.alpn ?? defaultAlpn,
  }
  return ({ hostname, port }, callback) => {
    const to = { host: bareHost(hostname), port: Number(port) }
    const socket = connect({ ...to, ...handshakeOptions(tls) })
    const failed = (error: Error): void => callback(error, null)
    socket.once('error', failed)
    socket.once('secureConnect', () => {
      socket.off('error', failed)
      callback(null, socket)
    })
    signal.addEventListener('abort', () => socket.destroy(), { once: true })
  }
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
