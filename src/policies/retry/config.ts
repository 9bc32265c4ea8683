import type { RetryPlan } from '../../exchange/forwarding.ts'

/** Version 1. */
export type RetryConfig = RetryPlan
