import {
  count,
  type Infer,
  integer,
  list,
  optional,
  record,
  text,
} from '../../../ground/base/shape.ts'
import { type Exchange, next, type Verdict } from '../../../ground/exchange/exchange.ts'
import { forwardingExtensions, type RetryPlan } from '../../../ground/exchange/forwarding.ts'
import { milliseconds } from '../../../ground/model/shapes.ts'
import { bufferBodies, Expression } from '../../variables/index.ts'
import type { PolicyApply } from '../define.ts'
import { SlidingRetryBudget } from './budget.ts'

/** The compiled form that proxies receive. Its version is `configVersion` of the definition. */
const shape = record({
  codes: list(integer(100, 599)),
  attempts: count,
  backoffMs: milliseconds,
  /** Expressions: `precondition` about the request, `condition` about the response. */
  precondition: optional(text),
  condition: optional(text),
  budget: optional(
    record({
      percent: integer(0, 100),
      intervalMs: milliseconds,
      minRetries: record({ count, intervalMs: milliseconds }),
    }),
  ),
})

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind({ precondition, condition, budget: limit, ...settings }) {
    const before = precondition === undefined ? undefined : new Expression(precondition)
    const after = condition === undefined ? undefined : new Expression(condition)
    const budget = limit && new SlidingRetryBudget(limit, () => performance.now())
    const plan: RetryPlan = {
      ...settings,
      ...(after && { isFailure: (exchange) => after.evaluate(exchange) === true }),
      ...(budget && { budget }),
    }
    // The forwarding step retries, because it knows the result of each attempt.
    const store = (exchange: Exchange): Verdict => {
      budget?.countRequest()
      if (before === undefined || before.evaluate(exchange) === true) {
        exchange.extensions.set(forwardingExtensions.retry, plan)
      }
      return next
    }
    const readAndStore = async (exchange: Exchange): Promise<Verdict> => {
      if (before !== undefined) await bufferBodies(exchange, before)
      return store(exchange)
    }
    return { onRequest: before?.request === true ? readAndStore : store }
  },
}

export default apply
