/** TLS to a backend, in the form that proxies receive. This is version 1 of the format. */
export interface BackendTlsConfig {
  /**
   * PEM certificates of the authorities that may have issued the server's certificate. If neither this
   * nor `authoritiesDigest` is set, the authorities of the system are used.
   */
  readonly authorities?: string
  /** Set in place of `authorities` if they are in a Secret: the digest of its entry. */
  readonly authoritiesDigest?: string
  /** Client certificate: digest of the certificate chain and digest of its private key. */
  readonly certificate?: { readonly chain: string; readonly key: string }
  /** Presents the Gateway's certificate as client certificate, if it has one (BackendTLSPolicy). */
  readonly takesGatewayCertificate?: true
  readonly verify: VerifyMode
  /** Server name to send (SNI). If omitted, the host of the destination is sent. */
  readonly serverName?: string
  /** The server's certificate must contain one of these names. If omitted, the SNI name is required. */
  readonly names?: readonly string[]
  /** ALPN protocols that the user lists. If omitted, the HTTP version determines them. */
  readonly alpn?: readonly string[]
}

/** `full` verifies the certificate's issuer and name, `issuer` only its issuer, `none` nothing. */
export type VerifyMode = 'full' | 'issuer' | 'none'
