import { count, type Infer, optional, record } from '../../../ground/base/shape.ts'
import { milliseconds } from '../../../ground/model/shapes.ts'
import type { PolicyApply } from '../define.ts'

/** The compiled form that proxies receive. Fields that the user did not set are omitted. */
const shape = record({
  maxBufferBytes: optional(count),
  maxHeaders: optional(count),
  idleTimeoutMs: optional(milliseconds),
  connectionDurationMs: optional(milliseconds),
  http2: optional(
    record({
      streamWindowBytes: optional(count),
      connectionWindowBytes: optional(count),
      maxFrameBytes: optional(count),
      maxHeadBytes: optional(count),
      keepaliveIntervalMs: optional(milliseconds),
      keepaliveTimeoutMs: optional(milliseconds),
    }),
  ),
})

const apply: PolicyApply<Infer<typeof shape>> = {
  shape,
  bind: (http) => ({ client: { http } }),
}

export default apply
