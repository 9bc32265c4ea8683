/** Connection settings, which policies decide before any request. Types only. */
import type { X509Certificate } from 'node:crypto'
import type { SecureContext } from 'node:tls'
import type { ConnectionEnds } from './peer.ts'

/** Which connections to a port begin with a PROXY header. */
export interface ProxyProtocolSettings {
  readonly versions: readonly (1 | 2)[]
  /** Whether connections without a header are accepted. */
  readonly isOptional: boolean
  /** Whether connections from an address may have a header. If omitted, those from all addresses may. */
  isSender?(address: string): boolean
}

/** Which proxies in front of the gateway are trusted, and which headers about the client backends get. */
export interface ForwardedRules {
  /** `Keep`: as sent. `Append`: the peer is added to X-Forwarded-For. `Replace`: it has only the client. */
  readonly headers: 'Keep' | 'Append' | 'Replace'
  /** Number of proxies in front of the gateway, all of which are trusted. */
  readonly trustedHops: number | undefined
  /** Returns whether the address is that of a trusted proxy. If omitted, the setting of the process decides. */
  isTrusted?(address: string): boolean
}

/** Settings of connections to a backend. A field is set by one policy, and omitted if no policy sets it. */
export interface ConnectionSettings {
  readonly tls?: TlsSettings
  /** The certificate that the Gateway presents to backends whose TLS settings have `presenting`. */
  readonly gatewayCertificate?: PresentedCertificate
  readonly keepalive?: KeepaliveSettings
  /** Timeout for making a connection, including TLS, in milliseconds. */
  readonly connectTimeoutMs?: number
  /** HTTP version of requests to the backend, whatever version the client uses. */
  readonly version?: HttpVersion
  /**
   * Set if a policy adds credentials to requests: its own (`gateway`), or those that the client sent
   * (`client`, for `passthrough`). If it is not set, default credentials may be used.
   */
  readonly credentials?: 'gateway' | 'client'
  /** Whether tokens are bound to a key of the gateway, so that steps see every response of the backend. */
  readonly bindsTokens?: true
  /** Timeout of one attempt, until its response is complete, in milliseconds. */
  readonly requestTimeoutMs?: number
  readonly health?: HealthRules
  readonly circuit?: CircuitLimits
  /** Returns the text that identifies the session of an exchange; undefined if it has none. */
  sessionOf?(exchange: object): string | undefined
  /** The proxy through which connections are made. */
  readonly tunnel?: ProxySettings
}

/** A proxy between the gateway and backends. */
export interface ProxySettings {
  /** Equal for settings whose connections are interchangeable. */
  readonly identity: string
  readonly protocol: 'http' | 'socks5'
  readonly host: string
  readonly port: number
  /** TLS to the proxy itself. */
  readonly tls?: {
    readonly context: SecureContext
    readonly alpn: readonly string[]
    readonly serverName: string
    readonly requiresTrust: boolean
    readonly checkName: (certificate: X509Certificate) => string | undefined
  }
  readonly credentials?: { readonly username: string; readonly password: string }
}

/** What one proxy sends to a backend at the same time. A limit that is omitted does not apply. */
export interface CircuitLimits {
  /** `namespace/name` of the policy, whose uses are counted together. */
  readonly name: string
  readonly maxRequests?: number
  readonly maxRetries?: number
}

/** Which responses count against the health of an endpoint, and when it is ejected. */
export interface HealthRules {
  /** Returns whether the response of an exchange is unhealthy. If omitted, 5xx is. */
  isUnhealthy?(exchange: object): boolean
  /** If omitted, endpoints are not ejected, and unhealthy ones get fewer requests. */
  readonly eviction?: EvictionRules
  /** Percentage of usable endpoints below which all endpoints are used, also ejected ones. */
  readonly panicPercent?: number
  /** Time after which a new or returning endpoint gets its full share of requests, in milliseconds. */
  readonly slowStartMs?: number
  /** Probes that the proxy sends; none if omitted. */
  readonly active?: ActiveCheckRules
}

/** Which probes are sent to the endpoints of a backend, and what their results mean. */
export interface ActiveCheckRules {
  /** Equal for equal rules, in all workers. */
  readonly identity: string
  readonly probe: HealthProbe
  /** Time between two probes of an endpoint. It varies by a tenth. */
  readonly intervalMs: number
  readonly timeoutMs: number
  /** Number of successful probes in a row after which an unhealthy endpoint is used again. */
  readonly healthyThreshold: number
  /** Number of failed probes in a row after which an endpoint is not used. */
  readonly unhealthyThreshold: number
  /** Port of the probes; that of the endpoint if omitted. */
  readonly port?: number
  /** Whether a new endpoint is only used after a successful probe. */
  readonly startsUnhealthy?: boolean
  /** The latest results, by endpoint; none for endpoints that are not checked. */
  readonly results: WeakMap<object, CheckedHealth>
}

export interface CheckedHealth {
  /** Whether the endpoint must not be used while others can be. */
  readonly isDown: boolean
}

export type HealthProbe =
  | {
      readonly type: 'http'
      readonly method: string
      /** Path and query. */
      readonly path: string
      /** Value of Host; that of the backend if omitted. */
      readonly hostname?: string
      /** Statuses of healthy endpoints. */
      readonly statuses: readonly number[]
      readonly headers: Readonly<Record<string, string>>
    }
  /** grpc.health.v1.Health/Check. An empty service stands for the whole server. */
  | { readonly type: 'grpc'; readonly service: string }
  | { readonly type: 'tcp' }

export interface EvictionRules {
  /** Time of the first ejection. It is multiplied by the number of ejections in a row. */
  readonly durationMs: number
  /** Health after an ejection, in percent. */
  readonly restoreHealth?: number
  readonly consecutiveFailures?: number
  /** Health below which an endpoint is ejected, in percent. */
  readonly healthThreshold?: number
}

/** Settings of client connections. Each field is omitted if no policy sets it. */
export interface ClientSettings {
  readonly keepalive?: KeepaliveSettings
  readonly tls?: ClientTlsSettings
  readonly http?: ClientHttpSettings
  readonly connect?: ConnectRules
  readonly proxyProtocol?: ProxyProtocolSettings
  readonly forwarded?: ForwardedRules
  /** Returns why a connection is refused; undefined if it is allowed. If omitted, all are allowed. */
  refusal?(connection: ConnectionEnds): string | undefined
}

/** Rules for requests for tunnels (CONNECT). Without them, such requests are refused. */
export interface ConnectRules {
  /** `Route`: the tunnel goes to the backend of a route. `Tunnel`: it goes to a listener of the same Gateway. */
  readonly mode: 'Deny' | 'Route' | 'Tunnel'
  /** Ports that a request may name; if omitted, all. */
  readonly ports?: readonly number[]
  /** Milliseconds without bytes after which a tunnel is cut; 0 means no limit. */
  readonly idleTimeoutMs: number
  /** Milliseconds after which an open tunnel is cut; 0 means no limit. */
  readonly maxDurationMs: number
  /** Maximum number of tunnels of a port in one worker; no limit if omitted. */
  readonly maxTunnels?: number
  /** Whether the client must begin with TLS for the host of the request. */
  readonly matchesServerName?: true
}

export interface ClientTlsSettings {
  readonly handshakeTimeoutMs?: number
  /** ALPN protocols to offer, most preferred first (RFC 7301). */
  readonly alpn?: readonly string[]
  readonly minVersion?: '1.2' | '1.3'
  readonly maxVersion?: '1.2' | '1.3'
  /** The cipher suites to use, most preferred first, by their OpenSSL names. */
  readonly ciphers?: readonly string[]
}

interface ClientHttpSettings {
  /** Maximum size of a body that is read into memory for a policy. */
  readonly maxBufferBytes?: number
  /** Maximum number of header fields of a request. */
  readonly maxHeaders?: number
  /** Idle time after which an HTTP/1.1 connection is closed. */
  readonly idleTimeoutMs?: number
  /** Time after which a connection closes once its requests are done. */
  readonly connectionDurationMs?: number
  readonly http2?: {
    readonly streamWindowBytes?: number
    readonly connectionWindowBytes?: number
    readonly maxFrameBytes?: number
    /** Maximum number of bytes of a request head. */
    readonly maxHeadBytes?: number
    /** Idle time before a PING frame is sent; 0 disables pings. */
    readonly keepaliveIntervalMs?: number
    readonly keepaliveTimeoutMs?: number
  }
}

export type HttpVersion = '1.1' | '2'

/** `negotiated`: the server selects the version, from the ALPN protocols that the user configured. */
export type UpstreamVersion = HttpVersion | 'negotiated'

/** TCP keepalive probes on idle connections (RFC 9293 3.8.4). */
export interface KeepaliveSettings {
  /** Number of unanswered probes after which the connection is dropped. */
  readonly retries: number
  /** Idle time before the first probe, in milliseconds. */
  readonly timeMs: number
  /** Time between probes, in milliseconds. */
  readonly intervalMs: number
}

/** TLS settings for every destination that a policy covers. */
export interface TlsSettings {
  /** Equal for settings whose connections are interchangeable. */
  readonly identity: string
  readonly context: SecureContext
  /** `full`: verify issuer and name. `issuer`: verify the issuer, accept any name. `none`: verify nothing. */
  readonly verify: 'full' | 'issuer' | 'none'
  /** Server name to send (SNI); the host of the destination if undefined. */
  readonly serverName: string | undefined
  /** The certificate must have one of these names; if undefined, it must have the server name. */
  readonly names: readonly string[] | undefined
  /** ALPN protocols that the user configured. If undefined, the HTTP version decides. */
  readonly alpn: readonly string[] | undefined
  /** Returns the same settings with a client certificate; omitted if the Gateway's is never used. */
  readonly presenting?: (certificate: PresentedCertificate) => TlsSettings
}

/** A client certificate with its key, in PEM. */
export interface PresentedCertificate {
  /** Equal only for equal certificates. */
  readonly identity: string
  readonly chain: Uint8Array
  readonly key: Uint8Array
}
