/** Requests of the control plane to backends, over HTTP or HTTPS. */
import { lookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
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
  /** Whether an address may be called. If omitted, all may. */
  readonly mayCall?: (address: string) => boolean
}

interface BackendResponse {
  readonly status: number
  /** Empty unless the status is 200. */
  readonly text: string
  readonly etag: string | undefined
}

/**
 * Sends a request and resolves with the response, whatever its status. It follows no redirect, because the
 * configuration names the server. If it rejects, the text of the Error is for operators.
 */
export async function callBackend(
  address: CalledAddress,
  { path, headers, timeoutMs, maxBytes, mayCall, ...rest }: BackendRequest,
  secret: SecretLookup,
  stop: AbortSignal,
): Promise<BackendResponse> {
  const { host, port, name, tls } = address
  if (mayCall !== undefined && isIP(bareHost(host)) !== 0) checkAddress(bareHost(host), mayCall)
  const signal = AbortSignal.any([stop, AbortSignal.timeout(timeoutMs)])
  const names = mayCall && { lookup: checkedLookup(mayCall) }
  const dispatcher = new Agent({
    maxResponseSize: maxBytes || -1,
    connect: tls === undefined ? { ...names } : connector(tls, name, secret, signal, names),
  })
  const authority = host.includes(':') ? `[${host}]` : host
  try {
    const {
      statusCode,
      headers: received,
      body,
    } = await request(`${tls === undefined ? 'http' : 'https'}://${authority}:${port}${path}`, {
      ...rest,
      dispatcher,
      headers: { host: `${name}:${port}`, ...headers },
      signal,
    })
    const etag = typeof received.etag === 'string' ? received.etag : undefined
    if (statusCode === 200 && maxBytes > 0) {
      return { status: statusCode, text: await body.text(), etag }
    }
    await body.dump()
    return { status: statusCode, text: '', etag }
  } finally {
    await dispatcher.destroy()
  }
}

/** @throws Error for operators */
function checkAddress(address: string, mayCall: (address: string) => boolean): void {
  if (!mayCall(address))
    throw new Error('its address is link-local or belongs to a metadata service')
}

/** Resolves a name and checks all of its addresses, so that the connection goes to one that was checked. */
function checkedLookup(mayCall: (address: string) => boolean): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      if (error !== null) return callback(error, '', 0)
      try {
        for (const { address } of addresses) checkAddress(address, mayCall)
      } catch (refused) {
        return callback(refused as Error, '', 0)
      }
      const [first] = addresses
      if (options.all === true) return callback(null, addresses)
      return callback(null, first?.address ?? '', first?.family)
    })
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
  names: { readonly lookup: LookupFunction } | undefined,
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
    const to = { host: bareHost(hostname), port: Number(port), ...names }
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
