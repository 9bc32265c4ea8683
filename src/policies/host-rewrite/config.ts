import type { HostRewriteMode } from '../../exchange/forwarding.ts'

/** Version 1. */
export interface HostRewriteConfig {
  readonly mode: HostRewriteMode
}
