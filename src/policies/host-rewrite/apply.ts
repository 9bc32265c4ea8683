import { next } from '../../exchange/exchange.ts'
import { forwardingFacts } from '../../exchange/forwarding.ts'
import type { PolicyApply } from '../define.ts'
import { type HostRewriteConfig, shape } from './config.ts'

const apply: PolicyApply<HostRewriteConfig> = {
  shape,
  bind({ mode }) {
    return {
      // The destination is not known yet: the forwarding step does what is asked for here.
      onRequest(exchange) {
        exchange.facts.set(forwardingFacts.hostRewrite, mode)
        return next
      },
    }
  },
}

export default apply
