/** Counts the tokens and costs of requests to language models by the identity that they are charged to. */
import type { Cost } from '../../../../engines/messages/cost/cost.ts'
import type { Exchange } from '../../../../ground/exchange/exchange.ts'
import { principalName } from '../../../principal/principal.ts'
import { IdentityValues } from '../../../proxy/telemetry/label-values.ts'
import type { MetricsSnapshot, Series } from '../../../proxy/telemetry/metric-definitions.ts'
import { type Label, timedCounters } from '../../../proxy/telemetry/timed-counters.ts'
import { MoneyCounters } from './money-counters.ts'

/** Value for requests without an identity. */
const noIdentity = 'none'

export class IdentityCounters {
  readonly #tokens = timedCounters('identity_model_tokens_total')
  readonly #costs = new MoneyCounters()
  readonly #values = new IdentityValues()
  readonly #labels: Label[] = []

  count(
    exchange: Exchange,
    provider: Label,
    model: Label,
    tokens: number,
    cost: Cost | undefined,
  ): void {
    this.#labels[2] = provider
    this.#labels[3] = model
    const own = exchange.learned.ownIdentity
    if (own === undefined) {
      this.#count('principal', principalName(exchange) ?? noIdentity, tokens, cost)
    } else for (const name in own) this.#count(name, own[name] ?? '', tokens, cost)
  }

  #count(dimension: string, value: string, tokens: number, cost: Cost | undefined): void {
    this.#labels[0] = dimension
    this.#labels[1] = this.#values.of(dimension, value)
    this.#tokens.record(this.#labels, 0, tokens)
    if (cost !== undefined) this.#costs.add(this.#labels, cost)
  }

  snapshot(): MetricsSnapshot {
    const requests: readonly Series[] = this.#tokens.counts()
    return {
      identity_model_requests_total: requests,
      identity_model_tokens_total: this.#tokens.sums(),
      identity_model_cost_usd_total: this.#costs.sums(),
    }
  }
}
