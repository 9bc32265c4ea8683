import type { ConnectionSettings, HttpVersion, UpstreamVersion } from '../../exchange/connection.ts'
import type { RequestHead } from '../../exchange/exchange.ts'
import { isGrpc } from '../../exchange/grpc.ts'
import { appProtocolOf } from '../../model/app-protocols.ts'

/** What of a request decides how its backend is spoken to; streams that are no requests have less. */
export type Asked = Pick<RequestHead, 'authority' | 'scheme'> &
  Partial<Pick<RequestHead, 'version' | 'method' | 'headers' | 'upgrade'>> & {
    /** A call of gRPC, whatever its head says. */
    readonly isGrpc?: boolean
  }

/** The version that the appProtocol of a Service port names (GEP-1911); undefined where it names none. */
export function versionOfAppProtocol(appProtocol: string | undefined): HttpVersion | undefined {
  return appProtocolOf(appProtocol)?.version
}

/**
 * The version for any request: what a policy says; else what the server selects, if the protocols of
 * its TLS (`alpnProtocols`) include HTTP/2, and HTTP/1.1 if they do not; else what the port of the
 * Service says.
 */
export function statedVersion(
  { version, tls }: ConnectionSettings,
  ofPort?: HttpVersion,
): UpstreamVersion | undefined {
  if (version !== undefined) return version
  if (tls?.alpn === undefined) return ofPort
  return tls.alpn.includes('h2') ? 'negotiated' : '1.1'
}

/**
 * The version in which a request goes to the backend: what is stated for all requests; else gRPC
 * asks for HTTP/2; else a client in plaintext is passed on in its own version, and one over TLS in
 * HTTP/1.1. An upgrade needs HTTP/1.1 unless a policy or the port says otherwise.
 */
export function upstreamVersion(
  settings: ConnectionSettings,
  request: Asked,
  ofPort?: HttpVersion,
): UpstreamVersion {
  if (request.version === undefined) return '1.1'
  const stated = statedVersion(settings, ofPort)
  if (stated === '1.1' || stated === '2') return stated
  if (request.upgrade !== undefined) return upgradeVersion(settings, stated)
  if (isGrpcCall(request)) return '2'
  return stated ?? (request.version === '2' && request.scheme === 'http' ? '2' : '1.1')
}

/** A server that selects h2 takes an upgrade as an extended CONNECT, or not at all. */
function upgradeVersion(
  { tls }: ConnectionSettings,
  stated: UpstreamVersion | undefined,
): HttpVersion {
  return stated === undefined || tls?.alpn?.includes('http/1.1') === true ? '1.1' : '2'
}

/** Every call of gRPC is a POST: other requests need not be asked. */
function isGrpcCall({ isGrpc: isKnown, method, headers }: Asked): boolean {
  if (isKnown === true) return true
  return method === 'POST' && isGrpc(headers?.get('content-type'))
}
