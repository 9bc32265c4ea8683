import type { BudgetDefinition } from './budget-state.ts'

/** The soft limits of which that much is spent, in percent and in ascending order. */
export const reachedLimits = (
  { softLimits = [] }: Pick<BudgetDefinition, 'softLimits'>,
  limit: bigint,
  spent: bigint,
): readonly number[] =>
  spent <= 0n ? [] : softLimits.filter((percent) => spent * 100n >= limit * BigInt(percent))
