/** An identity provider: signs tokens, publishes its keys over HTTP or HTTPS, and rotates them. */
import {
  createServer as createPlainServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
} from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import {
  type CryptoKey,
  exportJWK,
  generateKeyPair,
  type JWK,
  type JWTHeaderParameters,
  type JWTPayload,
  SignJWT,
} from 'jose'

export interface SigningKey {
  readonly kid: string
  readonly algorithm: string
  readonly privateKey: CryptoKey
  /** As it is published. */
  readonly jwk: JWK
}

/** A fresh key pair, with its id and algorithm in the public half. */
export async function signingKey(kid: string, algorithm = 'RS256'): Promise<SigningKey> {
  const { privateKey, publicKey } = await generateKeyPair(algorithm, { extractable: true })
  const jwk = { ...(await exportJWK(publicKey)), kid, alg: algorithm, use: 'sig' }
  return { kid, algorithm, privateKey, jwk }
}

export function keySetOf(...keys: readonly SigningKey[]): { keys: JWK[] } {
  return { keys: keys.map(({ jwk }) => jwk) }
}

/** Seconds since the epoch, so many from now. */
export const inSeconds = (seconds: number): number => Math.floor(Date.now() / 1000) + seconds

/** A token of five minutes; claims and header may say otherwise. */
export function sign(
  key: SigningKey,
  claims: JWTPayload,
  header: Partial<JWTHeaderParameters> = {},
): Promise<string> {
  return new SignJWT({ exp: inSeconds(300), ...claims })
    .setProtectedHeader({ alg: key.algorithm, kid: key.kid, ...header })
    .sign(key.privateKey)
}

export interface IdentityProvider {
  readonly port: number
  /** How often the keys were asked for. */
  fetches: number
  /** The last request for them. */
  lastRequest: IncomingMessage | undefined
  /** The name that each handshake of TLS asked for, and the application protocols that it offered. */
  readonly handshakes: readonly { readonly serverName: string; readonly offered: string[] }[]
  /** The answer from now on: a body, an error status for a number, or no answer for `hang`. */
  serve(what: unknown | number | 'hang'): void
  close(): Promise<void>
}

export interface ProviderOptions {
  readonly path?: string
  /** Default: a free port. */
  readonly port?: number
  /** With it, HTTPS is spoken. */
  readonly tls?: { readonly cert: string; readonly key: string; readonly ca?: string }
}

/** Serves a key set on a free loopback port. */
export async function startIdentityProvider(
  first: unknown,
  { path = '/keys', port = 0, tls }: ProviderOptions = {},
): Promise<IdentityProvider> {
  let served: unknown = first
  const answer: RequestListener = (request, response) => {
    provider.fetches++
    provider.lastRequest = request
    if (served === 'hang') return
    const status = request.url !== path ? 404 : typeof served === 'number' ? served : 200
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(typeof served === 'string' ? served : JSON.stringify(served))
  }
  const handshakes: { serverName: string; offered: string[] }[] = []
  const ALPNCallback = ({ servername, protocols }: { servername: string; protocols: string[] }) => {
    handshakes.push({ serverName: servername, offered: protocols })
    return protocols.includes('http/1.1') ? 'http/1.1' : undefined
  }
  const clientAuthority = tls?.ca === undefined ? {} : { requestCert: true, ca: tls.ca }
  const server: Server =
    tls === undefined
      ? createPlainServer(answer)
      : createSecureServer({ ...tls, ...clientAuthority, ALPNCallback }, answer)
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const provider: IdentityProvider = {
    port: (server.address() as AddressInfo).port,
    fetches: 0,
    lastRequest: undefined,
    handshakes,
    serve: (what) => {
      served = what
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return provider
}
