import { choice, count, list, optional, record, type Shape, text } from '../../base/shape.ts'
import type { CalloutTarget } from '../../exchange/exchange.ts'
import type { RateLimitSpec } from '../../exchange/rate-limits.ts'
import { calloutTarget, namedExpression } from '../../model/shapes.ts'

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

const counts = choice('requests', 'tokens')

const local: Shape<LocalLimit> = record({
  rate: count,
  unit: choice('Seconds', 'Minutes', 'Hours'),
  burst: count,
  counts,
})

const global: Shape<GlobalLimit> = record({
  target: calloutTarget,
  domain: text,
  descriptors: list(record<GlobalDescriptor>({ counts, entries: list(namedExpression) })),
})

export const shape: Shape<RateLimitConfig> = record({
  local: list(local),
  global: optional(global),
})
