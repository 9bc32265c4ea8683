/** Expectations about a condition of an object, and when they began or ceased to hold. */
import type { ObjectRef } from '../../ground/model/names.ts'
import type { PlacedCondition } from '../../ground/model/placed-conditions.ts'
import type { ConditionHistory } from './conditions.ts'

export interface Expectation {
  readonly object: ObjectRef
  readonly type: string
  /** The expected status, such as `True`, or the expected reason, such as `Accepted`. */
  readonly value: string
}

/** An expectation holds if the condition exists and has the expected value in every place that has it. */
function holds({ type, value }: Expectation, placed: readonly PlacedCondition[]): boolean {
  const found = placed.filter(({ condition }) => condition.type === type)
  const agrees = found.every(
    ({ condition }) => condition.status === value || condition.reason === value,
  )
  return found.length > 0 && agrees
}

/** The events after which the expectation began or ceased to hold. */
export function findFlips<Cause>(
  { initial, steps }: ConditionHistory<Cause>,
  expectation: Expectation,
) {
  const heldInitially = holds(expectation, initial)
  const flips: { readonly holds: boolean; readonly cause: Cause }[] = []
  for (const { cause, conditions } of steps) {
    const isHeld = holds(expectation, conditions)
    if (isHeld !== (flips.at(-1)?.holds ?? heldInitially)) flips.push({ holds: isHeld, cause })
  }
  return { heldInitially, flips }
}
