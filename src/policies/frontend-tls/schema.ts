import { choice, type Infer, list, object, optional } from '../../schema/field.ts'
import { atLeastOneOf, rule } from '../../schema/rules.ts'
import { sectionField } from '../../schema/section-field.ts'
import { duration, tinyString } from '../../schema/strings.ts'

const tlsVersion = choice('TLSVersion', { '1.2': 'TLS 1.2', '1.3': 'TLS 1.3' })

const cipherSuite = choice('CipherSuite', {
  TLS13_AES_256_GCM_SHA384: 'TLS 1.3',
  TLS13_AES_128_GCM_SHA256: 'TLS 1.3',
  TLS13_CHACHA20_POLY1305_SHA256: 'TLS 1.3',
  TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384: 'TLS 1.2',
  TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: 'TLS 1.2',
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: 'TLS 1.2',
  TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384: 'TLS 1.2',
  TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: 'TLS 1.2',
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: 'TLS 1.2',
})

interface Versions {
  readonly minProtocolVersion?: string
  readonly maxProtocolVersion?: string
}

const frontendTls = object(
  'FrontendTLS',
  {
    handshakeTimeout: optional(duration, {
      doc: 'A handshake that takes longer is cut.',
      default: '15s',
    }),
    alpnProtocols: optional(list(tinyString, { min: 1, max: 16 }), {
      doc: 'Application protocols that are offered, best first.',
      default: ['h2', 'http/1.1'],
    }),
    minProtocolVersion: optional(tlsVersion, 'Lowest version that is taken.'),
    maxProtocolVersion: optional(tlsVersion, 'Highest version that is offered.'),
    cipherSuites: optional(
      list(cipherSuite, { max: 64 }),
      'The only suites that are negotiated; the usual ones where unset.',
    ),
  },
  {
    rules: [
      atLeastOneOf(
        'handshakeTimeout',
        'alpnProtocols',
        'minProtocolVersion',
        'maxProtocolVersion',
        'cipherSuites',
      ),
      rule<Versions>({
        message: 'minProtocolVersion must not be higher than maxProtocolVersion',
        cel: "!(has(self.minProtocolVersion) && has(self.maxProtocolVersion) && self.minProtocolVersion == '1.3' && self.maxProtocolVersion == '1.2')",
        holds: (tls) => !(tls.minProtocolVersion === '1.3' && tls.maxProtocolVersion === '1.2'),
        at: 'minProtocolVersion',
      }),
    ],
  },
)
export type FrontendTlsSpec = Infer<typeof frontendTls>

export const frontendTlsField = sectionField({
  section: 'frontend',
  field: 'tls',
  schema: frontendTls,
  doc: 'TLS settings of accepted connections.',
})
