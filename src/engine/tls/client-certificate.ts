/** What a client's certificate says, read once per connection when first needed. */
import type { X509Certificate } from 'node:crypto'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { PeerCertificate } from '../../exchange/exchange.ts'

const known = new WeakMap<Socket, PeerCertificate>()

/** Undefined for plaintext, without a certificate, and for one that no CA of the listener vouches for. */
export function certificateOf(socket: Socket): PeerCertificate | undefined {
  if (!(socket instanceof TLSSocket) || !socket.authorized) return undefined
  let facts = known.get(socket)
  if (facts === undefined) {
    const certificate = socket.getPeerX509Certificate()
    if (certificate === undefined) return undefined
    facts = readCertificate(certificate)
    known.set(socket, facts)
  }
  return facts
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

/** Node writes one attribute a line. */
const oneLine = (name: string | undefined) => (name ?? '').split('\n').join(', ')

/**
 * `DNS:a, URI:b, IP Address:c`; a value with characters that could be mistaken is a JSON text.
 * Names of other kinds (directory names, other names) are left out.
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
