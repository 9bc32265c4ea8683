/** Requests of the control plane to backends, over HTTP or HTTPS. */
import { lookup } from 'node:dns'
import { isIP, type LookupFunction, type Socket } from 'node:net'
import { connect, createSecureContext } from 'node:tls'
import { Agent, type buildConnector, request } from 'undici'
import { openThroughProxy } from '../../engines/http/sockets/through-proxy.ts'
import { contextOptions, systemAuthorities } from '../../engines/tls-client/context.ts'
import {
  type ClientTls,
  handshakeOptions,
  serverIdentity,
} from '../../engines/tls-client/handshake.ts'
import {
  environmentProxies,
  type ProxyFor,
} from '../../gateway/policies/backend-simple/tunnel/environment-proxies.ts'
import { bareHost } from '../../ground/base/bare-host.ts'
import { readForwardProxies } from '../../ground/base/forward-proxies.ts'
import type { ProxySettings } from '../../ground/exchange/connection.ts'
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
    connect: connectorOf(address, secret, signal, names),
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

let proxyFor: ProxyFor | undefined

/** Returns the proxy of the environment for a connection. @throws Error for operators if a variable is invalid */
function proxyOf(...connection: Parameters<ProxyFor>): ProxySettings | undefined {
  if (proxyFor === undefined) {
    const proxies = readForwardProxies(process.env)
    proxyFor = proxies === undefined ? () => undefined : environmentProxies(proxies)
  }
  return proxyFor(...connection)
}

type Names = { readonly lookup: LookupFunction } | undefined

/** Connects directly, or by a proxy of the environment, which then resolves the name. */
function connectorOf(
  { host, port, name, tls }: CalledAddress,
  secret: SecretLookup,
  signal: AbortSignal,
  names: Names,
): buildConnector.connector | object {
  const secured = tls && connectionTls(tls, name, secret)
  const proxy = proxyOf(secured !== undefined, bareHost(host), port)
  if (proxy !== undefined) return proxyConnector(proxy, secured, signal)
  return secured === undefined ? { ...names } : connector(secured, signal, names)
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

function connectionTls(config: BackendTlsConfig, host: string, secret: SecretLookup): ClientTls {
  const value = (digest: string): Uint8Array => {
    const found = secret(digest)
    if (found === undefined) throw new Error('the gateway does not have the value of a Secret yet')
    return found
  }
  return {
    ...serverIdentity(config, host),
    context: createSecureContext(contextOptions(config, value, systemAuthorities)),
    alpn: config.alpn ?? defaultAlpn,
  }
}

/** Returns a function that connects with the TLS settings of requests to the same backend. */
function connector(tls: ClientTls, signal: AbortSignal, names: Names): buildConnector.connector {
  return ({ hostname, port }, callback) => {
    const to = { host: bareHost(hostname), port: Number(port), ...names }
    const socket = connect({ ...to, ...handshakeOptions(tls) })
    whenConnected(socket, true, signal, callback)
  }
}

/** Returns a function that connects by a proxy. */
function proxyConnector(
  proxy: ProxySettings,
  tls: ClientTls | undefined,
  signal: AbortSignal,
): buildConnector.connector {
  return ({ hostname, port }, callback) => {
    const secured = tls && { tls: { ...tls, statedAlpn: tls.alpn } }
    const to = { host: bareHost(hostname), port: Number(port), pool: '', ...secured }
    const cancel = openThroughProxy(proxy, to, {
      onSocket: (socket) => whenConnected(socket, tls !== undefined, signal, callback),
      onFailed: (error) => callback(error, null),
    })
    signal.addEventListener('abort', cancel, { once: true })
  }
}

function whenConnected(
  socket: Socket,
  isTls: boolean,
  signal: AbortSignal,
  callback: buildConnector.Callback,
): void {
  const failed = (error: Error): void => callback(error, null)
  const done = (): void => {
    socket.off('error', failed)
    callback(null, socket)
  }
  socket.once('error', failed)
  // A socket without TLS is only handed over once it is connected.
  if (isTls) socket.once('secureConnect', done)
  else done()
  signal.addEventListener('abort', () => socket.destroy(), { once: true })
}
