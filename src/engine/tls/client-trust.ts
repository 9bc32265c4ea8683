/**
 * Is a client whose session is taken up again still whom it was proven to be? OpenSSL looks at
 * certificates in full handshakes only; a ticket brings back the client's own certificate and the
 * verdict of then, without the certificates between it and an authority.
 */
import { X509Certificate } from 'node:crypto'
import { pemCertificates } from '../../model/certificates.ts'

/** Longest way from a client up to a root among the authorities. */
const mostSteps = 8

/** The authorities that a listener believes, as they were when it was configured. */
export class ClientTrust {
  readonly #pem: readonly (string | Uint8Array)[]
  #authorities: readonly X509Certificate[] | undefined

  /** `authorities`: in PEM, any number in each. */
  constructor(authorities: readonly (string | Uint8Array)[]) {
    this.#pem = authorities
  }

  /**
   * Whether a certificate that has been verified once would not fail by its dates at `now`
   * (milliseconds since 1970): itself, and the authorities above it. Where an intermediate that the
   * client had sent stands between, one of the authorities must be good; the ticket's lifetime
   * bounds what that lets through.
   */
  stillHolds(leaf: X509Certificate, now: number): boolean {
    if (!isCurrent(leaf, now)) return false
    this.#authorities ??= this.#pem.flatMap(parse)
    const above = this.#issuersOf(leaf)
    if (above.length === 0) return this.#authorities.some((one) => isCurrent(one, now))
    return above.some((issuer) => this.#isGood(issuer, now, mostSteps))
  }

  /** An authority and those above it, as far as they are listed. */
  #isGood(authority: X509Certificate, now: number, steps: number): boolean {
    if (steps === 0 || !isCurrent(authority, now)) return false
    if (authority.subject === authority.issuer) return true
    const above = this.#issuersOf(authority)
    return above.length === 0 || above.some((one) => this.#isGood(one, now, steps - 1))
  }

  #issuersOf(certificate: X509Certificate): X509Certificate[] {
    const all = this.#authorities ?? []
    // Names may be shared, keys are not.
    return all.filter((one) => certificate.checkIssued(one) && certificate.verify(one.publicKey))
  }
}

function isCurrent({ validFromDate, validToDate }: X509Certificate, now: number): boolean {
  return validFromDate.getTime() <= now && now <= validToDate.getTime()
}

function parse(pem: string | Uint8Array): X509Certificate[] {
  const text = typeof pem === 'string' ? pem : Buffer.from(pem).toString('latin1')
  return pemCertificates(text).map((block) => new X509Certificate(block))
}
