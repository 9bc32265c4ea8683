import { choice, optional, record, type Shape } from '../../../base/shape.ts'
import { milliseconds } from '../../../model/shapes.ts'
/** Version 1. */
export interface BackendHttpConfig {
  readonly version?: 'HTTP1' | 'HTTP2'
  /** Milliseconds in which one attempt must give its whole response. */
  readonly requestTimeoutMs?: number
}

export const shape: Shape<BackendHttpConfig> = record({
  version: optional(choice('HTTP1', 'HTTP2')),
  requestTimeoutMs: optional(milliseconds),
})
