/**
 * Verifies tokens of several issuers. The issuer is found by what the token claims, then the key by
 * its id among that issuer's own; the key alone says with which algorithms it may be used. So a
 * header can choose between keys that are trusted already, and nothing else.
 *
 * A token that has been verified is remembered by its digest until it expires.
 */
import { hash, type KeyObject } from 'node:crypto'
import type { Algorithm, VerificationKey } from './key-set.ts'
import { importKey, isSignedBy } from './signature.ts'
import { type Claims, readToken, type TokenProblem, type UnverifiedToken } from './token.ts'

export interface JwtProvider {
  /** Absent: whoever the token says has issued it, as long as one of the keys has signed it. */
  readonly issuer?: string
  /** The token must be for one of them; absent: for anybody. */
  readonly audiences?: readonly string[]
  readonly keys: readonly VerificationKey[]
}

/** How far clocks may differ. */
const leewayMs = 60_000
/** Tokens that are remembered; the oldest goes first. */
const maxKept = 4096

interface ImportedKey {
  readonly kid: string | undefined
  readonly algorithms: readonly Algorithm[]
  readonly key: KeyObject
}

interface Issuer {
  readonly audiences: ReadonlySet<string> | undefined
  readonly keys: readonly ImportedKey[]
}

interface Kept {
  readonly claims: Claims
  readonly goodUntilMs: number
}

export class TokenVerifier {
  readonly #issuers = new Map<string, Issuer[]>()
  /** Those whose name does not matter. */
  readonly #anyIssuer: Issuer[] = []
  readonly #kept = new Map<string, Kept>()

  constructor(providers: readonly JwtProvider[]) {
    for (const { issuer, audiences, keys } of providers) {
      const made = { audiences: audiences && new Set(audiences), keys: keys.flatMap(imported) }
      if (issuer === undefined) this.#anyIssuer.push(made)
      else this.#issuers.set(issuer, [...(this.#issuers.get(issuer) ?? []), made])
    }
  }

  /** The claims of a token that counts, or why it does not. */
  verify(text: string, nowMs: number): Claims | TokenProblem {
    const digest = hash('sha256', text, 'base64')
    const kept = this.#kept.get(digest)
    if (kept !== undefined) {
      if (nowMs < kept.goodUntilMs) return kept.claims
      this.#kept.delete(digest)
      return 'the token has expired'
    }
    const token = readToken(text)
    if (typeof token === 'string') return token
    const problem = timeProblem(token.claims, nowMs) ?? this.#judge(token)
    if (problem !== undefined) return problem
    this.#keep(digest, token.claims)
    return token.claims
  }

  #keep(digest: string, claims: Claims): void {
    if (this.#kept.size >= maxKept) {
      const [oldest] = this.#kept.keys()
      if (oldest !== undefined) this.#kept.delete(oldest)
    }
    this.#kept.set(digest, { claims, goodUntilMs: expiryMs(claims) + leewayMs })
  }

  /** Undefined where one of the providers of its issuer takes the token. */
  #judge(token: UnverifiedToken): TokenProblem | undefined {
    const { iss } = token.claims
    const named = (typeof iss === 'string' ? this.#issuers.get(iss) : undefined) ?? []
    let problem: TokenProblem = 'the token is of an unknown issuer'
    for (const issuer of [...named, ...this.#anyIssuer]) {
      const found = judge(token, issuer)
      if (found === undefined) return undefined
      problem = found
    }
    return problem
  }
}

function imported({ kid, algorithms, jwk }: VerificationKey): ImportedKey[] {
  const key = importKey(jwk)
  return key === undefined ? [] : [{ kid, algorithms, key }]
}

const expiryMs = ({ exp }: Claims): number => (typeof exp === 'number' ? exp * 1000 : Number.NaN)

function timeProblem(claims: Claims, nowMs: number): TokenProblem | undefined {
  const { nbf } = claims
  const expires = expiryMs(claims)
  if (!Number.isFinite(expires)) return 'the token is invalid or malformed'
  if (nowMs >= expires + leewayMs) return 'the token has expired'
  if (nbf === undefined) return undefined
  if (typeof nbf !== 'number') return 'the token is invalid or malformed'
  return nowMs < nbf * 1000 - leewayMs ? 'the token is not valid yet' : undefined
}

function judge(token: UnverifiedToken, { audiences, keys }: Issuer): TokenProblem | undefined {
  const key = findKey(token, keys)
  if (typeof key === 'string') return key
  const algorithm = key.algorithms.find((allowed) => allowed === named(token.algorithm))
  if (algorithm === undefined) return 'the token uses an algorithm that its key does not allow'
  if (!isSignedBy(key.key, algorithm, token.signed, token.signature)) {
    return 'the token has no valid signature'
  }
  return audiences === undefined || isFor(audiences, token.claims.aud)
    ? undefined
    : 'the token is for another audience'
}

/** RFC 9864 gave the only algorithm that `EdDSA` stands for here a name of its own. */
const named = (algorithm: string): string => (algorithm === 'Ed25519' ? 'EdDSA' : algorithm)

/** By its id; a token that names none has the one key that fits, if there is exactly one. */
function findKey(
  { kid, algorithm }: UnverifiedToken,
  keys: readonly ImportedKey[],
): ImportedKey | TokenProblem {
  if (kid !== undefined) {
    const withId = keys.filter((key) => key.kid === kid)
    const fitting = withId.find(({ algorithms }) => has(algorithms, algorithm))
    return fitting ?? withId[0] ?? 'the token uses an unknown key'
  }
  const [only, ...others] = keys.filter(({ algorithms }) => has(algorithms, algorithm))
  return only !== undefined && others.length === 0
    ? only
    : 'the token header does not specify a `kid`'
}

function has(algorithms: readonly Algorithm[], algorithm: string): boolean {
  return algorithms.some((allowed) => allowed === named(algorithm))
}

/** `aud` is one text or a list of them (RFC 7519 section 4.1.3). */
function isFor(audiences: ReadonlySet<string>, aud: unknown): boolean {
  const named: readonly unknown[] = Array.isArray(aud) ? aud : [aud]
  return named.some((audience) => typeof audience === 'string' && audiences.has(audience))
}
