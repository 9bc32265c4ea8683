/** The conditions of one object through a recorded log, with the event behind each change. */
import type { Recorded } from '../log/index.ts'
import type { Condition } from '../model/conditions.ts'
import type { ObjectRef } from '../model/names.ts'
import { createFold } from '../replay/index.ts'
import type { Recording } from './offline.ts'
import { placedConditions } from './status.ts'

/** What a condition became, or undefined where it is gone. */
type ConditionState = Pick<Condition, 'status' | 'reason' | 'message' | 'observedGeneration'>

export interface ConditionChange {
  /** The object itself (empty), or one of its parents, listeners or ancestors. */
  readonly place: string
  readonly type: string
  readonly state: ConditionState | undefined
  /** The event that made it so. */
  readonly cause: Recorded
}

/** What an object's conditions are at one moment: place and type -> state. */
export type ConditionsNow = ReadonlyMap<string, ConditionState>

const keyOf = (place: string, type: string): string => `${place}\0${type}`

export function placeAndType(key: string): readonly [place: string, type: string] {
  const [place = '', type = ''] = key.split('\0')
  return [place, type]
}

function conditionsOf(status: unknown): ConditionsNow {
  const placed = placedConditions((status ?? {}) as Readonly<Record<string, unknown>>)
  return new Map(
    placed.map(({ place, condition }) => {
      const { type, status: value, reason, message, observedGeneration } = condition
      return [keyOf(place, type), { status: value, reason, message, observedGeneration }]
    }),
  )
}

function same(a: ConditionState | undefined, b: ConditionState | undefined): boolean {
  return a?.status === b?.status && a?.reason === b?.reason && a?.message === b?.message
}

/** What the conditions of an object are where the recording begins. */
export function conditionsAtFirst(recording: Recording, ref: ObjectRef): ConditionsNow {
  return conditionsOf(createFold(recording.derivation, recording.extent.base).statusOf(ref))
}

/** Folds the events one by one; calls back after each that changed a condition of the object. */
export function followConditions(
  { events, derivation, extent }: Recording,
  ref: ObjectRef,
  onChange: (now: ConditionsNow, changes: readonly ConditionChange[]) => void,
): void {
  const fold = createFold(derivation, extent.base)
  // What the stored state says already has no event here that made it.
  let status: unknown = fold.statusOf(ref)
  let before: ConditionsNow = conditionsOf(status)
  for (const cause of events) {
    fold.apply(cause)
    const next = fold.statusOf(ref)
    if (next === status) continue
    status = next
    const now = conditionsOf(next)
    const changes = [...new Set([...before.keys(), ...now.keys()])]
      .filter((key) => !same(before.get(key), now.get(key)))
      .map((key): ConditionChange => {
        const [place, type] = placeAndType(key)
        return { place, type, state: now.get(key), cause }
      })
    before = now
    if (changes.length > 0) onChange(now, changes)
  }
}
