/** What backend policies settle for connections, before any request. Types only. */
import type { SecureContext } from 'node:tls'

/** Every field comes from one policy; what none sets is absent. */
export interface ConnectionSettings {
  readonly tls?: TlsSettings
  readonly keepalive?: KeepaliveSettings
  /** Milliseconds in which a connection must be made, TLS included. */
  readonly connectTimeoutMs?: number
  /** Version of HTTP that is spoken, whatever the request came in by. */
  readonly version?: HttpVersion
  /** Milliseconds in which one attempt must give its whole response. */
  readonly requestTimeoutMs?: number
}

export type HttpVersion = '1.1' | '2'

/** Probes on silent connections (RFC 9293 3.8.4). */
export interface KeepaliveSettings {
  /** Unanswered probes after which the connection is dropped. */
  readonly retries: number
  /** Milliseconds of silence before the first probe, and between probes. */
  readonly timeMs: number
  readonly intervalMs: number
}

/** TLS to a backend, for any destination that the policy covers. */
export interface TlsSettings {
  /** Equal for settings that make the same connections. */
  readonly identity: string
  readonly context: SecureContext
  /** `full`: issuer and name. `issuer`: any name will do. `none`: whoever answers is believed. */
  readonly verify: 'full' | 'issuer' | 'none'
  /** Name that is sent (SNI); the host of the destination where undefined. */
  readonly serverName: string | undefined
  /** The certificate must have one of them; where undefined, the name that is sent. */
  readonly names: readonly string[] | undefined
  /** What the user wants to offer; chosen by the version of HTTP where undefined. */
  readonly alpn: readonly string[] | undefined
}
