import { next } from '../../exchange/exchange.ts'
import { forwardingFacts } from '../../exchange/forwarding.ts'
import type { PolicyApply } from '../define.ts'
import { type RetryConfig, shape } from './config.ts'

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
