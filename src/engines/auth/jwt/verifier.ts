/**
 * Verifies tokens of several issuers. The `iss` claim of a token selects the issuer, and its key id
 * selects one of that issuer's keys. Only the key decides which algorithms it may be used with, so
 * a header can choose between trusted keys and nothing else.
 *
 * The claims of a verified token are cached until it expires. The key of the cache is the token itself:
 * V8 finds it by a hash with a random seed, so the time of a search tells nothing about other tokens.
 */
import { constants, createPublicKey, hash, type KeyObject, verify } from 'node:crypto'
import { BoundedMap } from '../../../ground/base/bounded-map.ts'
import type { Algorithm, VerificationKey } from './key-set.ts'
import { type Claims, readToken, type TokenProblem, type UnverifiedToken } from './token.ts'

interface JwtProvider {
  /** If omitted, tokens of any issuer are accepted, provided that one of the keys signed them. */
  readonly issuer?: string
  /** Audiences of which a token must have at least one; if omitted, any audience is accepted. */
  readonly audiences?: readonly string[] | undefined
  /** Whether `client_id` of a token without `aud` is its audience. Default: false. */
  readonly isClientAudience?: boolean | undefined
  /** Claims that a token must have besides `exp`. */
  readonly requiredClaims?: readonly string[] | undefined
  readonly keys: readonly VerificationKey[]
}

/** Maximum accepted clock difference to the issuer. */
const leewayMs = 60_000
/** Maximum number of verified tokens to cache; the oldest is dropped first. */
const maxVerified = 4096
/** Longer tokens are cached under their digest, so that the cache holds at most 4 MB of text. */
const maxKeyLength = 1024

interface ImportedKey {
  readonly kid: string | undefined
  readonly algorithms: readonly Algorithm[]
  readonly key: KeyObject
}

interface Issuer {
  readonly audiences: readonly string[] | undefined
  readonly isClientAudience: boolean
  readonly requiredClaims: readonly string[]
  readonly keys: readonly ImportedKey[]
}

interface VerifiedToken {
  readonly claims: Claims
  readonly validUntilMs: number
}

export class TokenVerifier {
  readonly #issuers = new Map<string, Issuer[]>()
  /** Providers that accept tokens of any issuer. */
  readonly #anyIssuer: Issuer[] = []
  readonly #verified = new BoundedMap<string, VerifiedToken>(maxVerified)

  constructor(providers: readonly JwtProvider[]) {
    for (const one of providers) {
      const { issuer, audiences, isClientAudience = false, requiredClaims = [], keys } = one
      const entry = { audiences, isClientAudience, requiredClaims, keys: keys.flatMap(importKey) }
      if (issuer === undefined) this.#anyIssuer.push(entry)
      else this.#issuers.set(issuer, [...(this.#issuers.get(issuer) ?? []), entry])
    }
  }

  /** Returns the claims of a valid token, or why the token is not valid. */
  verify(text: string, nowMs: number): Claims | TokenProblem {
    const key = text.length <= maxKeyLength ? text : hash('sha256', text, 'base64')
    const known = this.#verified.get(key)
    if (known !== undefined) {
      if (nowMs < known.validUntilMs) return known.claims
      this.#verified.delete(key)
      return 'the token has expired'
    }
    const token = readToken(text)
    if (typeof token === 'string') return token
    const problem = timeProblem(token.claims, nowMs) ?? this.#findProblem(token)
    if (problem !== undefined) return problem
    const { claims } = token
    this.#verified.set(key, { claims, validUntilMs: expiryMs(claims) + leewayMs })
    return claims
  }

  /** Returns undefined if a provider for the token's issuer or for any issuer accepts the token. */
  #findProblem(token: UnverifiedToken): TokenProblem | undefined {
    const { iss } = token.claims
    const issuers = (typeof iss === 'string' ? this.#issuers.get(iss) : undefined) ?? []
    let problem: TokenProblem = 'the token is of an unknown issuer'
    for (const issuer of [...issuers, ...this.#anyIssuer]) {
      const found = problemAt(issuer, token)
      if (found === undefined) return undefined
      problem = found
    }
    return problem
  }
}

/** Converts a JWK to a key object; the list is empty if the values are not a valid key. */
function importKey({ kid, algorithms, jwk }: VerificationKey): ImportedKey[] {
  try {
    return [{ kid, algorithms, key: createPublicKey({ key: { ...jwk }, format: 'jwk' }) }]
  } catch {
    return []
  }
}

const expiryMs = ({ exp }: Claims): number => (typeof exp === 'number' ? exp * 1000 : Number.NaN)

function timeProblem(claims: Claims, nowMs: number): TokenProblem | undefined {
  const expires = expiryMs(claims)
  if (!Number.isFinite(expires)) return 'the token is invalid or malformed'
  if (nowMs >= expires + leewayMs) return 'the token has expired'
  return notYetValid(claims, nowMs)
}

function notYetValid({ nbf }: Claims, nowMs: number): TokenProblem | undefined {
  if (nbf === undefined) return undefined
  if (typeof nbf !== 'number') return 'the token is invalid or malformed'
  return nowMs < nbf * 1000 - leewayMs ? 'the token is not valid yet' : undefined
}

/**
 * Returns why a token without a signature to verify is not valid now, such as one that its issuer describes. `exp` is
 * needed only if it is among the required claims.
 */
export function claimProblem(
  claims: Claims,
  required: readonly string[],
  nowMs: number,
): TokenProblem | undefined {
  const time = claims.exp === undefined ? notYetValid(claims, nowMs) : timeProblem(claims, nowMs)
  return time ?? missingClaim(claims, required)
}

function missingClaim(claims: Claims, required: readonly string[]): TokenProblem | undefined {
  const missing = required.find((name) => !Object.hasOwn(claims, name) || claims[name] === null)
  return missing === undefined ? undefined : `the token has no claim ${missing}`
}

function problemAt(
  { audiences, isClientAudience, requiredClaims, keys }: Issuer,
  token: UnverifiedToken,
): TokenProblem | undefined {
  const key = findKey(token, keys)
  if (typeof key === 'string') return key
  const algorithm = key.algorithms.find(
    (allowed) => allowed === canonicalAlgorithm(token.algorithm),
  )
  if (algorithm === undefined) return 'the token uses an algorithm that its key does not allow'
  if (!isSignedBy(key.key, algorithm, token.signed, token.signature)) {
    return 'the token has no valid signature'
  }
  const { aud, client_id } = token.claims
  const audience = aud === undefined && isClientAudience ? client_id : aud
  if (audiences !== undefined && !isFor(audiences, audience)) {
    return 'the token is for another audience'
  }
  return missingClaim(token.claims, requiredClaims)
}

/** Verifies a signature as RFC 7518 section 3 and RFC 8037 define it. */
function isSignedBy(
  key: KeyObject,
  algorithm: Algorithm,
  signed: Buffer,
  signature: Buffer,
): boolean {
  if (algorithm === 'EdDSA') return verify(null, signed, key, signature)
  const digest = `sha${algorithm.slice(2)}`
  switch (algorithm.slice(0, 2)) {
    case 'RS':
      return verify(digest, signed, key, signature)
    case 'PS': {
      const saltLength = constants.RSA_PSS_SALTLEN_DIGEST
      const padding = constants.RSA_PKCS1_PSS_PADDING
      return verify(digest, signed, { key, padding, saltLength }, signature)
    }
    default:
      return verify(digest, signed, { key, dsaEncoding: 'ieee-p1363' }, signature)
  }
}

/** `Ed25519` is the later name of `EdDSA` (RFC 9864). */
const canonicalAlgorithm = (algorithm: string): string =>
  algorithm === 'Ed25519' ? 'EdDSA' : algorithm

/** Returns the key with the token's `kid`; without one, the only key that allows the token's algorithm. */
function findKey(
  { kid, algorithm }: UnverifiedToken,
  keys: readonly ImportedKey[],
): ImportedKey | TokenProblem {
  const fits = ({ algorithms }: ImportedKey) =>
    algorithms.some((allowed) => allowed === canonicalAlgorithm(algorithm))
  if (kid !== undefined) {
    const withId = keys.filter((key) => key.kid === kid)
    return withId.find(fits) ?? withId[0] ?? 'the token uses an unknown key'
  }
  const [only, ...others] = keys.filter(fits)
  return only !== undefined && others.length === 0
    ? only
    : 'the token header does not specify a `kid`'
}

/** `aud` is one text or a list of them (RFC 7519 section 4.1.3). */
export function isFor(audiences: readonly string[], aud: unknown): boolean {
  const named: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  return named.some((audience) => typeof audience === 'string' && audiences.includes(audience))
}
