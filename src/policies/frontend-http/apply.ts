import { count, optional, record, type Shape } from '../../base/shape.ts'
import { milliseconds } from '../../model/shapes.ts'
import type { PolicyApply } from '../define.ts'

/** Version 1; a field that the user did not set is absent. Sizes in bytes, times in milliseconds. */
export interface FrontendHttpConfig {
  readonly maxBufferBytes?: number
  readonly maxHeaders?: number
  readonly idleTimeoutMs?: number
  readonly http2?: {
    readonly streamWindowBytes?: number
    readonly connectionWindowBytes?: number
    readonly maxFrameBytes?: number
    readonly keepaliveIntervalMs?: number
    readonly keepaliveTimeoutMs?: number
  }
}

const shape: Shape<FrontendHttpConfig> = record({
  maxBufferBytes: optional(count),
  maxHeaders: optional(count),
  idleTimeoutMs: optional(milliseconds),
  http2: optional(
    record<NonNullable<FrontendHttpConfig['http2']>>({
      streamWindowBytes: optional(count),
      connectionWindowBytes: optional(count),
      maxFrameBytes: optional(count),
      keepaliveIntervalMs: optional(milliseconds),
      keepaliveTimeoutMs: optional(milliseconds),
    }),
  ),
})

const apply: PolicyApply<FrontendHttpConfig> = {
  shape,
  bind: (http) => ({ client: { http } }),
}

export default apply
