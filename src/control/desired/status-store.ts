/**
 * Statuses with transition times. A condition keeps its `lastTransitionTime` until its `status` changes,
 * then it gets the time of the event that caused the change (Gateway API, Condition). Within a
 * list entry of a status, conditions are identified by their type.
 */
import { canonicalBytes, canonicalJson } from '../../ground/base/canonical.ts'
import type { ObjectKey } from '../../ground/model/names.ts'
import { hasSameContent } from './same-content.ts'
import { SumDigest } from './sum-digest.ts'

export type Status = Readonly<Record<string, unknown>>

type Json = unknown

/** What identifies an entry of a list in a status: its reference, type, name or position. */
function identityOf(item: Json, position: number): object | string | number {
  if (typeof item !== 'object' || item === null) return position
  const { type, name, parentRef, ancestorRef, controllerName } = item as Record<string, Json>
  const ref = parentRef ?? ancestorRef
  if (ref !== undefined) return { ref, controllerName }
  if (typeof type === 'string') return type
  return typeof name === 'string' ? name : position
}

function isCondition(value: Record<string, Json>): boolean {
  return 'type' in value && 'status' in value && 'reason' in value && 'observedGeneration' in value
}

/** The identity as a key of a map. */
function keyOf(item: Json, position: number): string | number {
  const identity = identityOf(item, position)
  if (typeof identity === 'string' || typeof identity === 'number') return identity
  // No type or name begins with this character.
  return `\0${canonicalJson(identity)}`
}

/** Whether both lists have the same items at the same positions: items of different types or names. */
function isAligned(value: readonly Json[], items: readonly Json[]): boolean {
  if (value.length !== items.length || value.length > maxAligned) return false
  return value.every((item, at) => {
    const identity = identityOf(item, at)
    if (typeof identity !== 'string' || identity !== identityOf(items[at], at)) return false
    for (let earlier = 0; earlier < at; earlier++) {
      if (identity === identityOf(value[earlier], earlier)) return false
    }
    return true
  })
}

/** Longer lists are matched with a map. */
const maxAligned = 4

/** The items of `before` for those of a list with the same identities. */
function matchItems(value: readonly Json[], before: readonly Json[]): readonly Json[] {
  if (before.length === 0) return before
  // Fast path for the usual route with one parent, since serialising the identity is expensive.
  if (value.length === 1 && before.length === 1) {
    const isSame =
      hasSameContent(identityOf(value[0], 0), identityOf(before[0], 0)) ||
      keyOf(value[0], 0) === keyOf(before[0], 0)
    return isSame ? before : []
  }
  if (isAligned(value, before)) return before
  const old = new Map(before.map((item, position) => [keyOf(item, position), item]))
  return value.map((item, position) => old.get(keyOf(item, position)))
}

function stampList(value: readonly Json[], before: Json, time: string): readonly Json[] {
  const items: readonly Json[] = Array.isArray(before) ? before : []
  const old = matchItems(value, items)
  const stamped = value.map((item, position) => stamp(item, old[position], time))
  return hasSameContent(stamped, items) ? items : stamped
}

function stampCondition(
  { type, status, reason, message, observedGeneration }: Record<string, Json>,
  old: Record<string, Json>,
  time: string,
): Json {
  const isSameStatus = old.status === status && old.lastTransitionTime !== undefined
  const isSame =
    isSameStatus &&
    old.type === type &&
    old.reason === reason &&
    old.message === message &&
    old.observedGeneration === observedGeneration
  if (isSame) return old
  const lastTransitionTime = isSameStatus ? old.lastTransitionTime : time
  return { type, status, reason, message, observedGeneration, lastTransitionTime }
}

/** Adds transition times. Parts whose content is equal in `before`, and parts without conditions, are not copied. */
function stamp(value: Json, before: Json, time: string): Json {
  if (Array.isArray(value)) return stampList(value, before, time)
  if (typeof value !== 'object' || value === null) return value
  const record = value as Record<string, Json>
  const old = (typeof before === 'object' && before !== null ? before : {}) as Record<string, Json>
  if (isCondition(record)) return stampCondition(record, old, time)
  const stamped: Record<string, Json> = {}
  let differences = 0
  let isCopy = true
  for (const key in record) {
    const member = stamp(record[key], old[key], time)
    if (member === undefined || member !== record[key]) isCopy = false
    if (member === undefined) continue
    stamped[key] = member
    if (member !== old[key]) differences++
  }
  if (differences === 0 && hasSameContent(stamped, old)) return old
  return isCopy ? value : stamped
}

export class StatusStore {
  readonly #statuses = new Map<ObjectKey, Status>()
  readonly #digest = new SumDigest<Status>((key, status) => canonicalBytes(status, `${key}\0`))

  get digest(): string {
    return this.#digest.toString()
  }

  /** How often statuses changed. */
  get changes(): number {
    return this.#digest.changes
  }

  get(key: ObjectKey): Status | undefined {
    return this.#statuses.get(key)
  }

  entries(): [ObjectKey, Status][] {
    return [...this.#statuses]
  }

  /**
   * Stores the status that was decided for an object at `time`. Returns the status with transition times
   * if it differs from the stored one, undefined if it does not.
   */
  decide(key: ObjectKey, decided: Status, time: string): Status | undefined {
    const before = this.#statuses.get(key)
    const status = stamp(decided, before, time) as Status
    if (status === before) return undefined
    this.#put(key, status)
    return status
  }

  /** Removes the status of an object. Returns whether there was one. */
  drop(key: ObjectKey): boolean {
    const had = this.#statuses.delete(key)
    if (had) this.#digest.set(key, undefined)
    return had
  }

  /** Restores the statuses of a snapshot with their transition times. */
  restore(entries: Iterable<readonly [ObjectKey, Status]>): void {
    for (const [key, status] of entries) this.#put(key, status)
  }

  #put(key: ObjectKey, status: Status): void {
    this.#digest.set(key, status)
    this.#statuses.set(key, status)
  }
}
