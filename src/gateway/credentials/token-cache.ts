/**
 * Tokens by the digest of everything that they were requested with. A token in use is requested again before it
 * expires, once, while requests go on with the old one. Failures are kept for seconds only.
 */
import { hash } from 'node:crypto'
import type { Claims } from '../../engines/auth/jwt/token.ts'
import { BoundedMap } from '../../ground/base/bounded-map.ts'
import { isRevoked, refused } from '../tokens/refused.ts'
import type { CacheConfig } from './config.ts'
import { TokenError, unavailable } from './token-error.ts'

/** A credential as it was issued: a token, or the keys of a role. */
export interface Issued<Value> {
  readonly value: Value
  /** Lifetime in seconds; undefined if it is not known. */
  readonly expiresIn: number | undefined
}

/** A token to request, unless it is known. */
export interface TokenRequest<Value = string> {
  /** All that decides which token it is, such as the whole token of the user. */
  readonly key: string
  /** When the token of the user expires, in milliseconds since the epoch; infinite if it is not known. */
  endsAt(): number
  /** Claims of the user tokens that the request is made with; empty if it is not for a user. */
  claims(): readonly Claims[]
  /** Rejects with a TokenError. */
  send(): Promise<Issued<Value>>
}

/** A token that may be used. Times are in milliseconds of `performance.now()`. */
export interface CachedToken<Value = string> {
  readonly value: Value
  /** Digest of its request. */
  readonly digest: string
  /** Claims of the user tokens that it was issued for. */
  readonly claims: readonly Claims[]
  readonly at: number
  readonly until: number
  readonly renewAt: number
}

interface Failure {
  readonly error: TokenError
  readonly until: number
}

/** Part of the lifetime after which a token in use is requested again. */
const renewalPart = 0.8
/** A token is not used in the last part of its lifetime, at most for this time. */
const maxMarginMs = 10_000
const marginPart = 0.1
/** How long failures are kept: an outage shorter than a decision of the server. */
const outageMs = 1_000
const refusalMs = 5_000
const maxFailures = 1_024
/** Requests under way at once; further tokens are unavailable. */
const maxRequests = 256
/**
 * A token that is younger than this time, or than this part of its lifetime, is not dropped, so that a backend that
 * refuses every token does not cause many requests.
 */
const minAgeMs = 10_000
const minAgePart = 0.05

export class TokenCache<Value = string> {
  readonly #config: CacheConfig
  readonly #tokens: BoundedMap<string, CachedToken<Value>>
  /** Apart from tokens, so that requests with invented tokens do not displace them. */
  readonly #failures = new BoundedMap<string, Failure>(maxFailures)
  readonly #pending = new Map<string, Promise<CachedToken<Value>>>()
  /** The version of the list of revocations that was last applied. */
  #revocations = 0

  constructor(config: CacheConfig) {
    this.#config = config
    this.#tokens = new BoundedMap(Math.max(1, config.maxEntries))
  }

  /** Returns a token that is known, or else a promise of one. The promise rejects with a TokenError. */
  get(request: TokenRequest<Value>): CachedToken<Value> | Promise<CachedToken<Value>> {
    const digest = hash('sha256', request.key, 'base64')
    const now = performance.now()
    if (this.#revocations !== refused.version) this.#removeRevoked()
    const found = this.#tokens.get(digest)
    if (found !== undefined && now < found.until) {
      if (now >= found.renewAt && this.#failureOf(digest, now) === undefined) {
        this.#request(request, digest).catch(() => undefined)
      }
      return found
    }
    if (found !== undefined) this.#tokens.delete(digest)
    const failure = this.#failureOf(digest, now)
    return failure === undefined ? this.#request(request, digest) : Promise.reject(failure.error)
  }

  /** Called if the backend has refused the token. */
  drop({ digest, value, at, until }: CachedToken<Value>): void {
    if (performance.now() < at + Math.min(minAgeMs, (until - at) * minAgePart)) return
    if (this.#tokens.get(digest)?.value === value) this.#tokens.delete(digest)
  }

  /** Removes tokens that were issued for user tokens that are revoked now. */
  #removeRevoked(): void {
    this.#revocations = refused.version
    for (const [digest, { claims }] of this.#tokens) {
      if (claims.some((one) => isRevoked(one))) this.#tokens.delete(digest)
    }
  }

  #failureOf(digest: string, now: number): Failure | undefined {
    const failure = this.#failures.get(digest)
    return failure !== undefined && now < failure.until ? failure : undefined
  }

  #request(request: TokenRequest<Value>, digest: string): Promise<CachedToken<Value>> {
    if (this.#config.maxEntries === 0) {
      return request.send().then((issued) => this.#keep(request, digest, issued))
    }
    const running = this.#pending.get(digest)
    if (running !== undefined) return running
    if (this.#pending.size >= maxRequests) {
      return Promise.reject(unavailable('too many tokens are requested at the same time'))
    }
    const pending = request
      .send()
      .then(
        (issued) => this.#keep(request, digest, issued),
        (error: unknown) => {
          if (error instanceof TokenError) this.#noteFailure(digest, error)
          throw error
        },
      )
      .finally(() => this.#pending.delete(digest))
    this.#pending.set(digest, pending)
    return pending
  }

  #keep(
    request: TokenRequest<Value>,
    digest: string,
    { value, expiresIn }: Issued<Value>,
  ): CachedToken<Value> {
    const { maxEntries, defaultMs } = this.#config
    const at = performance.now()
    const ownMs = expiresIn === undefined ? defaultMs : expiresIn * 1_000
    const leftMs = request.endsAt() - Date.now()
    const lifeMs = Math.max(0, Math.min(ownMs, leftMs))
    const until = at + lifeMs - Math.min(maxMarginMs, lifeMs * marginPart)
    // After the user's token has expired, there will be another one.
    const renewAt = leftMs <= ownMs ? Number.POSITIVE_INFINITY : at + lifeMs * renewalPart
    const claims = request.claims()
    const kept = { value, digest, claims, at, until, renewAt }
    if (maxEntries > 0 && until > at) this.#tokens.set(digest, kept)
    return kept
  }

  #noteFailure(digest: string, error: TokenError): void {
    const keptMs = error.kind === 'unavailable' ? outageMs : refusalMs
    this.#failures.set(digest, { error, until: performance.now() + keptMs })
  }
}
