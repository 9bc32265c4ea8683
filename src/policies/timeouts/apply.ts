import { optional, record, type Shape } from '../../base/shape.ts'
import { next } from '../../exchange/exchange.ts'
import { forwardingFacts } from '../../exchange/forwarding.ts'
import { milliseconds } from '../../model/shapes.ts'
import type { PolicyApply } from '../define.ts'

/** Version 1. */
export interface TimeoutsConfig {
  /** Milliseconds from the first attempt to the last byte of the response; 0 = no limit. */
  readonly requestMs?: number
}

const shape: Shape<TimeoutsConfig> = record({ requestMs: optional(milliseconds) })

const apply: PolicyApply<TimeoutsConfig> = {
  shape,
  bind({ requestMs }) {
    if (requestMs === undefined) return {}
    return {
      // The clock starts with the first attempt, so this only tells the forwarding step.
      onRequest(exchange) {
        exchange.facts.set(forwardingFacts.requestTimeoutMs, requestMs)
        return next
      },
    }
  },
}

export default apply
