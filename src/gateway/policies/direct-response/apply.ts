import { type Infer, integer, optional, record, text } from '../../../ground/base/shape.ts'
import type { RespondVerdict } from '../../../ground/exchange/exchange.ts'
import type { PolicyApply } from '../define.ts'

/** The compiled form that proxies receive. Its version is `configVersion` of the definition. */
const shape = record({ status: integer(200, 599), body: optional(text) })

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind({ status, body }) {
    // The policy has no field for Content-Type, and none is guessed.
    const verdict: RespondVerdict = { kind: 'respond', status, body, reason: 'DirectResponse' }
    return { onRequest: () => verdict }
  },
}

export default apply
