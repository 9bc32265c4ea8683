/**
 * One request to an InferencePool: its conversation with the picker, and the endpoints that are left
 * to try.
 *
 * ```
 *   picker ◄── head, body ── request           response ── head, body ──► picker
 *      └── endpoints, in order ──► forward ──► first ── fails ──► second …   └──► client
 * ```
 */

import type { GatewayError } from '../../../errors/index.ts'
import type { Exchange } from '../../../exchange/exchange.ts'
import { takeAnswer } from '../../../exchange/interruption.ts'
import type { EndpointPicker } from '../../../model/inference-pools.ts'
import { isOwnAnswer, sendResponse } from '../../../policies/ext-proc/converse.ts'
import { takeOver } from '../../../policies/ext-proc/immediate.ts'
import { answerIn, type Processing } from '../../../policies/ext-proc/processing.ts'
import type { BackendRecord } from '../../../proxy/telemetry/types.ts'
import { chooseEndpoint, now } from '../../../proxy/upstream/choose.ts'
import type { UpstreamEndpoint } from '../../../proxy/upstream/endpoint.ts'
import type { RequestCap } from '../../../proxy/upstream/request-cap.ts'
import { servedBy } from './picked.ts'
import type { Pool } from './pools.ts'

interface Chance {
  readonly random: () => number
  readonly cap?: RequestCap
}

/** What came of asking an endpoint picker. */
type PickOutcome = 'picked' | 'fail_open' | 'fail_closed' | 'answered'

export class PoolCall implements BackendRecord {
  readonly pool: Pool
  /** `namespace/name`. */
  readonly name: string
  readonly failureMode: EndpointPicker['failureMode']
  /** Undefined if the request ended before. */
  outcome: PickOutcome | undefined
  pickSeconds = 0
  /** Why the picker did not pick. */
  problem: string | undefined
  readonly #processing: Processing
  readonly #startedAt = now()
  #picked: readonly UpstreamEndpoint[] = []
  /** Of the endpoint that was tried last. */
  #at = -1
  #last: UpstreamEndpoint | undefined

  constructor(name: string, pool: Pool, { failureMode }: EndpointPicker, processing: Processing) {
    this.name = name
    this.pool = pool
    this.failureMode = failureMode
    this.#processing = processing
  }

  eachField(visit: Parameters<BackendRecord['eachField']>[0]): void {
    const ms = Math.trunc(this.pickSeconds * 1_000)
    visit('inference.pool', this.name, false)
    visit('inference.pick', this.outcome, false)
    visit('inference.pick.duration', this.outcome === undefined ? undefined : `${ms}ms`, false)
    visit('inference.pick.error', this.problem, true)
  }

  /** The picker was asked, and this came of it. */
  settle(outcome: PickOutcome, problem?: string): void {
    this.outcome = outcome
    this.problem = problem
    this.pickSeconds = (now() - this.#startedAt) / 1_000
  }

  picked(endpoints: readonly UpstreamEndpoint[]): void {
    this.#picked = endpoints
    this.settle('picked')
  }

  /**
   * The endpoint of the next attempt: what the picker named, in its order and then from the
   * beginning; where it named nothing, the better of two. Undefined where there is none.
   */
  next({ random, cap }: Chance): UpstreamEndpoint | undefined {
    const count = this.#picked.length
    if (count === 0) {
      const chance = { random, now, most: cap?.most ?? Number.POSITIVE_INFINITY }
      this.#last = chooseEndpoint(this.pool.endpointSet(), chance, this.#last)
      return this.#last
    }
    this.#at = (this.#at + 1) % count
    this.#last = this.#picked[this.#at]
    return this.#last
  }

  /** Did the picker name another one for when this cannot be reached? */
  hasAnother(failure: number | GatewayError): boolean {
    if (typeof failure === 'number') return false
    const isUnreachable = failure.row.source === 'upstream' && failure.row.retry === 'yes'
    return isUnreachable && this.#at + 1 < this.#picked.length
  }

  /** Tells the picker of the response, and lets it change that; undefined where it is not asked. */
  onResponse(exchange: Exchange): Promise<void> | undefined {
    if (this.#processing.isOver || this.#last === undefined || isOwnAnswer(exchange))
      return undefined
    return this.#tell(exchange, this.#last)
  }

  async #tell(exchange: Exchange, endpoint: UpstreamEndpoint): Promise<void> {
    const processing = this.#processing
    try {
      await sendResponse(exchange, processing, servedBy(endpoint))
    } catch (error) {
      const answer = answerIn(error)
      if (answer !== undefined) {
        takeAnswer(exchange)
        takeOver(exchange, answer)
      } else if (!processing.response.goOnAlone()) throw error
    }
  }
}
