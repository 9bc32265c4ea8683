import { choice, type Infer, record } from '../../../ground/base/shape.ts'
import { next } from '../../../ground/exchange/exchange.ts'
import { forwardingExtensions } from '../../../ground/exchange/forwarding.ts'
import type { PolicyApply } from '../define.ts'

/** The compiled form that proxies receive. Its version is `configVersion` of the definition. */
const shape = record({ mode: choice('Auto', 'None') })

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind: ({ mode }) => ({
    // The forwarding step rewrites the host, because the destination is not known yet.
    onRequest(exchange) {
      exchange.extensions.set(forwardingExtensions.hostRewrite, mode)
      return next
    },
  }),
}

export default apply
