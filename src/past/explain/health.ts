/** Whether a condition is as it should be. */
import type { Condition } from '../../ground/model/conditions.ts'
import { type PlacedCondition, placedConditions } from '../../ground/model/placed-conditions.ts'

/** `problem`: a part of the object has no effect. `warning`: a person should look at it. */
export type ObjectHealth = 'ok' | 'warning' | 'problem'

const refusalTypes = new Set(['Accepted', 'ResolvedRefs', 'Programmed', 'Attached'])

/** Conditions that should not be true. */
const negativeTypes = new Set([
  'Conflicted',
  'OverlappingTLSConfig',
  'InsecureFrontendValidationMode',
  'Pinned',
  'Held',
])

type Decided = Pick<Condition, 'type' | 'status' | 'reason'>

/** Returns true if a condition reports that a part of the object has no effect. */
export function isRefusal({ type, status, reason }: Decided): boolean {
  if (type === 'PartiallyInvalid') return status === 'True'
  if (!refusalTypes.has(type)) return false
  return status === 'False' || (status === 'True' && reason === 'PartiallyValid')
}

export function healthOf(condition: Decided): ObjectHealth {
  const { type, status } = condition
  if (isRefusal(condition)) return 'problem'
  if (negativeTypes.has(type)) return status === 'True' ? 'warning' : 'ok'
  return status === 'True' ? 'ok' : 'warning'
}

const severity: readonly ObjectHealth[] = ['ok', 'warning', 'problem']

/** The worst of several; `ok` if there is none. */
export function worstOf(healths: Iterable<ObjectHealth>): ObjectHealth {
  let worst: ObjectHealth = 'ok'
  for (const one of healths) if (severity.indexOf(one) > severity.indexOf(worst)) worst = one
  return worst
}

/** The conditions of a status, and those of them that are not as they should be. */
interface CheckedStatus {
  readonly placed: readonly PlacedCondition[]
  readonly bad: readonly PlacedCondition[]
}

/** Statuses do not change, and most of them are the same from one moment to the next. */
const checked = new WeakMap<object, CheckedStatus>()

export function checkStatus(status: object | undefined): CheckedStatus {
  if (status === undefined) return { placed: [], bad: [] }
  const known = checked.get(status)
  if (known !== undefined) return known
  const placed = placedConditions(status)
  const bad = placed.filter(({ condition }) => healthOf(condition) !== 'ok')
  checked.set(status, { placed, bad })
  return { placed, bad }
}
