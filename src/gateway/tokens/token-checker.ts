/** Finds out whether a token is valid: with the keys of its issuer, or by asking the issuer. */
import { type Claims, readToken } from '../../engines/auth/jwt/token.ts'
import { TokenVerifier } from '../../engines/auth/jwt/verifier.ts'
import type { Callouts, SecretValues } from '../../ground/exchange/exchange.ts'
import { clientSecretText } from './client-secret-text.ts'
import { type Answer, Introspection } from './introspection.ts'
import { isRevoked, revokedText } from './refused.ts'
import type { TokenIssuer } from './token-issuer.ts'

export class TokenChecker {
  readonly #verifier: TokenVerifier
  readonly #introspection: Introspection | undefined
  /** The issuer of `introspection`. */
  readonly #issuer: string | undefined

  /** Throws if the client secret for introspection has not arrived. */
  constructor(issuers: readonly TokenIssuer[], callouts: Callouts, secrets: SecretValues) {
    this.#verifier = new TokenVerifier(issuers.filter((one) => one.introspection === undefined))
    const asked = issuers.find(({ introspection }) => introspection !== undefined)
    if (asked?.introspection === undefined) return
    const { issuer = '', introspection } = asked
    const secret = clientSecretText(introspection.clientSecret, secrets)
    this.#issuer = issuer
    this.#introspection = new Introspection(introspection, { ...asked, issuer }, secret, callouts)
  }

  check(token: string): Answer | Promise<Answer> {
    if (this.#introspection === undefined || !this.#isAskedAbout(token)) {
      return answerOf(this.#verifier.verify(token, Date.now()))
    }
    const answer = this.#introspection.find(token)
    const check = (found: Answer) =>
      'claims' in found ? answerOf(found.claims, this.#issuer) : found
    return answer instanceof Promise ? answer.then(check) : check(answer)
  }

  /** A token that names an issuer is sent to no other one. */
  #isAskedAbout(token: string): boolean {
    const read = readToken(token)
    if (typeof read === 'string') return true
    const { iss } = read.claims
    return iss === undefined || iss === this.#issuer
  }
}

function answerOf(verified: Claims | string, issuer?: string): Answer {
  if (typeof verified === 'string') return { problem: verified }
  return isRevoked(verified, issuer) ? { problem: revokedText } : { claims: verified }
}
