import type { Exchange, RespondVerdict } from '../../../ground/exchange/exchange.ts'
import type { TokenLimits } from '../../../ground/exchange/rate-limits.ts'
import type { GlobalLimits } from './global.ts'
import type { LocalLimits } from './local.ts'

/** Combines the local and global limits of LLM tokens. */
export class AllTokenLimits implements TokenLimits {
  readonly #local: LocalLimits
  readonly #global: GlobalLimits

  constructor(local: LocalLimits, global: GlobalLimits) {
    this.#local = local
    this.#global = global
  }

  note(exchange: Exchange): void {
    this.#local.note(exchange)
    this.#global.note(exchange)
  }

  /** Charges nothing, since the number of tokens is not known yet. */
  async check(exchange: Exchange, isAgain: boolean): Promise<RespondVerdict | undefined> {
    const refused = this.#local.check(exchange, isAgain)
    if (refused !== undefined) return refused
    if (isAgain && !this.#global.hasLateTokens) return undefined
    this.#global.noteLate(exchange)
    const decision = await this.#global.ask(exchange, 'tokens', 0)
    return decision !== undefined && 'kind' in decision ? decision : undefined
  }

  /** Does not wait for the server: its answer can only affect later requests. */
  charge(exchange: Exchange, tokens: number): void {
    this.#local.charge(exchange, tokens)
    this.#global.ask(exchange, 'tokens', tokens).catch(() => undefined)
  }
}
