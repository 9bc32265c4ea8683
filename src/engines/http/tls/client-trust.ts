/**
 * Checks the certificates of clients that resume a session. OpenSSL verifies certificates only in full
 * handshakes; a ticket brings back the client's own certificate and the earlier verdict, without the
 * certificates between it and an authority.
 */
import { X509Certificate } from 'node:crypto'
import { pemCertificates } from '../../../ground/model/certificates.ts'

/** Maximum number of steps from a client up to a root among the authorities. */
const maxSteps = 8

/** The authorities that a listener trusts. */
export class ClientTrust {
  readonly #pem: readonly (string | Uint8Array)[]
  #authorities: readonly X509Certificate[] | undefined

  /** `authorities` are PEM texts with any number of certificates each. */
  constructor(authorities: readonly (string | Uint8Array)[]) {
    this.#pem = authorities
  }

  /**
   * Whether a certificate that was verified before, and the authorities above it, are current at `now`
   * (milliseconds since 1970). If the client had sent an intermediate certificate, any current authority
   * is enough; the lifetime of tickets limits how long that can matter.
   */
  stillHolds(leaf: X509Certificate, now: number): boolean {
    if (!isCurrent(leaf, now)) return false
    this.#authorities ??= this.#pem.flatMap(parse)
    const issuers = this.#issuersOf(leaf)
    if (issuers.length === 0) return this.#authorities.some((one) => isCurrent(one, now))
    return issuers.some((issuer) => this.#isGood(issuer, now, maxSteps))
  }

  /** Whether an authority and its issuers in the list are current. */
  #isGood(authority: X509Certificate, now: number, steps: number): boolean {
    if (steps === 0 || !isCurrent(authority, now)) return false
    if (authority.subject === authority.issuer) return true
    const issuers = this.#issuersOf(authority)
    return issuers.length === 0 || issuers.some((one) => this.#isGood(one, now, steps - 1))
  }

  #issuersOf(certificate: X509Certificate): X509Certificate[] {
    const all = this.#authorities ?? []
    // Two authorities may have the same name, so the signature is verified with the key as well.
    return all.filter((one) => certificate.checkIssued(one) && certificate.verify(one.publicKey))
  }
}

function isCurrent({ validFrom, validTo }: X509Certificate, now: number): boolean {
  // A text that is not a date gives NaN, so that the certificate is refused.
  return Date.parse(validFrom) <= now && now <= Date.parse(validTo)
}

function parse(pem: string | Uint8Array): X509Certificate[] {
  const text = typeof pem === 'string' ? pem : Buffer.from(pem).toString('latin1')
  return pemCertificates(text).map((block) => new X509Certificate(block))
}
