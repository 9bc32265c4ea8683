import { parseDurationMs } from '../../../ground/base/duration.ts'
import { choice, type Infer, list, object, optional } from '../../../ground/schema/field.ts'
import { atLeastOneOf, rule } from '../../../ground/schema/rules.ts'
import { duration, tinyString } from '../../../ground/schema/strings.ts'
import { definePolicy, type PolicyProblem } from '../define.ts'

const tlsVersion = choice('TLSVersion', { '1.2': 'TLS 1.2', '1.3': 'TLS 1.3' })
type TlsVersion = Infer<typeof tlsVersion>

/** OpenSSL names of the cipher suites. For TLS 1.3 they are those of RFC 8446. */
const suites: Readonly<Record<string, string>> = {
  TLS13_AES_256_GCM_SHA384: 'TLS_AES_256_GCM_SHA384',
  TLS13_AES_128_GCM_SHA256: 'TLS_AES_128_GCM_SHA256',
  TLS13_CHACHA20_POLY1305_SHA256: 'TLS_CHACHA20_POLY1305_SHA256',
  TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384: 'ECDHE-ECDSA-AES256-GCM-SHA384',
  TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256: 'ECDHE-ECDSA-AES128-GCM-SHA256',
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-ECDSA-CHACHA20-POLY1305',
  TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384: 'ECDHE-RSA-AES256-GCM-SHA384',
  TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256: 'ECDHE-RSA-AES128-GCM-SHA256',
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256: 'ECDHE-RSA-CHACHA20-POLY1305',
}

function versionOf(suite: string): TlsVersion {
  return suite.startsWith('TLS13_') ? '1.3' : '1.2'
}

const cipherSuite = choice(
  'CipherSuite',
  Object.fromEntries(Object.keys(suites).map((suite) => [suite, `TLS ${versionOf(suite)}`])),
)

interface WrittenVersions {
  readonly minProtocolVersion?: string
  readonly maxProtocolVersion?: string
}

const frontendTlsSchema = object(
  'FrontendTLS',
  {
    handshakeTimeout: optional(duration, {
      doc: 'Timeout of the handshake.',
      default: '15s',
    }),
    alpnProtocols: optional(list(tinyString, { min: 1, max: 16 }), {
      doc: 'Application protocols that are offered, best first.',
      default: ['h2', 'http/1.1'],
    }),
    minProtocolVersion: optional(tlsVersion, 'Lowest version that is accepted.'),
    maxProtocolVersion: optional(tlsVersion, 'Highest version that is offered.'),
    cipherSuites: optional(
      list(cipherSuite, { max: 64 }),
      'Cipher suites that may be negotiated. If not set, the defaults.',
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
      rule<WrittenVersions>({
        message: 'minProtocolVersion must not be higher than maxProtocolVersion',
        cel: "!(has(self.minProtocolVersion) && has(self.maxProtocolVersion) && self.minProtocolVersion == '1.3' && self.maxProtocolVersion == '1.2')",
        holds: (tls) => !(tls.minProtocolVersion === '1.3' && tls.maxProtocolVersion === '1.2'),
        at: 'minProtocolVersion',
      }),
    ],
  },
)
type FrontendTlsSpec = Infer<typeof frontendTlsSchema>

/**
 * TLS versions without an allowed suite are not offered. If no version is left, that is a problem, so that
 * handshakes never use what the user has excluded.
 */
function compile(spec: FrontendTlsSpec) {
  const { minProtocolVersion = '1.2', maxProtocolVersion = '1.3', cipherSuites = [] } = spec
  const offered = (['1.2', '1.3'] as const).filter(
    (version) =>
      version >= minProtocolVersion &&
      version <= maxProtocolVersion &&
      (cipherSuites.length === 0 || cipherSuites.some((suite) => versionOf(suite) === version)),
  )
  const problems: PolicyProblem[] = []
  if (offered.length === 0) {
    const range = `${minProtocolVersion} to ${maxProtocolVersion}`
    const message = `no listed suite belongs to a TLS version that is allowed (${range})`
    problems.push({ path: 'cipherSuites', message })
  }
  const config = {
    handshakeTimeoutMs: parseDurationMs(spec.handshakeTimeout),
    alpn: spec.alpnProtocols,
    minVersion: offered[0],
    maxVersion: offered.at(-1),
    ...(cipherSuites.length > 0 && {
      ciphers: cipherSuites.map((suite) => suites[suite] ?? suite),
    }),
  }
  return { config, problems }
}

/** Sets the TLS versions and cipher suites that clients can use, and the handshake timeout. */
export const frontendTls = definePolicy({
  section: 'frontend',
  field: 'tls',
  schema: frontendTlsSchema,
  doc: 'TLS settings of accepted connections.',
  security: true,
  compile,
  apply: () => import('./apply.ts'),
})
