/** The step that adds a token which the gateway gets by a grant. */
import { GatewayError } from '../../ground/errors/index.ts'
import {
  type Exchange,
  type HeaderFields,
  next,
  type Verdict,
} from '../../ground/exchange/exchange.ts'
import type { GrantConfig } from './config.ts'
import { type ProofKey, Prover } from './dpop.ts'
import type { Grant } from './grants.ts'
import { type Placement, placementOf } from './placement.ts'
import { demandClaims, refuseUser } from './sent-token.ts'
import { type CachedToken, TokenCache } from './token-cache.ts'
import { TokenError } from './token-error.ts'

let steps = 0

export class GrantStep {
  readonly #grant: Grant
  readonly #cache: TokenCache
  readonly #place: Placement
  /** The token that the request was sent with. */
  readonly #used = `credentials.used.${steps++}`

  readonly #key: ProofKey | undefined
  readonly #prover = new Prover()

  /** `key` is the key of all tokens of the grant; undefined if they are not bound to a key. */
  constructor(
    grant: Grant,
    { cache, location }: Pick<GrantConfig, 'cache' | 'location'>,
    key?: ProofKey,
  ) {
    this.#key = key
    this.#grant = grant
    this.#cache = new TokenCache(cache)
    this.#place = placementOf(location)
  }

  onRequest(exchange: Exchange): Verdict | Promise<Verdict> {
    const wanted = this.#grant(exchange)
    if ('kind' in wanted) return wanted
    const found = this.#cache.get(wanted)
    return found instanceof Promise
      ? found.then((token) => this.#use(exchange, token), toVerdict)
      : this.#use(exchange, found)
  }

  #use(exchange: Exchange, found: CachedToken): Verdict | Promise<Verdict> {
    exchange.extensions.set(this.#used, found)
    const { value } = found
    if (this.#key === undefined) {
      this.#place(exchange.request, value)
      return next
    }
    this.#place(exchange.request, `DPoP ${value}`)
    return this.#prover.prove(exchange, this.#key, value).then(() => next)
  }

  onBackendResponse(
    exchange: Exchange,
    status: number,
    headers: Pick<HeaderFields, 'get' | 'getAll' | 'remove'>,
  ): boolean {
    if (this.#key !== undefined && this.#prover.learn(exchange, status, headers)) return true
    if (status !== 401) return false
    // The server may have revoked the token, so that the next request gets another one.
    const used = exchange.extensions.get(this.#used) as CachedToken | undefined
    if (used !== undefined) this.#cache.drop(used)
    return false
  }
}

/** @throws GatewayError unless the server refuses the user */
export function toVerdict(error: unknown): Verdict {
  if (!(error instanceof TokenError)) throw error
  const { kind, message, claims } = error
  if (kind === 'refused') {
    return claims === undefined ? refuseUser(message) : demandClaims(claims, message)
  }
  throw new GatewayError(
    kind === 'unavailable' ? 'credentials_unavailable' : 'credentials_failed',
    message,
    error,
  )
}
