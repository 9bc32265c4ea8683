import type { CalloutTarget } from '../../exchange/exchange.ts'

/** Version 1. */
export interface ExtProcConfig {
  readonly target: CalloutTarget
}
