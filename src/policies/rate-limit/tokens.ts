/** Limits of LLM tokens, of both kinds, for whoever speaks to a model. */
import type { Exchange, RespondVerdict } from '../../exchange/exchange.ts'
import type { TokenLimits } from '../../exchange/rate-limits.ts'
import type { GlobalLimits } from './global.ts'
import type { LocalLimits } from './local.ts'

export class AllTokenLimits implements TokenLimits {
  readonly #local: LocalLimits
  readonly #global: GlobalLimits

  constructor(local: LocalLimits, global: GlobalLimits) {
    this.#local = local
    this.#global = global
  }

  note(exchange: Exchange): void {
    this.#global.note(exchange)
  }

  /** Costs nothing yet, since nobody knows how many tokens there will be. */
  async check(exchange: Exchange): Promise<RespondVerdict | undefined> {
    const refused = this.#local.check(exchange)
    if (refused !== undefined) return refused
    const answer = await this.#global.ask(exchange, 'tokens', 0)
    return answer !== undefined && 'kind' in answer ? answer : undefined
  }

  /** Nobody waits for the server: it refuses later requests, not this one. */
  charge(exchange: Exchange, tokens: number): void {
    this.#local.charge(exchange, tokens)
    this.#global.ask(exchange, 'tokens', tokens).catch(() => undefined)
  }
}
