import type { RateLimitSpec } from '../../exchange/rate-limits.ts'

export interface LocalLimit extends RateLimitSpec {
  readonly counts: 'requests' | 'tokens'
}

/** Version 1. */
export interface RateLimitConfig {
  readonly local: readonly LocalLimit[]
}
