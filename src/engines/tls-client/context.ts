import { getCACertificates, type SecureContextOptions } from 'node:tls'
import type { BackendTlsConfig } from '../../ground/model/backend-tls.ts'

type ContextConfig = Pick<
  BackendTlsConfig,
  'authorities' | 'authoritiesDigest' | 'certificate' | 'verify'
>

/**
 * Returns options for TLS 1.2 and 1.3 only (RFC 8996). `value` returns the content of a Secret by its
 * digest. `systemAuthorities` returns the authorities for settings without their own; if it returns
 * undefined, Node's default applies.
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

/** Returns the authorities that the machine trusts, or those of Node if it has none. */
export function systemAuthorities(): string[] {
  const found = new Set([...getCACertificates('system'), ...getCACertificates('extra')])
  return found.size > 0 ? [...found] : [...getCACertificates('bundled')]
}
