/** Counts requests of every kind by the identity that they belong to. */
import type { Exchange } from '../../../ground/exchange/exchange.ts'
import { principalName } from '../../principal/principal.ts'
import { IdentityValues } from './label-values.ts'
import type { Series } from './metric-definitions.ts'
import { type Label, timedCounters } from './timed-counters.ts'

export class IdentityRequests {
  readonly #requests = timedCounters('identity_requests_total')
  readonly #values = new IdentityValues()
  readonly #labels: Label[] = []

  /** Requests without an identity are not counted. */
  count(exchange: Exchange, status: number): void {
    const own = exchange.learned.ownIdentity
    if (own === undefined) {
      const principal = principalName(exchange)
      if (principal !== undefined) this.#count('principal', principal, status)
    } else for (const name in own) this.#count(name, own[name] ?? '', status)
  }

  #count(dimension: string, value: string, status: number): void {
    this.#labels[0] = dimension
    this.#labels[1] = this.#values.of(dimension, value)
    this.#labels[2] = Math.floor(status / 100)
    this.#requests.record(this.#labels, 0, 0)
  }

  series(): readonly Series[] {
    return this.#requests.counts()
  }
}
