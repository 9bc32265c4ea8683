/**
 * Strategic merge patch, as Kubernetes defines it (k8s.io/apimachinery, strategicpatch):
 *
 * - maps merge field by field, scalars replace, null removes;
 * - lists whose items have a merge key merge item by item, all others are replaced;
 * - `$patch: replace` in a map, or as an item of a list, replaces the previous content by the patch;
 * - `$patch: delete` removes the map, or the item with that merge key;
 * - `$setElementOrder/<list>`, `$deleteFromPrimitiveList/<list>` and `$retainKeys` are supported.
 *
 * In some cases Kubernetes leaves a directive in the result, or an empty map in place of a deleted one.
 * Here they are removed, because the API server would refuse such an object.
 */
import type { FieldShape, PatchShape } from './patch-shape.ts'

/** A patch that cannot be applied. The message begins with the path of the invalid field. */
export class PatchError extends Error {}

type JsonMap = Readonly<Record<string, unknown>>

const directive = '$patch'
const orderPrefix = '$setElementOrder/'
const deletePrefix = '$deleteFromPrimitiveList/'
const retainKeys = '$retainKeys'

export function isMap(value: unknown): value is JsonMap {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Merges `patch` into a copy of `original`. Returns undefined if the patch deletes the whole map.
 * `path` is the path of the patch, for messages.
 * @throws PatchError
 */
export function strategicMerge(
  original: JsonMap,
  patch: JsonMap,
  shape: PatchShape,
  path: string,
): JsonMap | undefined {
  switch (directiveOf(patch, path)) {
    case 'delete':
      return undefined
    case 'replace':
      return stripMap(patch, path)
    default:
      return mergeFields(original, patch, shape, path)
  }
}

function directiveOf(patch: JsonMap, path: string): 'delete' | 'replace' | 'merge' {
  const value = Object.hasOwn(patch, directive) ? patch[directive] : 'merge'
  if (value === 'delete' || value === 'replace' || value === 'merge') return value
  throw new PatchError(`${path}: $patch is delete, replace or merge, not ${JSON.stringify(value)}`)
}

function mergeFields(original: JsonMap, patch: JsonMap, shape: PatchShape, path: string): JsonMap {
  const result = new Map(Object.entries(applyRetainKeys(original, patch, path)))
  const orders = new Map<string, readonly unknown[]>()
  for (const [key, value] of Object.entries(patch)) {
    if (key === directive || key === retainKeys) continue
    if (key.startsWith(orderPrefix)) {
      orders.set(key.slice(orderPrefix.length), listAt(value, `${path}.${key}`))
    } else if (key.startsWith(deletePrefix)) {
      deleteScalars(result, key.slice(deletePrefix.length), listAt(value, `${path}.${key}`))
    } else {
      mergeField(result, key, value, fieldOf(shape, key), `${path}.${key}`)
    }
  }
  for (const [key, order] of orders) {
    const list = result.get(key)
    const before = original[key]
    if (!Array.isArray(list)) continue
    const { mergeKey } = fieldOf(shape, key)
    result.set(key, inOrder(list, order, Array.isArray(before) ? before : [], mergeKey))
  }
  return Object.fromEntries(result)
}

function fieldOf(shape: PatchShape, key: string): FieldShape {
  return (Object.hasOwn(shape, key) ? shape[key] : undefined) ?? {}
}

function listAt(value: unknown, path: string): readonly unknown[] {
  if (Array.isArray(value)) return value
  throw new PatchError(`${path}: expected a list`)
}

/** Removes the fields that `$retainKeys` does not list. */
function applyRetainKeys(original: JsonMap, patch: JsonMap, path: string): JsonMap {
  if (!Object.hasOwn(patch, retainKeys)) return original
  const kept = new Set(listAt(patch[retainKeys], `${path}.${retainKeys}`))
  for (const [key, value] of Object.entries(patch)) {
    if (key.startsWith('$') || value === null || kept.has(key)) continue
    throw new PatchError(`${path}.${key}: is set, and not among ${retainKeys}`)
  }
  return Object.fromEntries(Object.entries(original).filter(([key]) => kept.has(key)))
}

function deleteScalars(result: Map<string, unknown>, key: string, gone: readonly unknown[]): void {
  const list = result.get(key)
  if (!Array.isArray(list)) return
  result.set(
    key,
    list.filter((item) => !gone.includes(item)),
  )
}

function mergeField(
  result: Map<string, unknown>,
  key: string,
  value: unknown,
  field: FieldShape,
  path: string,
): void {
  const merged = mergeValue(result.get(key), value, field, path)
  if (merged === undefined) result.delete(key)
  else result.set(key, merged)
}

/** Returns undefined if the patch removes the field. */
function mergeValue(before: unknown, value: unknown, field: FieldShape, path: string): unknown {
  if (value === null) return undefined
  if (isMap(value)) {
    if (!isMap(before)) return strip(value, path)
    return strategicMerge(field.isReplaced ? {} : before, value, field.fields ?? {}, path)
  }
  if (!Array.isArray(value)) return value
  if (!Array.isArray(before)) return stripList(value, path)
  if (field.mergeKey !== undefined) return mergeList(before, value, field, path)
  refuseDeletions(value, path)
  return stripList(value, path)
}

/** Removes directives and nulls from a value that replaces another one or is new. */
function strip(value: unknown, path: string): unknown {
  if (Array.isArray(value)) return stripList(value, path)
  if (!isMap(value)) return value ?? undefined
  return directiveOf(value, path) === 'delete' ? undefined : stripMap(value, path)
}

function stripMap(value: JsonMap, path: string): JsonMap {
  const entries = Object.entries(value).flatMap(([key, member]): [string, unknown][] => {
    if (key.startsWith('$') && isDirective(key)) return []
    const kept = strip(member, `${path}.${key}`)
    return kept === undefined ? [] : [[key, kept]]
  })
  return Object.fromEntries(entries)
}

function isDirective(key: string): boolean {
  return (
    key === directive ||
    key === retainKeys ||
    key.startsWith(orderPrefix) ||
    key.startsWith(deletePrefix)
  )
}

/** In a new list, items with `$patch: delete` or `$patch: replace` are dropped. */
function stripList(list: readonly unknown[], path: string): unknown[] {
  return list.flatMap((item, index) => {
    const place = `${path}[${index}]`
    return isMap(item) && directiveOf(item, place) !== 'merge' ? [] : keepItem(item, place)
  })
}

function refuseDeletions(list: readonly unknown[], path: string): void {
  const at = list.findIndex((item) => isMap(item) && directiveOf(item, path) === 'delete')
  if (at < 0) return
  const why = 'items of this list have no merge key, so that one cannot be deleted'
  throw new PatchError(`${path}[${at}]: ${why}: give the whole list`)
}

function keepItem(item: unknown, path: string): unknown[] {
  const kept = strip(item, path)
  return kept === undefined ? [] : [kept]
}

function mergeList(
  before: readonly unknown[],
  patch: readonly unknown[],
  field: FieldShape,
  path: string,
): unknown[] {
  const { mergeKey = '' } = field
  const items = patch.map((item, index) => itemAt(item, mergeKey, `${path}[${index}]`))
  if (items.some(({ what }) => what === 'replace')) return stripList(patch, path)
  const slots = before.map((item): Slot => ({ item, isMatched: false }))
  for (const one of items.filter(({ what }) => what === 'delete')) removeMatching(slots, one, field)
  const added = items.filter(({ what }) => what !== 'delete')
  for (const one of added) mergeItem(slots, one, field)
  const merged = slots.map(({ item }) => item)
  return inOrder(
    merged,
    added.map(({ item }) => item),
    before,
    mergeKey,
    field,
  )
}

interface PatchItem {
  readonly item: JsonMap
  readonly what: 'delete' | 'replace' | 'merge'
  readonly place: string
}

interface Slot {
  item: unknown
  isMatched: boolean
}

function itemAt(item: unknown, mergeKey: string, place: string): PatchItem {
  if (!isMap(item)) throw new PatchError(`${place}: expected a map with ${mergeKey}`)
  const what = directiveOf(item, place)
  if (what === 'replace') {
    if (Object.keys(item).length === 1) return { item, what, place }
    throw new PatchError(`${place}: an item with $patch: replace must have no other field`)
  }
  // `key` is optional in tolerations: one without a key tolerates every taint.
  if (mergeKey !== 'key' && (item[mergeKey] ?? null) === null) {
    throw new PatchError(`${place}: ${mergeKey} is missing, by which items are told apart`)
  }
  return { item, what, place }
}

const keyOf = (item: unknown, mergeKey: string): unknown =>
  isMap(item) ? (item[mergeKey] ?? '') : undefined

function isSameKey(item: unknown, other: unknown, mergeKey: string): boolean {
  return String(keyOf(item, mergeKey)) === String(keyOf(other, mergeKey))
}

function hasSameSecondKey(item: unknown, patch: JsonMap, { secondKey }: FieldShape): boolean {
  if (secondKey === undefined || !Object.hasOwn(patch, secondKey.field) || !isMap(item)) return true
  return (item[secondKey.field] ?? secondKey.defaultValue) === patch[secondKey.field]
}

function removeMatching(slots: Slot[], { item }: PatchItem, field: FieldShape): void {
  const { mergeKey = '' } = field
  for (let at = slots.length - 1; at >= 0; at--) {
    const known = slots[at]?.item
    if (isSameKey(known, item, mergeKey) && hasSameSecondKey(known, item, field))
      slots.splice(at, 1)
  }
}

/** Merges an item into the one with the same key; of several, into the one with the same `secondKey`. */
function mergeItem(slots: Slot[], { item, place }: PatchItem, field: FieldShape): void {
  const { mergeKey = '', fields = {} } = field
  const candidates = slots.filter((slot) => isSameKey(slot.item, item, mergeKey))
  const exact = candidates.find((slot) => hasSameSecondKey(slot.item, item, field))
  // If no item matches exactly, the key alone decides, unless another item of the patch has matched it.
  const slot = exact ?? candidates.find(({ isMatched }) => !isMatched)
  if (slot === undefined) {
    for (const kept of keepItem(item, place)) slots.push({ item: kept, isMatched: true })
    return
  }
  slot.isMatched = true
  slot.item = isMap(slot.item) ? strategicMerge(slot.item, item, fields, place) : item
}

/**
 * Sorts the items that `order` lists in that order, and keeps all other items in their previous order.
 * Items of both groups stay as close to their previous positions as that allows.
 */
function inOrder(
  list: readonly unknown[],
  order: readonly unknown[],
  before: readonly unknown[],
  mergeKey: string | undefined,
  field: FieldShape = {},
): unknown[] {
  const isSame = (a: unknown, b: unknown) =>
    mergeKey === undefined
      ? a === b
      : isSameKey(a, b, mergeKey) && (!isMap(b) || hasSameSecondKey(a, b, field))
  const placeIn = (all: readonly unknown[], item: unknown) =>
    all.findIndex((one) => isSame(item, one))
  const sorted = (items: readonly unknown[], by: readonly unknown[]) =>
    items.toSorted((a, b) => placeIn(by, a) - placeIn(by, b))
  const named = sorted(
    list.filter((item) => placeIn(order, item) >= 0),
    order,
  )
  const others = sorted(
    list.filter((item) => placeIn(order, item) < 0),
    before,
  )
  const result: unknown[] = []
  while (named.length > 0 && others.length > 0) {
    const left = placeIn(before, others[0])
    const right = placeIn(before, named[0])
    const isLeft = left >= 0 && right >= 0 && left < right
    result.push((isLeft ? others : named).shift())
  }
  return [...result, ...others, ...named]
}
