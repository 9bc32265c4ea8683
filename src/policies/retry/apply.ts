import { count, integer, list, record, type Shape } from '../../base/shape.ts'
import { next } from '../../exchange/exchange.ts'
import { forwardingFacts, type RetryPlan } from '../../exchange/forwarding.ts'
import { milliseconds } from '../../model/shapes.ts'
import type { PolicyApply } from '../define.ts'

/** Version 1. */
export type RetryConfig = RetryPlan

const shape: Shape<RetryConfig> = record({
  codes: list(integer(100, 599)),
  attempts: count,
  backoffMs: milliseconds,
})

const apply: PolicyApply<RetryConfig> = {
  shape,
  bind: (config) => ({
    // Only tells the forwarding step, which knows what becomes of an attempt.
    onRequest(exchange) {
      exchange.facts.set(forwardingFacts.retry, config)
      return next
    },
  }),
}

export default apply
