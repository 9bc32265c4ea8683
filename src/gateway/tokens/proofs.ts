/**
 * Proofs that a client has the key of its token (DPoP, RFC 9449). The key of a proof is compared with the token before
 * its signature is verified, so that only the owner of a valid token can make the gateway verify.
 */
import { hash } from 'node:crypto'
import type * as Jose from 'jose'
import type { Exchange } from '../../ground/exchange/exchange.ts'
import type { PolicyHost, RateBucket } from '../../ground/exchange/rate-limits.ts'
import { Seal } from '../../ground/secrets/seal.ts'

let library: Promise<typeof Jose> | undefined

/** Loads it with the first proof, so that proxies without bound tokens do not need its memory. */
function load(): Promise<typeof Jose> {
  library ??= import('jose')
  return library
}

/** Algorithms of proofs. All are asymmetric. */
export const proofAlgorithms = ['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519', 'PS256', 'RS256']

/** `full`: the memory for proofs is exhausted. `nonce`: the client must use the nonce of the gateway. */
export type ProofProblem = 'full' | 'nonce' | { readonly why: string }

/** Maximum length of a proof in characters. */
const maxLength = 4_096
/** Maximum length of `jti` in characters. */
const maxIdLength = 256
/**
 * How old a proof may be, and how far ahead the clock of the client may be, in seconds. Together they must be shorter
 * than a minute, which is how long an id is remembered.
 */
const maxAge = 40
const maxAhead = 15
/** A nonce is valid for this time and for as long again, which together is shorter than a minute, too. */
const nonceMs = 25_000

export class Proofs {
  readonly #host: PolicyHost
  /** One unit per proof and minute, shared by all workers of the proxy. */
  readonly #used: RateBucket
  readonly #needsNonce: boolean
  #seal: { readonly key: Uint8Array; readonly seal: Seal } | undefined
  #nonces:
    | { readonly period: number; readonly key: Uint8Array; readonly valid: readonly string[] }
    | undefined

  constructor(host: PolicyHost, needsNonce: boolean) {
    this.#host = host
    this.#used = host.policyBucket('proofs', { rate: 1, unit: 'Minutes', burst: 0, isKeyed: true })
    this.#needsNonce = needsNonce
  }

  /** Resolves to why the request has no valid proof of the key with this thumbprint; undefined if it has one. */
  async check(exchange: Exchange, token: string, key: unknown): Promise<ProofProblem | undefined> {
    const proof = exchange.request.headers.lines('dpop')
    if (proof === undefined) return problem('the token needs a proof of its key in the header DPoP')
    if (typeof proof !== 'string' || proof.length > maxLength) {
      return problem('the proof is malformed')
    }
    const verified = await verify(proof, key)
    if ('why' in verified) return verified
    const { payload } = verified
    const { jti, htm, htu, ath } = payload
    if (htm !== exchange.request.method) return problem('the proof is for another method')
    if (!isUrlOf(exchange.request, htu)) return problem('the proof is for another URL')
    if (ath !== hash('sha256', token, 'base64url')) return problem('the proof is for another token')
    return this.#timeProblem(payload) ?? this.#use(key, jti)
  }

  #timeProblem({ iat, nonce }: Payload): ProofProblem | undefined {
    if (typeof iat !== 'number') return problem('the proof has no time')
    if (this.#needsNonce) {
      const valid = this.nonces()
      return valid?.includes(String(nonce)) === true ? undefined : 'nonce'
    }
    const age = Date.now() / 1_000 - iat
    return age <= maxAge && -age <= maxAhead ? undefined : problem('the proof is not of this time')
  }

  /** A proof can be used once. */
  #use(key: unknown, jti: unknown): ProofProblem | undefined {
    if (typeof jti !== 'string' || jti === '' || jti.length > maxIdLength) {
      return problem('the proof has no usable id')
    }
    if (this.#used.take(1, hash('sha256', `${key} ${jti}`, 'base64url'))) return undefined
    return this.#used.isTableFull ? 'full' : problem('the proof was used before')
  }

  /** Returns the nonces that are valid now, the current one first; undefined until the key of the gateway has arrived. */
  nonces(): readonly string[] | undefined {
    const key = this.#host.sessionKey?.()
    if (key === undefined) return undefined
    const period = Math.floor(Date.now() / nonceMs)
    if (this.#nonces?.period !== period || this.#nonces.key !== key) {
      if (this.#seal?.key !== key) this.#seal = { key, seal: new Seal('sluice dpop nonces', key) }
      const { seal } = this.#seal
      // The same on every replica. Clients cannot foresee the next one.
      const valid = [period, period - 1].map((one) => seal.sealSame(String(one), this.#host.policy))
      this.#nonces = { period, key, valid }
    }
    return this.#nonces.valid
  }

  /** The nonce for the next request, if clients need one. */
  get nextNonce(): string | undefined {
    return this.#needsNonce ? this.nonces()?.[0] : undefined
  }
}

type Payload = Readonly<Record<string, unknown>>

const problem = (why: string): { readonly why: string } => ({ why })

async function verify(
  proof: string,
  key: unknown,
): Promise<{ readonly payload: Payload } | { readonly why: string }> {
  const { calculateJwkThumbprint, decodeProtectedHeader, EmbeddedJWK, jwtVerify } = await load()
  try {
    const { jwk } = decodeProtectedHeader(proof)
    if (jwk === undefined || (await calculateJwkThumbprint(jwk, 'sha256')) !== key) {
      return problem('the proof is signed with another key than that of the token')
    }
    const options = { typ: 'dpop+jwt', algorithms: proofAlgorithms, clockTolerance: maxAhead }
    return await jwtVerify(proof, EmbeddedJWK, options)
  } catch {
    return problem('the proof is malformed or has no valid signature')
  }
}

/**
 * Compares the URL of a proof with that of the request, without query and fragment (RFC 9449 section 4.3). TLS may end
 * before the gateway, so a plaintext connection may be a part of an `https` one.
 */
function isUrlOf({ scheme, authority, path }: Exchange['request'], htu: unknown): boolean {
  const stated = typeof htu === 'string' ? URL.parse(htu) : null
  if (stated === null) return false
  const isSecure = stated.protocol === 'https:'
  if (!isSecure && (scheme === 'https' || stated.protocol !== 'http:')) return false
  const own = URL.parse(`${stated.protocol}//${authority}${path}`)
  return own !== null && own.host === stated.host && plain(own.pathname) === plain(stated.pathname)
}

/** Decodes escapes that are not needed (RFC 3986 section 6.2.2). */
const plain = (path: string): string =>
  path.replace(/%[0-9a-f]{2}/gi, (triplet) => {
    const character = String.fromCharCode(Number.parseInt(triplet.slice(1), 16))
    return /[\w.~-]/.test(character) ? character : triplet.toUpperCase()
  })
