import { getCACertificates, type SecureContextOptions } from 'node:tls'
import type { BackendTlsConfig } from '../model/backend-tls.ts'

type ContextConfig = Pick<
  BackendTlsConfig,
  'authorities' | 'authoritiesDigest' | 'certificate' | 'verify'
>

/**
 * TLS 1.2 and 1.3 only (RFC 8996). `value`: of a Secret, by its digest. `systemAuthorities`: those
 * for settings without authorities of their own; undefined takes Node's default.
 */
export function contextOptions(
  config: ContextConfig,
  value: (digest: string) => Uint8Array,
  systemAuthorities: () => string[] | undefined,
): SecureContextOptions {
  const { authorities, authoritiesDigest, certificate, verify } = config
  const text = (digest: string) => Buffer.from(value(digest))
  const given = authoritiesDigest === undefined ? authorities : text(authoritiesDigest)
  const ca = given ?? (verify === 'none' ? undefined : systemAuthorities())
  return {
    minVersion: 'TLSv1.2',
    maxVersion: 'TLSv1.3',
    ...(ca !== undefined && { ca }),
    ...(certificate && { cert: text(certificate.chain), key: text(certificate.key) }),
  }
}

/** Those that the machine trusts, or those that come with Node where it has none. */
export function systemAuthorities(): string[] {
  const found = new Set([...getCACertificates('system'), ...getCACertificates('extra')])
  return found.size > 0 ? [...found] : [...getCACertificates('bundled')]
}
