/** Runs a stage for one object. */
import { conditionTrue } from './conditions.ts'
import { type ObjectState, refusalAfter } from './object-state.ts'

type Status = Readonly<Record<string, unknown>>

/**
 * If `derive` throws, the object is derived as a refused one: its status reports the error, and a policy closes its
 * targets. Other objects are not affected. If an earlier version of an object is in force, the object gets a condition:
 * `Pinned` if an operator holds the newer version, `Held` if `changeProtection` does, and `Progressing`, `Paused` or
 * `RolledBack` if it is delivered in steps.
 */
export function deriveObject<Derived extends { readonly status?: Status }>(
  derive: (state: ObjectState) => Derived,
  state: ObjectState,
  nothing: Derived,
): Derived {
  const derived = deriveSafely(derive, state, nothing)
  const { held, waits, delivery, generation } = state
  let { status } = derived
  if (status === undefined || (held ?? waits ?? delivery) === undefined) return derived
  if (held !== undefined) {
    const pinned = conditionTrue('Pinned', 'HeldByOperator', generation, held.message)
    status = withCondition(status, pinned)
  }
  if (waits !== undefined) {
    status = withCondition(status, conditionTrue('Held', 'ChangeHeld', generation, waits.message))
  }
  if (delivery !== undefined) {
    const { type, reason, message } = delivery
    status = withCondition(status, conditionTrue(type, reason, generation, message))
  }
  return { ...derived, status }
}

function deriveSafely<Derived>(
  derive: (state: ObjectState) => Derived,
  state: ObjectState,
  nothing: Derived,
): Derived {
  try {
    return derive(state)
  } catch (error) {
    const refused = refusalAfter(error, state)
    return refused === undefined ? nothing : derive({ ...state, object: undefined, refused })
  }
}

/** The lists of a status whose entries have conditions: those of routes, and those of policies. */
const lists = ['parents', 'ancestors'] as const

function withCondition(status: Status, condition: object): Status {
  const add = (part: Status): Status =>
    Array.isArray(part.conditions) ? { ...part, conditions: [...part.conditions, condition] } : part
  const added: Record<string, unknown> = { ...add(status) }
  for (const list of lists) {
    const entries = status[list]
    if (Array.isArray(entries)) added[list] = entries.map(add)
  }
  return added
}
