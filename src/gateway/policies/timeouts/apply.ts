import { type Infer, optional, record } from '../../../ground/base/shape.ts'
import { next } from '../../../ground/exchange/exchange.ts'
import { forwardingExtensions } from '../../../ground/exchange/forwarding.ts'
import { milliseconds } from '../../../ground/model/shapes.ts'
import type { PolicyApply } from '../define.ts'

/** The compiled form that proxies receive. Its version is `configVersion` of the definition. */
const shape = record({
  /** Time from the first attempt to the last byte of the response; 0 means no limit. */
  requestMs: optional(milliseconds),
})

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind({ requestMs }) {
    if (requestMs === undefined) return {}
    return {
      // The forwarding step starts the timer with the first attempt.
      onRequest(exchange) {
        exchange.extensions.set(forwardingExtensions.requestTimeoutMs, requestMs)
        return next
      },
    }
  },
}

export default apply
