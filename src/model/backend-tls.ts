/** Version 1. TLS to a backend, in the form that the proxy receives. */
export interface BackendTlsConfig {
  /**
   * Authorities in PEM that may have issued the server's certificate. Absent: those of the system,
   * unless `authoritiesDigest` is there.
   */
  readonly authorities?: string
  /** The same, as the digest of an entry of a Secret. */
  readonly authoritiesDigest?: string
  /** Client certificate: digests of the chain and of its key. */
  readonly certificate?: { readonly chain: string; readonly key: string }
  /** Present the certificate of the Gateway, where it has one (BackendTLSPolicy). */
  readonly takesGatewayCertificate?: true
  readonly verify: VerifyMode
  /** Name that is sent (SNI); the host of the destination where absent. */
  readonly serverName?: string
  /** The certificate must have one of them; where absent, the name that is sent. */
  readonly names?: readonly string[]
  /** Application protocols that the user lists. If omitted, the version of HTTP decides. */
  readonly alpn?: readonly string[]
}

/** `full`: issuer and name. `issuer`: any name will do. `none`: whoever answers is believed. */
export type VerifyMode = 'full' | 'issuer' | 'none'
