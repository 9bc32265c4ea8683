import { choice, type Infer, optional, record } from '../../../../ground/base/shape.ts'
import { milliseconds } from '../../../../ground/model/shapes.ts'
import type { PolicyApply } from '../../define.ts'

/** The compiled form that proxies receive. Its version is `configVersion` of the definition. */
export const shape = record({
  version: optional(choice('HTTP1', 'HTTP2')),
  /** Timeout of one attempt, from its start to the end of the response. */
  requestTimeoutMs: optional(milliseconds),
})

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind: ({ version, requestTimeoutMs }) => ({
    connection: {
      ...(version && { version: version === 'HTTP2' ? '2' : '1.1' }),
      ...(requestTimeoutMs !== undefined && { requestTimeoutMs }),
    },
  }),
}

export default apply
