import type { EngineParts } from '../contracts/engine-parts.ts'
import type { EngineLimits } from '../limits/engine-limits.ts'
import { Transport } from '../sockets/transport.ts'
import type { SecureSocket } from '../tls/tls-handshake.ts'
import type { Http2Accepted } from './accepted.ts'
import { DownstreamSession } from './downstream-session.ts'

/**
 * May HTTP/2 begin although the handshake did not agree on it (RFC 9113 3.2)? Where the client named no
 * protocol, and the listener offers HTTP/2.
 */
export function admitsPreface({ socket, choice }: SecureSocket): boolean {
  return typeof socket.alpnProtocol !== 'string' && choice.alpn?.includes('h2') !== false
}

/** A connection whose first bytes have turned out to be HTTP/2; its accounts go on. */
export function handOver(
  parts: EngineParts,
  accepted: Http2Accepted,
  transport: Transport,
): DownstreamSession {
  return new DownstreamSession(parts, accepted, (owner) => {
    transport.owner = owner
    transport.resume()
    return transport
  })
}

interface SecureAccepted {
  readonly limits: EngineLimits
  readonly port: number
  readonly secure: SecureSocket
}

/** A connection whose handshake has agreed on HTTP/2 (RFC 9113 3.2). */
export function overTls(
  parts: EngineParts,
  { limits, port, secure }: SecureAccepted,
): DownstreamSession {
  const { choice, raw, socket } = secure
  parts.counters.connectionsTotal++
  parts.counters.connectionsOpen++
  return new DownstreamSession(parts, { limits, port, tls: choice }, (owner) =>
    Transport.overShared(parts, socket, owner, parts.tlsMeter, raw),
  )
}
