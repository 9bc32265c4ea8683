/** Addresses of upstreams, and options for connecting to them. */
import type { KeepaliveSettings, ProxySettings } from '../../../ground/exchange/connection.ts'
import type { ConnectionEnds } from '../../../ground/exchange/peer.ts'
import type { ClientTls } from '../../tls-client/handshake.ts'

/** A proxy through which connections to an address are made. */
export type UpstreamProxy = Omit<ProxySettings, 'identity'>

/** A concrete address to connect to. Addresses with an equal `pool` share connections. */
export interface UpstreamAddress {
  /** IP literal or host name. */
  readonly host: string
  readonly port: number
  /** Identity of the pool: the address and everything else that makes connections differ. */
  readonly pool: string
  /** Whether the connection uses HTTP/2: by prior knowledge in plaintext, by ALPN over TLS (RFC 9113 3). */
  readonly isHttp2?: boolean
  /** Whether the server selects the version by ALPN; `isHttp2` is not set then. */
  readonly negotiates?: boolean
  /** `host:port` for logs; if omitted, `pool` is used. */
  readonly label?: string
  /** Set if connections are made through a proxy. `host` may then be a name that only the proxy resolves. */
  readonly via?: UpstreamProxy
  /** Set if the connection ends at a port of this engine, inside the process. Its client has these ends. */
  readonly inner?: ConnectionEnds
  /** Set if the connection uses TLS. */
  readonly tls?: UpstreamTls
  /** Keepalive probes. If omitted: after 180 s, every 180 s, 9 times. */
  readonly keepalive?: KeepaliveSettings
}

/** TLS settings for one destination. */
export interface UpstreamTls extends ClientTls {
  /** ALPN protocols that the user configured, offered for connections that are forwarded unread. */
  readonly statedAlpn: readonly string[]
}

/** The addresses of one name, for a race of connection attempts. */
export interface AddressRace {
  /** Whether the next attempt begins only after one has failed, because the first address is preferred. */
  readonly isPatient: boolean
  /** The other addresses to try after `lead`, in this order (RFC 8305 4); often none. */
  rivalsOf(lead: UpstreamAddress): readonly UpstreamAddress[]
  /** Called when a connection was made after earlier attempts had failed or were slower. */
  won(winner: UpstreamAddress, beaten: LosingAddresses): void
}

export interface LosingAddresses {
  readonly failed: readonly UpstreamAddress[]
  readonly slow: readonly UpstreamAddress[]
}

/** How to make a connection if the pool has none. */
export interface ConnectOptions {
  /** Milliseconds for making the connection, including all attempts; 0 selects the default of 10 s. */
  readonly connectTimeoutMs: number
  /** The other addresses of the name; omitted if there is only one. */
  readonly race?: AddressRace | undefined
  /** Whether the connection serves only one request, and has no read buffer while nothing arrives. */
  readonly isLongLived?: boolean
}
