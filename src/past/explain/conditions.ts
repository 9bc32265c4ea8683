/** How the conditions of an object changed over a recorded log. */
import type { Condition } from '../../ground/model/conditions.ts'
import {
  conditionDifferences,
  type PlacedCondition,
  placedConditions,
} from '../../ground/model/placed-conditions.ts'

/** The new value of a condition; its status is `absent` if the object no longer has the condition. */
export interface ConditionChange extends Pick<Condition, 'type' | 'reason' | 'message'> {
  readonly place: string
  readonly status: Condition['status'] | 'absent'
  readonly observedGeneration?: number
}

interface ConditionStep<Cause> {
  /** The event that changed the conditions. */
  readonly cause: Cause
  /** All conditions of the object after the event. */
  readonly conditions: readonly PlacedCondition[]
  readonly changes: readonly ConditionChange[]
}

export interface ConditionHistory<Cause> {
  /** The conditions before the first event. */
  readonly initial: readonly PlacedCondition[]
  readonly steps: readonly ConditionStep<Cause>[]
}

/** The condition changes in a sequence of statuses of one object, each with the event that caused it. */
export function historyOf<Cause>(
  first: unknown,
  statuses: Iterable<{ readonly cause: Cause; readonly status: unknown }>,
): ConditionHistory<Cause> {
  const initial = placedConditions(first)
  const steps: ConditionStep<Cause>[] = []
  let last = first
  for (const { cause, status } of statuses) {
    if (status === last) continue
    last = status
    const conditions = placedConditions(status)
    const changes = changesBetween(steps.at(-1)?.conditions ?? initial, conditions)
    if (changes.length > 0) steps.push({ cause, conditions, changes })
  }
  return { initial, steps }
}

function changesBetween(
  before: readonly PlacedCondition[],
  after: readonly PlacedCondition[],
): ConditionChange[] {
  return conditionDifferences(before, after).map(({ place, type, to }) => {
    if (to === undefined) return { place, type, status: 'absent', reason: '', message: '' }
    const { status, reason, message, observedGeneration } = to
    return { place, type, status, reason, message, observedGeneration }
  })
}
