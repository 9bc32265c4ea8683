/** What a port with TLS asks for each handshake. */
import type { X509Certificate } from 'node:crypto'
import type { SecureContext } from 'node:tls'
import type { RoutePlace } from '../../exchange/exchange.ts'

/** With what TLS ends. */
export interface TlsContexts {
  /** For a client that shows tickets whose keys have these names (latin1), if any. */
  choose(tickets: readonly string[]): SecureContext
  /** Does a client certificate that was vouched for when a session began still hold? */
  stillHolds(certificate: X509Certificate): boolean
}

/** Which listener a TLS connection is for. */
export interface TlsChoice {
  /** Key of the listener. */
  readonly listener: string
  readonly place: RoutePlace
  /** What the connection carries: requests, or bytes that are forwarded as they are. */
  readonly carries: 'http' | 'bytes'
  /** `undefined` if TLS passes through unread; `carries` is then `bytes`. */
  readonly contexts: TlsContexts | undefined
  /** Application protocols that are offered, by preference (RFC 7301); h2 and http/1.1 if omitted. */
  readonly alpn?: readonly string[]
  /** `required`: without a certificate that an authority of the context vouches for, TLS fails. */
  readonly clientCertificate?: 'required' | 'requested'
}

/**
 * Chooses by the name that the client asks for (RFC 6066 3; `undefined` if it names none), at
 * every handshake anew. Undefined refuses the handshake with an alert (RFC 6066 3); `close` says
 * nothing and ends the connection, as TLSRoutes want it of names that no route has.
 */
export type ChooseTls = (serverName: string | undefined) => TlsChoice | 'close' | undefined
