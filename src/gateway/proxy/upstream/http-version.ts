import type {
  ConnectionSettings,
  HttpVersion,
  UpstreamVersion,
} from '../../../ground/exchange/connection.ts'
import type { RequestHead } from '../../../ground/exchange/exchange.ts'
import { isGrpc } from '../../../ground/exchange/grpc.ts'

/** The parts of a request that select its destination and HTTP version. Streams have only some of them. */
export type RequestTraits = Pick<RequestHead, 'authority' | 'scheme'> &
  Partial<Pick<RequestHead, 'version' | 'method' | 'headers' | 'upgrade'>> & {
    /** Whether this is a gRPC call. */
    readonly isGrpc?: boolean
  }

/** A request of the gateway itself. */
export const plainCall: RequestTraits = { authority: '', scheme: 'http', version: '1.1' }

/**
 * Returns the version that is set for all requests, if any: by a policy, by the protocols of its TLS
 * (negotiated if they include HTTP/2), or by the appProtocol of the Service port (GEP-1911).
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
 * Returns the version for a request to a backend. It is the first that applies of: the version that is set
 * for all requests, HTTP/2 for gRPC, the client's version in plaintext, HTTP/1.1. An upgrade uses HTTP/1.1
 * unless a policy or the port sets another version.
 */
export function upstreamVersion(
  settings: ConnectionSettings,
  request: RequestTraits,
  ofPort?: HttpVersion,
): UpstreamVersion {
  if (request.version === undefined) return '1.1'
  const stated = statedVersion(settings, ofPort)
  if (stated === '1.1' || stated === '2') return stated
  if (request.upgrade !== undefined) return upgradeVersion(settings, stated)
  if (isGrpcCall(request)) return '2'
  return stated ?? (request.version === '2' && request.scheme === 'http' ? '2' : '1.1')
}

/** Returns the version for an upgrade. If only h2 can be negotiated, it becomes an extended CONNECT. */
function upgradeVersion(
  { tls }: ConnectionSettings,
  stated: UpstreamVersion | undefined,
): HttpVersion {
  return stated === undefined || tls?.alpn?.includes('http/1.1') === true ? '1.1' : '2'
}

/** Returns whether this is a gRPC call. Every gRPC call is a POST, so other requests need no check of their headers. */
function isGrpcCall({ isGrpc: isKnown, method, headers }: RequestTraits): boolean {
  if (isKnown === true) return true
  return method === 'POST' && isGrpc(headers?.get('content-type'))
}
