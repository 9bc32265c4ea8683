/**
 * Merges the decided status into the live one:
 *
 * - Lists that several controllers share (`parents`, `ancestors`): entries of other controllerNames
 *   stay; ours are replaced as a whole.
 * - `conditions` of the object: types that we do not set stay.
 * - A condition whose status is unchanged keeps its transition time, whatever the log has.
 * - Nothing is written if the live status is right already.
 */

import { canonicalJson } from '../../ground/base/canonical.ts'
import { controllerName } from '../../ground/model/api-names.ts'
import type { Status } from '../desired/status-store.ts'

interface Condition {
  readonly type: string
  readonly status: string
  readonly message?: string
  readonly lastTransitionTime?: string
}

interface Shared {
  readonly controllerName?: string
  readonly parentRef?: unknown
  readonly ancestorRef?: unknown
  readonly conditions?: readonly Condition[]
}

/** Types of conditions that this controller sets on the object itself, by kind. */
const ownConditions: Readonly<Record<string, readonly string[]>> = {
  GatewayClass: ['Accepted', 'SupportedVersion'],
  Gateway: ['Accepted', 'Programmed', 'ResolvedRefs', 'InsecureFrontendValidationMode'],
  ListenerSet: ['Accepted', 'Programmed', 'ResolvedRefs'],
  GatewayBackend: ['Accepted', 'StdioServers', 'ToolsApproved'],
  GatewayPolicy: ['Accepted', 'Attached'],
  GatewayBudget: ['Accepted', 'Attached', 'SoftLimitReached'],
}

/** Fields with lists that have entries of several controllers. */
const sharedLists = ['parents', 'ancestors'] as const

/** Maximum number of entries in the lists, of all controllers together. The API server refuses more. */
const maxShared = { parents: 32, ancestors: 16 } as const

/**
 * Returns the fields of the status that must change, with their new values, or undefined if none must. If
 * `decided` is undefined, the object is not ours any more, and our entries in shared lists are removed.
 */
export function statusPatch(
  kind: string,
  live: Status | undefined,
  decided: Status | undefined,
): Status | undefined {
  const patch: Record<string, unknown> = {}
  for (const [field, value] of Object.entries(decided ?? withoutOurs(live))) {
    const before = live?.[field]
    const merged = mergeField(kind, field, before, value)
    if (merged !== undefined && !isSame(merged, before)) patch[field] = merged
  }
  return Object.keys(patch).length === 0 ? undefined : patch
}

/** The status without the entries of other controllers in shared lists. */
export function ownPart(status: Status | undefined): Status {
  const ours = sharedLists.map((field) => [field, listOf<Shared>(status?.[field]).filter(isOurs)])
  return { ...status, ...Object.fromEntries(ours) }
}

function withoutOurs(live: Status | undefined): Status {
  const shared = sharedLists.filter((field) => listOf<Shared>(live?.[field]).some(isOurs))
  return Object.fromEntries(shared.map((field) => [field, []]))
}

function mergeField(kind: string, field: string, before: unknown, value: unknown): unknown {
  switch (field) {
    case 'parents':
    case 'ancestors':
      return mergeShared(listOf<Shared>(before), listOf<Shared>(value), field)
    case 'conditions':
      return mergeConditions(listOf(before), listOf(value), ownConditions[kind] ?? [])
    case 'listeners':
      return mergeListeners(listOf(before), listOf(value))
    case 'addresses':
      // Old addresses stay until there are new ones, since others use them, such as DNS.
      return listOf(value).length === 0 && before !== undefined ? undefined : value
    default:
      return value
  }
}

function mergeShared(
  before: readonly Shared[],
  decided: readonly Shared[],
  field: keyof typeof maxShared,
): readonly Shared[] {
  const known = before.filter(isOurs)
  const room = Math.max(0, maxShared[field] - (before.length - known.length))
  const ours = cut(decided, room, field).map((entry) => {
    const old = known.find((one) => isSame(refOf(one), refOf(entry)))
    return { ...entry, conditions: keepTimes(listOf(old?.conditions), listOf(entry.conditions)) }
  })
  // If our entries are unchanged, the list stays, whatever the order of all entries.
  if (isSame(known, ours)) return before
  return [...before.filter((entry) => !isOurs(entry)), ...ours]
}

/** Returns the entries for which there is room. The last one says how many are missing. */
function cut(
  decided: readonly Shared[],
  room: number,
  field: keyof typeof maxShared,
): readonly Shared[] {
  const last = decided[room - 1]
  if (decided.length <= room || last === undefined) return decided.slice(0, room)
  const left = decided.length - room
  const text = `${left} more ${field} are not listed, because status.${field} has at most ${maxShared[field]} entries.`
  const conditions = listOf<Condition>(last.conditions).map((condition) =>
    condition.type === 'Accepted'
      ? { ...condition, message: [condition.message, text].filter(Boolean).join('. ') }
      : condition,
  )
  return [...decided.slice(0, room - 1), { ...last, conditions }]
}

const isOurs = (entry: Shared) => entry.controllerName === controllerName
const refOf = ({ parentRef, ancestorRef }: Shared) => parentRef ?? ancestorRef

function mergeConditions(
  before: readonly Condition[],
  decided: readonly Condition[],
  own: readonly string[],
): readonly Condition[] {
  const timed = keepTimes(before, decided)
  const kept = before.flatMap((old) => {
    const fresh = timed.find(({ type }) => type === old.type)
    return fresh !== undefined ? [fresh] : own.includes(old.type) ? [] : [old]
  })
  return [...kept, ...timed.filter((one) => !kept.includes(one))]
}

function mergeListeners(
  before: readonly { readonly name?: string; readonly conditions?: readonly Condition[] }[],
  decided: readonly { readonly name?: string; readonly conditions?: readonly Condition[] }[],
): unknown {
  return decided.map((listener) => {
    const old = before.find(({ name }) => name === listener.name)
    const conditions = keepTimes(listOf(old?.conditions), listOf(listener.conditions))
    return { ...listener, conditions }
  })
}

/** Gateway API: the transition time changes only with the status of the condition. */
function keepTimes(before: readonly Condition[], decided: readonly Condition[]): Condition[] {
  return decided.map((condition) => {
    const old = before.find(({ type }) => type === condition.type)
    if (old?.status !== condition.status || old.lastTransitionTime === undefined) {
      return wholeSeconds(condition)
    }
    return { ...condition, lastTransitionTime: old.lastTransitionTime }
  })
}

/** metav1.Time has no fractions: `12:00:00.250Z` becomes `12:00:00Z`. */
function wholeSeconds(condition: Condition): Condition {
  const { lastTransitionTime } = condition
  if (lastTransitionTime === undefined) return condition
  return { ...condition, lastTransitionTime: lastTransitionTime.replace(/\.\d+Z$/, 'Z') }
}

function listOf<Item>(value: unknown): readonly Item[] {
  return Array.isArray(value) ? value : []
}

function isSame(a: unknown, b: unknown): boolean {
  return a === b || canonicalJson(a ?? null) === canonicalJson(b ?? null)
}
