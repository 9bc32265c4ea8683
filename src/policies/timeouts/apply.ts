import { next } from '../../exchange/exchange.ts'
import { forwardingFacts } from '../../exchange/forwarding.ts'
import type { PolicyApply } from '../define.ts'
import { shape, type TimeoutsConfig } from './config.ts'

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
