/** What backend policies settle for connections, before any request. Types only. */
import type { SecureContext } from 'node:tls'

/** Every field comes from one policy; what none sets is absent. */
export interface ConnectionSettings {
  readonly tls?: TlsSettings
  /** What the Gateway presents to backends whose TLS asks for that. */
  readonly gatewayCertificate?: PresentedCertificate
  readonly keepalive?: KeepaliveSettings
  /** Milliseconds in which a connection must be made, TLS included. */
  readonly connectTimeoutMs?: number
  /** Version of HTTP that is spoken, whatever the request came in by. */
  readonly version?: HttpVersion
  /**
   * Whose credentials requests carry, by a policy: those of the gateway, or those of the client
   * (`passthrough`). Default ones are used only if it is not set.
   */
  readonly credentials?: 'gateway' | 'client'
  /** Milliseconds in which one attempt must give its whole response. */
  readonly requestTimeoutMs?: number
}

/** What frontend policies settle for connections of clients; what none sets is absent. */
export interface ClientSettings {
  readonly keepalive?: KeepaliveSettings
  readonly tls?: ClientTlsSettings
  readonly http?: ClientHttpSettings
}

export interface ClientTlsSettings {
  readonly handshakeTimeoutMs?: number
  /** Application protocols that are offered, best first (RFC 7301). */
  readonly alpn?: readonly string[]
  readonly minVersion?: '1.2' | '1.3'
  readonly maxVersion?: '1.2' | '1.3'
  /** The only suites, best first, by their names in OpenSSL. */
  readonly ciphers?: readonly string[]
}

interface ClientHttpSettings {
  /** Largest body that is held in memory for a policy. */
  readonly maxBufferBytes?: number
  /** Most header fields of a request. */
  readonly maxHeaders?: number
  /** Silence after which an unused connection of HTTP/1.1 is closed. */
  readonly idleTimeoutMs?: number
  readonly http2?: {
    readonly streamWindowBytes?: number
    readonly connectionWindowBytes?: number
    readonly maxFrameBytes?: number
    /** Silence before a ping; 0 = none. */
    readonly keepaliveIntervalMs?: number
    readonly keepaliveTimeoutMs?: number
  }
}

export type HttpVersion = '1.1' | '2'

/** `negotiated`: the version that the server selects from the protocols that the user lists for TLS. */
export type UpstreamVersion = HttpVersion | 'negotiated'

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
  /** Application protocols that the user lists. If undefined, the version of HTTP decides. */
  readonly alpn: readonly string[] | undefined
  /** The same settings with a client certificate; absent where they never take the Gateway's. */
  readonly presenting?: (certificate: PresentedCertificate) => TlsSettings
}

/** A client certificate with its key, in PEM. */
export interface PresentedCertificate {
  /** Equal for the same certificate. */
  readonly identity: string
  readonly chain: Uint8Array
  readonly key: Uint8Array
}
