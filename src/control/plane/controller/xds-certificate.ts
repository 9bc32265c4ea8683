/** The mounted Secret `sluice-xds-cert`: the server's certificate and key, and its authorities. */
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TlsSource, tlsFiles } from '../../xds/credentials.ts'

const certificatePattern = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

function certificatesOf(text: string): X509Certificate[] {
  return (text.match(certificatePattern) ?? []).map((one) => new X509Certificate(one))
}

/** The authorities (PEM) that proxies are configured to trust. @throws if none can be read */
export function readAuthorities(folder: string): string {
  const path = join(folder, 'ca.crt')
  const text = readFileSync(path, 'utf8')
  if (certificatesOf(text).length === 0) throw new Error(`${path} contains no certificate`)
  return text
}

/**
 * The server's certificate and key, renewed with their files.
 * @throws if they cannot be used, or if there are no authorities, since plaintext is never a fallback
 */
export function servedCertificate(folder: string, onProblem: (text: string) => void): TlsSource {
  try {
    readAuthorities(folder)
    return tlsFiles(join(folder, 'tls.crt'), join(folder, 'tls.key'), { onProblem })
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    const needed = `the Secret sluice-xds-cert with tls.crt, tls.key and ca.crt at ${folder}`
    throw new Error(`configuration over TLS needs ${needed}: ${reason}`, { cause })
  }
}

/**
 * Returns why proxies will refuse the certificate: no authority has signed it, or it is not valid for the
 * host name that they connect to. Returns undefined if they will accept it.
 * @throws if a file cannot be read
 */
export function refusalReason(folder: string, host: string | undefined): string | undefined {
  const path = join(folder, 'tls.crt')
  const [leaf, ...chain] = certificatesOf(readFileSync(path, 'utf8'))
  if (leaf === undefined) return `${path} contains no certificate`
  const authorities = certificatesOf(readAuthorities(folder))
  if (!isTrusted(leaf, chain, authorities)) {
    return `no authority in ${join(folder, 'ca.crt')} has signed ${path}: proxies refuse it`
  }
  if (host === undefined || leaf.checkHost(host) !== undefined) return undefined
  return `${path} is not for ${host}, by which proxies connect: they refuse it`
}

function isTrusted(
  leaf: X509Certificate,
  chain: readonly X509Certificate[],
  authorities: readonly X509Certificate[],
): boolean {
  const isSigner = (issuer: X509Certificate, of: X509Certificate) =>
    of.checkIssued(issuer) && of.verify(issuer.publicKey)
  let current = leaf
  const unused = [...chain]
  for (;;) {
    const child = current
    if (authorities.some((one) => one.raw.equals(child.raw) || isSigner(one, child))) return true
    const at = unused.findIndex((one) => isSigner(one, child))
    const [next] = at < 0 ? [] : unused.splice(at, 1)
    if (next === undefined) return false
    current = next
  }
}
