import { parseDurationMs } from '../../base/duration.ts'
import { choice, type Infer, list, object, optional } from '../../schema/field.ts'
import { atLeastOneOf, rule } from '../../schema/rules.ts'
import { sectionField } from '../../schema/section-field.ts'
import { duration, tinyString } from '../../schema/strings.ts'
import { type Compiled, definePolicy, type PolicyProblem } from '../define.ts'
import type { FrontendTlsConfig } from './apply.ts'

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

interface WrittenVersions {
  readonly minProtocolVersion?: string
  readonly maxProtocolVersion?: string
}

const frontendTlsSchema = object(
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

const frontendTlsField = sectionField({
  section: 'frontend',
  field: 'tls',
  schema: frontendTlsSchema,
  doc: 'TLS settings of accepted connections.',
})

/** What OpenSSL calls the suites: those of TLS 1.3 by the names of RFC 8446, the others by its own. */
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

/**
 * `frontend.tls`. A version without a suite is not offered; versions that leave nothing to offer
 * are a problem, so that a handshake never agrees on what the user has excluded.
 */
function compile(spec: FrontendTlsSpec): Compiled<FrontendTlsConfig> {
  const { handshakeTimeout, alpnProtocols, minProtocolVersion, maxProtocolVersion } = spec
  const listed = spec.cipherSuites ?? []
  const versions = versionsOf(spec)
  const problems: PolicyProblem[] = []
  if (versions === undefined) {
    const range = [minProtocolVersion ?? '1.2', maxProtocolVersion ?? '1.3'].join(' to ')
    const message = `no listed suite belongs to a TLS version that is allowed (${range})`
    problems.push({ path: 'cipherSuites', message })
  }
  const handshakeTimeoutMs =
    handshakeTimeout === undefined ? undefined : parseDurationMs(handshakeTimeout)
  const config: FrontendTlsConfig = {
    ...(handshakeTimeoutMs !== undefined && { handshakeTimeoutMs }),
    ...(alpnProtocols !== undefined && { alpn: alpnProtocols }),
    ...versions,
    ...(listed.length > 0 && { ciphers: listed.map((suite) => suites[suite] ?? suite) }),
  }
  return { config, problems }
}

type Versions = Pick<FrontendTlsConfig, 'minVersion' | 'maxVersion'>

/** The versions that are left once each of them needs a suite; undefined where none is. */
function versionsOf(spec: FrontendTlsSpec): Versions | undefined {
  const { minProtocolVersion, maxProtocolVersion, cipherSuites = [] } = spec
  const has = (version: '1.2' | '1.3') =>
    cipherSuites.length === 0 ||
    cipherSuites.some((suite) => suite.startsWith('TLS13_') === (version === '1.3'))
  const isAllowed = (version: '1.2' | '1.3') =>
    version >= (minProtocolVersion ?? '1.2') && version <= (maxProtocolVersion ?? '1.3')
  const left = (['1.2', '1.3'] as const).filter((version) => isAllowed(version) && has(version))
  const [minVersion, maxVersion = minVersion] = left
  return minVersion === undefined || maxVersion === undefined
    ? undefined
    : { minVersion, maxVersion }
}

/** What handshakes with clients may agree on, and how long they may take. */
export const frontendTls = definePolicy(frontendTlsField, {
  security: true,
  preRouting: false,
  merge: 'replace',
  configVersion: 1,
  compile,
  apply: () => import('./apply.ts'),
})
