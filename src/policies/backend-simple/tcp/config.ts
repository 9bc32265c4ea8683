import { optional, record, type Shape } from '../../../base/shape.ts'
import { keepalive, milliseconds } from '../../../model/shapes.ts'
/** Version 1. */
export interface BackendTcpConfig {
  readonly keepalive?: {
    /** Unanswered probes after which the connection is dropped. */
    readonly retries: number
    /** Milliseconds of silence before the first probe, and between probes. */
    readonly timeMs: number
    readonly intervalMs: number
  }
  /** Milliseconds in which a connection must be made, TLS included. */
  readonly connectTimeoutMs?: number
}

export const shape: Shape<BackendTcpConfig> = record({
  keepalive: optional(keepalive),
  connectTimeoutMs: optional(milliseconds),
})
