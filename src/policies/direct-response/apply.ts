import { integer, optional, record, type Shape, text } from '../../base/shape.ts'
import type { RespondVerdict } from '../../exchange/exchange.ts'
import type { PolicyApply } from '../define.ts'

/** Version 1. */
export interface DirectResponseConfig {
  /** 200..599. */
  readonly status: number
  /** No body where absent. */
  readonly body?: string
}

const shape: Shape<DirectResponseConfig> = record({
  status: integer(200, 599),
  body: optional(text),
})

const apply: PolicyApply<DirectResponseConfig> = {
  shape,
  bind({ status, body }) {
    // No Content-Type is guessed: the interface has no field for one.
    const verdict: RespondVerdict = { kind: 'respond', status, body, reason: 'DirectResponse' }
    return { onRequest: () => verdict }
  },
}

export default apply
