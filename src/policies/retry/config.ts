import { count, integer, list, record, type Shape } from '../../base/shape.ts'
import type { RetryPlan } from '../../exchange/forwarding.ts'
import { milliseconds } from '../../model/shapes.ts'

/** Version 1. */
export type RetryConfig = RetryPlan

export const shape: Shape<RetryConfig> = record({
  codes: list(integer(100, 599)),
  attempts: count,
  backoffMs: milliseconds,
})
