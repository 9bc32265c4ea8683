/** The contents of client certificates, which are read once per connection when first needed. */
import type { X509Certificate } from 'node:crypto'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { PeerCertificate } from '../../../ground/exchange/exchange.ts'

const known = new WeakMap<Socket, PeerCertificate>()

/** Returns undefined in plaintext, without a certificate, or if no CA of the listener has verified it. */
export function certificateOf(socket: Socket): PeerCertificate | undefined {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined
  let details = known.get(socket)
  if (details === undefined) {
    const certificate = socket.getPeerX509Certificate()
    if (certificate === undefined) return undefined
    details = readCertificate(certificate)
    known.set(socket, details)
  }
  return details
}

function readCertificate(certificate: X509Certificate): PeerCertificate {
  const { subject, issuer, subjectAltName } = certificate
  const subjectAltNames = readNames(subjectAltName ?? '')
  return {
    pem: certificate.toString(),
    subject: oneLine(subject),
    issuer: oneLine(issuer),
    subjectCn: /^CN=(.*)$/m.exec(subject ?? '')?.[1],
    subjectAltNames,
    spiffeId: subjectAltNames.find((name) => name.startsWith('spiffe://')),
  }
}

/** Joins the attributes of a name, of which Node writes one per line. */
const oneLine = (name: string | undefined) => (name ?? '').split('\n').join(', ')

/**
 * Reads names such as `DNS:a, URI:b, IP Address:c`; values with ambiguous characters are JSON strings.
 * Names of other kinds (directory names, other names) are omitted.
 */
function readNames(text: string): string[] {
  const names: string[] = []
  for (const match of text.matchAll(/(?:^|, )([A-Za-z ]+):("(?:[^"\\]|\\.)*"|[^,]*)/gy)) {
    const [, kind = '', value = ''] = match
    if (!nameKinds.has(kind)) continue
    names.push(value.startsWith('"') ? (JSON.parse(value) as string) : value)
  }
  return names
}

const nameKinds = new Set(['DNS', 'URI', 'email', 'IP Address'])
