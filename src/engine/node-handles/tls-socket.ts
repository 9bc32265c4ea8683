/** What Node tells of a TLS socket without a `tls.Server` only by undocumented members. */
import type { TLSSocket } from 'node:tls'

/** Calls back for errors of the protocol, which reach no other listener of such a socket. */
export function onProtocolError(socket: TLSSocket, callback: () => void): void {
  socket.on('_tlsError', callback)
}

/**
 * Whether a known authority has signed the certificate of the client. OpenSSL decides it, and leaves
 * it to a `tls.Server` to act on it. A Node that does not expose the decision counts as a no.
 */
export function isPeerVerified(socket: TLSSocket): boolean {
  const { ssl } = socket as { ssl?: { verifyError?: () => unknown } }
  return typeof ssl?.verifyError === 'function' && !ssl.verifyError()
}
