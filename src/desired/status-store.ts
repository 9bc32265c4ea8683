/**
 * Statuses with transition times. A condition keeps its `lastTransitionTime` until its `status` changes,
 * then it gets the time of the event that caused the change (Gateway API, Condition). Within a
 * list entry of a status, conditions are identified by their type.
 */
import { canonicalJson } from '../base/canonical.ts'
import { hasSameContent } from '../base/same-content.ts'
import type { ObjectKey } from '../model/names.ts'
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

function stampList(value: readonly Json[], before: Json, time: string): Json[] {
  const items: readonly Json[] = Array.isArray(before) ? before : []
  // Fast path for the usual route with one parent, since serialising the identity is expensive.
  if (value.length === 1 && items.length === 1) {
    const item = value[0]
    const before = items[0]
    const isSame =
      hasSameContent(identityOf(item, 0), identityOf(before, 0)) ||
      keyOf(item, 0) === keyOf(before, 0)
    return [stamp(item, isSame ? before : undefined, time)]
  }
  const old = new Map(items.map((item, position) => [keyOf(item, position), item]))
  return value.map((item, position) => stamp(item, old.get(keyOf(item, position)), time))
}

function stamp(value: Json, before: Json, time: string): Json {
  if (Array.isArray(value)) return stampList(value, before, time)
  if (typeof value !== 'object' || value === null) return value
  const record = value as Record<string, Json>
  const old = (typeof before === 'object' && before !== null ? before : {}) as Record<string, Json>
  if (isCondition(record)) {
    const kept = old.status === record.status ? old.lastTransitionTime : undefined
    const { type, status, reason, message, observedGeneration } = record
    const lastTransitionTime = kept ?? time
    return { type, status, reason, message, observedGeneration, lastTransitionTime }
  }
  const stamped: Record<string, Json> = {}
  for (const key in record) {
    const member = record[key]
    if (member !== undefined) stamped[key] = stamp(member, old[key], time)
  }
  return stamped
}

export class StatusStore {
  readonly #statuses = new Map<ObjectKey, Status>()
  readonly #digest = new SumDigest<Status>(canonicalJson)

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
    if (before !== undefined && hasSameContent(before, status)) return undefined
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
