/** Counts the tokens and costs of requests to language models by the identity that they are charged to. */
import type { Cost } from '../../../../engines/messages/cost/cost.ts'
import type { Learned } from '../../../../ground/exchange/learned.ts'
import type { MetricsSnapshot, Series } from '../../../proxy/telemetry/metric-definitions.ts'
import { type Label, timedCounters } from '../../../proxy/telemetry/timed-counters.ts'
import { MoneyCounters } from './money-counters.ts'

/** Maximum number of values of a dimension that have series of their own. Users may be many. */
const maxValues = 500
const maxLength = 128
/** Label for all further values, and for requests without an identity. */
const others = '_OTHER'
const noIdentity = 'none'

export class IdentityCounters {
  readonly #tokens = timedCounters('identity_model_tokens_total')
  readonly #costs = new MoneyCounters('identity_model_cost_usd_total')
  readonly #values = new Map<string, Set<string>>()
  readonly #labels: Label[] = []

  count(
    { ownIdentity: own, principal }: Learned,
    provider: Label,
    model: Label,
    tokens: number,
    cost: Cost | undefined,
  ): void {
    this.#labels[2] = provider
    this.#labels[3] = model
    if (own !== undefined) {
      for (const name in own) this.#count(name, own[name] ?? '', tokens, cost)
    } else this.#count('principal', principal ?? noIdentity, tokens, cost)
  }

  #count(dimension: string, value: string, tokens: number, cost: Cost | undefined): void {
    this.#labels[0] = dimension
    this.#labels[1] = this.#valueOf(dimension, value)
    this.#tokens.record(this.#labels, 0, tokens)
    if (cost !== undefined) this.#costs.add(this.#labels, cost)
  }

  #valueOf(dimension: string, value: string): string {
    const known = this.#values.get(dimension)
    if (known?.has(value) === true) return value
    const values = known ?? new Set<string>()
    if (known === undefined) this.#values.set(dimension, values)
    if (values.size >= maxValues || value.length > maxLength) return others
    values.add(value)
    return value
  }

  snapshot(): MetricsSnapshot {
    const requests: readonly Series[] = this.#tokens.counts()
    return {
      identity_model_requests_total: requests,
      identity_model_tokens_total: this.#tokens.sums(),
      identity_model_cost_usd_total: this.#costs.series(),
    }
  }
}
