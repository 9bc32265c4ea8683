import { choice, record, type Shape } from '../../base/shape.ts'
import type { HostRewriteMode } from '../../exchange/forwarding.ts'

/** Version 1. */
export interface HostRewriteConfig {
  readonly mode: HostRewriteMode
}

export const shape: Shape<HostRewriteConfig> = record({ mode: choice('Auto', 'None') })
