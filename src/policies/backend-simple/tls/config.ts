import { choice, list, optional, record, type Shape, text } from '../../../base/shape.ts'
import type { BackendTlsConfig } from '../../../model/backend-tls.ts'

export const shape: Shape<BackendTlsConfig> = record({
  authorities: optional(text),
  authoritiesDigest: optional(text),
  certificate: optional(
    record<NonNullable<BackendTlsConfig['certificate']>>({ chain: text, key: text }),
  ),
  takesGatewayCertificate: optional(choice(true)),
  verify: choice('full', 'issuer', 'none'),
  serverName: optional(text),
  names: optional(list(text)),
  alpn: optional(list(text)),
})
