import { choice, record, type Shape } from '../../base/shape.ts'
import { next } from '../../exchange/exchange.ts'
import { forwardingFacts, type HostRewriteMode } from '../../exchange/forwarding.ts'
import type { PolicyApply } from '../define.ts'

/** Version 1. */
export interface HostRewriteConfig {
  readonly mode: HostRewriteMode
}

const shape: Shape<HostRewriteConfig> = record({ mode: choice('Auto', 'None') })

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
