/**
 * TLS connections to backends, for requests and for fetches of the control plane, which follow the
 * same policies.
 */
import { X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import type { ConnectionOptions, SecureContext } from 'node:tls'
import { bareHost } from '../../ground/base/bare-host.ts'
import type { VerifyMode } from '../../ground/model/backend-tls.ts'

/** How to verify the server. */
interface ServerIdentity {
  /** Server name that is sent (RFC 6066 3); empty if the server is only known by its address. */
  readonly serverName: string
  /** Whether the certificate chain must lead to a trusted authority. */
  readonly requiresTrust: boolean
  /** Returns undefined if the certificate names the server, otherwise why it does not. */
  readonly checkName: (certificate: X509Certificate) => string | undefined
}

/** TLS to one server. */
export interface ClientTls extends ServerIdentity {
  readonly context: SecureContext
  /** Application protocols to offer (ALPN, RFC 7301). */
  readonly alpn: readonly string[]
}

interface IdentitySettings {
  readonly verify: VerifyMode
  /** Server name that is sent (SNI); if not set, the host. */
  readonly serverName?: string | undefined
  /** Names of which the certificate must have one; if not set, the server name. */
  readonly names?: readonly string[] | undefined
}

/** `host` is the name of the destination, which is sent and verified unless settings name another. */
export function serverIdentity(settings: IdentitySettings, host: string): ServerIdentity {
  const { verify, serverName = host, names = [serverName] } = settings
  return {
    // RFC 6066 3: an address is not sent, and a name is sent without a trailing dot.
    serverName: isIP(serverName) === 0 ? serverName.replace(/\.$/, '') : '',
    requiresTrust: verify !== 'none',
    checkName: (certificate) => (verify === 'full' ? checkNames(certificate, names) : undefined),
  }
}

export function handshakeOptions(tls: ClientTls): ConnectionOptions {
  return {
    secureContext: tls.context,
    servername: tls.serverName,
    ALPNProtocols: [...tls.alpn],
    rejectUnauthorized: tls.requiresTrust,
    checkServerIdentity: (_host, { raw }) => {
      const problem = tls.checkName(new X509Certificate(raw))
      return problem === undefined ? undefined : new Error(problem)
    },
  }
}

/**
 * Returns undefined if the certificate has one of the names as a subject alternative name, otherwise
 * the problem. Names are DNS names, addresses or URIs. The subject's common name is ignored (RFC 9525
 * 2), and a wildcard matches one whole label.
 */
function checkNames(certificate: X509Certificate, wanted: readonly string[]): string | undefined {
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
  // The wanted name is a wildcard: it matches the same wildcard, or a name with one label in its
  // place.
  const suffix = host.slice(1)
  return dns.some((entry) => {
    const label = entry.endsWith(suffix) ? entry.slice(0, -suffix.length) : ''
    return label !== '' && !label.includes('.')
  })
}

/** Parses Node's text form of the names, in which names with separators are JSON strings. */
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
