/**
 * Version 1. The certificate that a Gateway presents to backends (Gateway API,
 * `spec.tls.backend.clientCertificateRef`): digests of the chain and of its key.
 */
export interface GatewayCertificateConfig {
  readonly chain: string
  readonly key: string
}
