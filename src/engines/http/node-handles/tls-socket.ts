/** Properties of TLS sockets that Node exposes without a `tls.Server` only in undocumented members. */
import type { TLSSocket } from 'node:tls'

/** Calls `callback` on protocol errors, which such a socket reports to no other listener. */
export function onProtocolError(socket: TLSSocket, callback: () => void): void {
  socket.on('_tlsError', callback)
}

/**
 * Whether a trusted authority has signed the client certificate. OpenSSL decides this and expects a
 * `tls.Server` to act on it. Returns false if this Node does not expose the decision.
 */
export function isPeerVerified(socket: TLSSocket): boolean {
  const { ssl } = socket as { ssl?: { verifyError?: () => unknown } }
  return typeof ssl?.verifyError === 'function' && !ssl.verifyError()
}
