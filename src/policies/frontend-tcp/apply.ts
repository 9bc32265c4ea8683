import { record, type Shape } from '../../base/shape.ts'
import { keepalive } from '../../model/shapes.ts'
import type { PolicyApply } from '../define.ts'

/** Version 1. */
export interface FrontendTcpConfig {
  readonly keepalive: {
    /** Unanswered probes after which the connection is dropped. */
    readonly retries: number
    /** Milliseconds of silence before the first probe, and between probes. */
    readonly timeMs: number
    readonly intervalMs: number
  }
}

const shape: Shape<FrontendTcpConfig> = record({ keepalive })

const apply: PolicyApply<FrontendTcpConfig> = {
  shape,
  bind: ({ keepalive }) => ({ client: { keepalive } }),
}

export default apply
