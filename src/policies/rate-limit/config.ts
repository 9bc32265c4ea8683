import type { CalloutTarget } from '../../exchange/exchange.ts'
import type { RateLimitSpec } from '../../exchange/rate-limits.ts'

export interface LocalLimit extends RateLimitSpec {
  readonly counts: 'requests' | 'tokens'
}

export interface GlobalDescriptor {
  readonly counts: 'requests' | 'tokens'
  readonly entries: readonly { readonly name: string; readonly expression: string }[]
}

export interface GlobalLimit {
  readonly target: CalloutTarget
  readonly domain: string
  readonly descriptors: readonly GlobalDescriptor[]
}

/** Version 1. */
export interface RateLimitConfig {
  readonly local: readonly LocalLimit[]
  readonly global?: GlobalLimit
}
