/** Fetches one JSON Web Key Set over HTTP or HTTPS. */
import { connect, createSecureContext } from 'node:tls'
import { Agent, type buildConnector, request } from 'undici'
import { contextOptions, systemAuthorities } from '../../engines/tls-client/context.ts'
import { handshakeOptions, serverIdentity } from '../../engines/tls-client/handshake.ts'
import { bareHost } from '../../ground/base/bare-host.ts'
import { isObject } from '../../ground/base/json-object.ts'
import type { BackendTlsConfig } from '../../ground/model/backend-tls.ts'
import type { KeySetAddress } from './key-set-address.ts'

/** Returns the value of a secret by its digest, or undefined if it is unknown. */
export type SecretLookup = (digest: string) => Uint8Array | undefined

export type PublicKeySet = Readonly<Record<string, unknown>>

/** Maximum bytes of a key set, which must fit into an event. */
const maxBytes = 256 * 1024
const timeoutMs = 10_000

/**
 * Fetches a key set and resolves with the public members of its keys. If it rejects, the text of the Error is for
 * operators. It follows no redirect, because the policy names the server.
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

/** ALPN protocols that are used unless a policy sets them. */
const defaultAlpn = ['http/1.1']

/** Returns a function that connects with the TLS settings of requests to the same backend. */
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

/** Private members of keys, which must not be recorded (RFC 7518 section 6). */
const privateMembers = new Set(['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k'])

function publicKeySet(text: string): PublicKeySet {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {
    throw new Error('the response is not JSON')
  }
  const keys = (parsed as { keys?: unknown } | null)?.keys
  if (!Array.isArray(keys)) throw new Error('the response is not a JSON Web Key Set')
  const isPublic = ([name]: readonly [string, unknown]) => !privateMembers.has(name)
  const publicPart = (key: object) => Object.fromEntries(Object.entries(key).filter(isPublic))
  return { keys: keys.filter(isObject).map(publicPart) }
}
