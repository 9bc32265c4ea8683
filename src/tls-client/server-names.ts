/** Is a certificate that of the server that was meant? (RFC 6125, RFC 9525) */
import type { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { bareHost } from '../base/bare-host.ts'

/**
 * Undefined where the certificate has one of the names as a subject alternative name; else what is
 * wrong. Names are DNS names, addresses or URIs. The subject's common name does not count
 * (RFC 9525 2), and a wildcard stands for one whole label.
 */
export function checkNames(
  certificate: X509Certificate,
  wanted: readonly string[],
): string | undefined {
  const alternatives = parseAlternatives(certificate.subjectAltName ?? '')
  if (wanted.some((name) => hasName(certificate, alternatives, name))) return undefined
  return `the certificate is for ${certificate.subjectAltName ?? 'no name'}, not for ${wanted.join(' or ')}`
}

interface Alternatives {
  readonly dns: readonly string[]
  readonly uris: readonly string[]
}

function hasName(certificate: X509Certificate, { dns, uris }: Alternatives, name: string): boolean {
  if (name.includes('://')) return uris.includes(name)
  const bare = bareHost(name)
  if (isIP(bare) !== 0) return certificate.checkIP(bare) !== undefined
  const host = name.replace(/\.$/, '').toLowerCase()
  if (!host.startsWith('*.')) {
    const options = { subject: 'never', partialWildcards: false } as const
    return certificate.checkHost(host, options) !== undefined
  }
  // A wanted wildcard: the same in the certificate, or a name with one label in its place.
  const suffix = host.slice(1)
  return dns.some((entry) => {
    const label = entry.endsWith(suffix) ? entry.slice(0, -suffix.length) : ''
    return label !== '' && !label.includes('.')
  })
}

/** Node quotes names in which a comma could be mistaken for a separator, as JSON strings. */
function parseAlternatives(text: string): Alternatives {
  const dns: string[] = []
  const uris: string[] = []
  for (const [, type, quoted, bare] of text.matchAll(
    /(?:^|, )(DNS|URI):(?:"((?:[^"\\]|\\.)*)"|([^,]*))/g,
  )) {
    const value = quoted === undefined ? (bare ?? '') : unquote(quoted)
    if (type === 'DNS') dns.push(value.toLowerCase())
    else uris.push(value)
  }
  return { dns, uris }
}

function unquote(text: string): string {
  try {
    return String(JSON.parse(`"${text}"`))
  } catch {
    return ''
  }
}
