import type { ConnectionSettings, HttpVersion } from '../../exchange/connection.ts'
import type { RequestHead } from '../../exchange/exchange.ts'
import { appProtocolOf } from '../../model/app-protocols.ts'
import { isGrpc } from '../grpc.ts'

/** What of a request decides how its backend is spoken to; streams that are no requests have less. */
export type Asked = Pick<RequestHead, 'authority' | 'scheme'> &
  Partial<Pick<RequestHead, 'version' | 'method' | 'headers' | 'upgrade'>>

/** The version that the appProtocol of a Service port names (GEP-1911); undefined where it names none. */
export function versionOfAppProtocol(appProtocol: string | undefined): HttpVersion | undefined {
  return appProtocolOf(appProtocol)?.version
}

/**
 * The version that is settled before any request: what a policy says; else the only one that the
 * protocols of its TLS leave (`alpnProtocols`); else what the port of the Service says.
 */
export function statedVersion(
  { version, tls }: ConnectionSettings,
  ofPort?: HttpVersion,
): HttpVersion | undefined {
  return version ?? onlyVersion(tls?.alpn) ?? ofPort
}

/** The only version that a list of offered protocols leaves; undefined where it leaves both. */
function onlyVersion(alpn: readonly string[] | undefined): HttpVersion | undefined {
  if (alpn === undefined) return undefined
  if (!alpn.includes('h2')) return '1.1'
  return alpn.includes('http/1.1') ? undefined : '2'
}

/**
 * Is HTTP/2 spoken to the backend? What a policy or the Service port says; else gRPC asks for it;
 * else a client in plaintext is passed on in its own version, and one over TLS in HTTP/1.1. An
 * upgrade needs HTTP/1.1 unless a policy or the port says otherwise.
 */
export function wantsHttp2(stated: HttpVersion | undefined, request: Asked): boolean {
  if (request.version === undefined) return false
  if (stated !== undefined) return stated === '2'
  if (request.upgrade !== undefined) return false
  // Every call of gRPC is a POST: other requests need not be asked.
  if (request.method === 'POST' && isGrpc(request.headers?.get('content-type'))) return true
  return request.version === '2' && request.scheme === 'http'
}
