import { record, type Shape, text } from '../../../base/shape.ts'
/**
 * Version 1. The certificate that a Gateway presents to backends (Gateway API,
 * `spec.tls.backend.clientCertificateRef`): digests of the chain and of its key.
 */
export interface GatewayCertificateConfig {
  readonly chain: string
  readonly key: string
}

export const shape: Shape<GatewayCertificateConfig> = record({ chain: text, key: text })
