/** Requests of the control plane to backends, over HTTP or HTTPS. */
import { connect, createSecureContext } from 'node:tls'
import { Agent, type buildConnector, request } from 'undici'
import { contextOptions, systemAuthorities } from '../../engines/tls-client/context.ts'
import { handshakeOptions, serverIdentity } from '../../engines/tls-client/handshake.ts'
import { bareHost } from '../../ground/base/bare-host.ts'
import type { BackendTlsConfig } from '../../ground/model/backend-tls.ts'
import type { CalledAddress } from './called-address.ts'

/** Returns the value of a secret by its digest, or undefined if it is unknown. */
export type SecretLookup = (digest: string) => Uint8Array | undefined

interface BackendRequest {
  readonly method: 'GET' | 'POST'
  /** Path and query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
  /** Time until the response is complete, in milliseconds. */
  readonly timeoutMs: number
  /** Maximum size of a response with status 200, which is an error if it is larger; 0 if its body is not needed. */
  readonly maxBytes: number
}

/**
 * Sends a request and resolves with the response, whatever its status. It follows no redirect, because the
 * configuration names the server. If it rejects, the text of the Error is for operators.
 */
export async function callBackend(
  address: CalledAddress,
  { path, headers, timeoutMs, maxBytes, ...rest }: BackendRequest,
  secret: SecretLookup,
  stop: AbortSignal,
): Promise<{ readonly status: number; readonly text: string }> {
  const { host, port, name, tls } = address
  const signal = AbortSignal.any([stop, AbortSignal.timeout(timeoutMs)])
  const dispatcher = new Agent({
    maxResponseSize: maxBytes || -1,
    ...(tls && { connect: connector(tls, name, secret, signal) }),
  })
  const authority = host.includes(':') ? `[${host}]` : host
  try {
    const { statusCode, body } = await request(
      `${tls === undefined ? 'http' : 'https'}://${authority}:${port}${path}`,
      { ...rest, dispatcher, headers: { host: `${name}:${port}`, ...headers }, signal },
    )
    if (statusCode === 200 && maxBytes > 0) return { status: statusCode, text: await body.text() }
    await body.dump()
    return { status: statusCode, text: '' }
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
    if (found === undefined) throw new Error('the gateway does not have the value of a Secret yet')
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
