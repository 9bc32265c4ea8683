/** Decides what a TLS port does with each handshake. */
import type { X509Certificate } from 'node:crypto'
import type { SecureContext } from 'node:tls'
import type { RoutePlace } from '../../../ground/exchange/exchange.ts'

/** The TLS contexts of a listener that terminates TLS. */
export interface TlsContexts {
  /** Returns the context for a client whose session tickets have these key names (latin1), if any. */
  choose(tickets: readonly string[]): SecureContext
  /** Whether a client certificate that was verified when a session began is still valid. */
  stillHolds(certificate: X509Certificate): boolean
}

/** The listener that a TLS connection is for, and its settings. */
export interface TlsChoice {
  /** Key of the listener. */
  readonly listener: string
  readonly place: RoutePlace
  /** Whether the connection carries HTTP requests, or bytes that are forwarded unread. */
  readonly carries: 'http' | 'bytes'
  /** Undefined if TLS passes through unread; `carries` is then `bytes`. */
  readonly contexts: TlsContexts | undefined
  /** Application protocols to offer, in order of preference (RFC 7301). Default: h2 and http/1.1. */
  readonly alpn?: readonly string[]
  /** With `required`, TLS fails unless an authority of the context has signed a client certificate. */
  readonly clientCertificate?: 'required' | 'requested'
}

/**
 * Chooses by the server name of each handshake, undefined if the client sends none (RFC 6066 3). The
 * result undefined refuses the handshake with an alert (RFC 6066 3). The result `close` ends the
 * connection without an alert, as TLSRoutes require for names without a route.
 */
export type ChooseTls = (serverName: string | undefined) => TlsChoice | 'close' | undefined
