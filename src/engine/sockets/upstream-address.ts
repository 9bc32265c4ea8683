/** Where connections to upstreams go, and how they are made. */
import type { HttpVersion, KeepaliveSettings } from '../../exchange/connection.ts'
import type { ClientTls } from '../../tls-client/handshake.ts'

/** A concrete address to connect to; equal `pool` means connections can be shared. */
export interface UpstreamAddress {
  /** IP literal or host name. */
  readonly host: string
  readonly port: number
  /** Identity of the pool: address and everything that makes connections differ. */
  readonly pool: string
  /** HTTP/2 is spoken: by prior knowledge, over TLS where both sides agree (RFC 9113 3). */
  readonly isHttp2?: boolean
  /** The server selects the version by ALPN; `isHttp2` is not set. */
  readonly negotiates?: boolean
  /** For logs: `host:port`; `pool` if omitted. */
  readonly label?: string
  /** Set if the connection is TLS. */
  readonly tls?: UpstreamTls
  /** HTTP/1.1 if omitted. */
  readonly version?: HttpVersion
  /** Probes on silent connections; 180 s, 180 s and 9 if omitted. */
  readonly keepalive?: KeepaliveSettings
}

/** TLS to one destination. */
export interface UpstreamTls extends ClientTls {
  /** Those that the user stated: what is forwarded unread may speak anything. */
  readonly statedAlpn: readonly string[]
}

/** The addresses of a name, as a connection to one of them may need the others. */
export interface AddressRace {
  /** The next attempt begins when one has failed, and no earlier: the first address is wanted. */
  readonly isPatient: boolean
  /** What is tried beside the address, in this order (RFC 8305 4); often nothing. */
  rivalsOf(lead: UpstreamAddress): readonly UpstreamAddress[]
  /** A connection was made, while others that had begun before had failed or were slower. */
  won(winner: UpstreamAddress, beaten: LosingAddresses): void
}

export interface LosingAddresses {
  readonly failed: readonly UpstreamAddress[]
  readonly slow: readonly UpstreamAddress[]
}

/** How a connection is made if none is kept. */
export interface ConnectOptions {
  /** Milliseconds until it stands, whatever is tried for it; 0 = the engine's default of 10 s. */
  readonly connectTimeoutMs: number
  /** Absent if there is the one address. */
  readonly race?: AddressRace | undefined
  /** It serves one request alone, and holds no read buffer while it is silent. */
  readonly isLongLived?: boolean
}
