/** Tokens that are bound to a key of the client (RFC 7800): a stolen token is useless without the key. */
import { hash, X509Certificate } from 'node:crypto'
import type { Claims } from '../../engines/auth/jwt/token.ts'
import { isObject } from '../../ground/base/json-object.ts'
import type { PeerCertificate } from '../../ground/exchange/exchange.ts'

/** What a token is bound to; empty for a bearer token. */
interface Binding {
  /** Digest of the client certificate (RFC 8705 section 3.1). */
  readonly certificate?: unknown
  /** Thumbprint of the key that signs proofs (RFC 9449 section 6.1). */
  readonly proofKey?: unknown
  /** Whether it is bound to something that the gateway cannot check. */
  readonly isOther?: true
}

const bearer: Binding = {}

export function bindingOf({ cnf }: Claims): Binding {
  if (cnf === undefined) return bearer
  if (!isObject(cnf)) return { isOther: true }
  const { 'x5t#S256': certificate, jkt: proofKey, ...others } = cnf
  return {
    ...(certificate !== undefined && { certificate }),
    ...(proofKey !== undefined && { proofKey }),
    ...(Object.keys(others).length > 0 && { isOther: true }),
  }
}

/** Returns why the connection is not that of the token's client; undefined if it is, or if any client may use the token. */
export function certificateProblem(
  { certificate, isOther }: Binding,
  peer: PeerCertificate | undefined,
): string | undefined {
  if (isOther) return 'the token is bound to a key in a way that is not supported'
  if (certificate === undefined) return undefined
  if (peer === undefined) return 'the token needs the client certificate that it is bound to'
  return thumbprintOf(peer) === certificate
    ? undefined
    : 'the token is bound to another client certificate'
}

/** The digests of certificates, which are read once per connection. */
const thumbprints = new WeakMap<PeerCertificate, string>()

function thumbprintOf(peer: PeerCertificate): string {
  let found = thumbprints.get(peer)
  if (found === undefined) {
    found = hash('sha256', new X509Certificate(peer.pem).raw, 'base64url')
    thumbprints.set(peer, found)
  }
  return found
}
