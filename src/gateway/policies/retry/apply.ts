import { count, integer, list, record } from '../../../ground/base/shape.ts'
import { next } from '../../../ground/exchange/exchange.ts'
import { forwardingExtensions, type RetryPlan } from '../../../ground/exchange/forwarding.ts'
import { milliseconds } from '../../../ground/model/shapes.ts'
import type { PolicyApply } from '../define.ts'

/** The compiled form that proxies receive. Its version is `configVersion` of the definition. */
const shape = record<RetryPlan>({
  codes: list(integer(100, 599)),
  attempts: count,
  backoffMs: milliseconds,
})

const apply: PolicyApply<RetryPlan> = {
  shape,
  bind: (plan) => ({
    // The forwarding step retries, because it knows the result of each attempt.
    onRequest(exchange) {
      exchange.extensions.set(forwardingExtensions.retry, plan)
      return next
    },
  }),
}

export default apply
