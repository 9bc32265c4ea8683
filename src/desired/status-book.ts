/**
 * Statuses with their transition times. A condition keeps its `lastTransitionTime` until its
 * `status` changes; then it takes the time of the event that caused the change (Gateway API,
 * Condition). Conditions are told apart by type within the list entry they stand in.
 */
import { canonicalJson } from '../base/canonical.ts'
import { hasSameContent } from '../base/same-content.ts'
import type { ObjectKey } from '../model/names.ts'
import { entryHash, SumDigest } from './output-store.ts'

export type Status = Readonly<Record<string, unknown>>

type Json = unknown

/** What tells an entry of a list in a status from its siblings. */
function identityOf(item: Json, position: number): string {
  if (typeof item !== 'object' || item === null) return `#${position}`
  const { type, name, parentRef, ancestorRef, controllerName } = item as Record<string, Json>
  if (parentRef !== undefined || ancestorRef !== undefined) {
    return canonicalJson([parentRef ?? ancestorRef, controllerName])
  }
  return typeof type === 'string' ? type : typeof name === 'string' ? name : `#${position}`
}

/** Is it the same entry of a list of one? */
function isSameItem(item: Json, old: Json): boolean {
  const [ref, oldRef] = [refOf(item), refOf(old)]
  const isSurely =
    ref?.at !== undefined && ref.by === oldRef?.by && hasSameContent(ref.at, oldRef?.at)
  return isSurely || identityOf(item, 0) === identityOf(old, 0)
}

function refOf(item: Json): { readonly at: Json; readonly by: Json } | undefined {
  if (typeof item !== 'object' || item === null) return undefined
  const { parentRef, ancestorRef, controllerName } = item as Record<string, Json>
  return { at: parentRef ?? ancestorRef, by: controllerName }
}

function isCondition(value: Record<string, Json>): boolean {
  return 'type' in value && 'status' in value && 'reason' in value && 'observedGeneration' in value
}

function stampList(value: readonly Json[], before: Json, time: string): Json[] {
  // Most routes have one parent, and its identity is dear to spell.
  if (value.length === 1 && Array.isArray(before) && before.length === 1) {
    const [item, old] = [value[0], before[0]]
    return [stamp(item, isSameItem(item, old) ? old : undefined, time)]
  }
  const old = new Map<string, Json>()
  if (Array.isArray(before)) {
    before.forEach((item, position) => {
      old.set(identityOf(item, position), item)
    })
  }
  return value.map((item, position) => stamp(item, old.get(identityOf(item, position)), time))
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
  for (const [key, member] of Object.entries(record)) {
    if (member !== undefined) stamped[key] = stamp(member, old[key], time)
  }
  return stamped
}

export class StatusBook {
  readonly #statuses = new Map<ObjectKey, { status: Status; hash: string }>()
  readonly #digest = new SumDigest()

  get digest(): string {
    return this.#digest.toString()
  }

  get(key: ObjectKey): Status | undefined {
    return this.#statuses.get(key)?.status
  }

  entries(): [ObjectKey, Status][] {
    return [...this.#statuses].map(([key, { status }]) => [key, status])
  }

  /**
   * Takes a decided status at a time. Returns the stamped status where it differs from the one in
   * the book, undefined where nothing changed (or the object has no status any more).
   */
  decide(key: ObjectKey, decided: Status | undefined, time: string): Status | undefined {
    const before = this.#statuses.get(key)
    if (decided === undefined) {
      this.#drop(key)
      return undefined
    }
    const status = stamp(decided, before?.status, time) as Status
    if (before !== undefined && hasSameContent(before.status, status)) return undefined
    const hash = hashOf(key, status)
    if (hash === before?.hash) return undefined
    this.#drop(key)
    this.#put(key, status, hash)
    return status
  }

  /** Puts back what a snapshot holds; times are as they were. */
  restore(entries: Iterable<readonly [ObjectKey, Status]>): void {
    for (const [key, status] of entries) this.#put(key, status, hashOf(key, status))
  }

  #put(key: ObjectKey, status: Status, hash: string): void {
    this.#statuses.set(key, { status, hash })
    this.#digest.add(hash)
  }

  #drop(key: ObjectKey): void {
    const before = this.#statuses.get(key)
    if (before === undefined) return
    this.#digest.remove(before.hash)
    this.#statuses.delete(key)
  }
}

const hashOf = (key: ObjectKey, status: Status) => entryHash(`${key}\0${canonicalJson(status)}`)
