/** The step that adds a token which the gateway gets by a grant. */
import { GatewayError } from '../../ground/errors/index.ts'
import { type Exchange, next, type Verdict } from '../../ground/exchange/exchange.ts'
import type { GrantConfig } from './config.ts'
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

  constructor(grant: Grant, { cache, location }: Pick<GrantConfig, 'cache' | 'location'>) {
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

  #use(exchange: Exchange, found: CachedToken): Verdict {
    this.#place(exchange.request, found.value)
    exchange.extensions.set(this.#used, found)
    return next
  }

  /** The server may have revoked the token, so that the next request gets another one. */
  onUnauthorized({ extensions }: Exchange): void {
    const used = extensions.get(this.#used) as CachedToken | undefined
    if (used !== undefined) this.#cache.drop(used)
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
