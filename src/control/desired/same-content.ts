/** Returns true if two values have the same canonical JSON, without creating the texts. */
export function hasSameContent(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false
    for (let at = 0; at < a.length; at++) if (!hasSameContent(a[at], b[at])) return false
    return true
  }
  if (Array.isArray(b)) return false
  return hasSameMembers(a as Record<string, unknown>, b as Record<string, unknown>)
}

/**
 * Members that are undefined count as missing. The loops create no lists of keys, and the values are plain
 * JSON: inherited members of plain objects are functions, which equal no JSON, except for `__proto__`.
 */
function hasSameMembers(a: Record<string, unknown>, b: Record<string, unknown>): boolean {
  let extra = 0
  for (const key in a) {
    const member = a[key]
    if (member === undefined) continue
    if (key === '__proto__' && !Object.hasOwn(b, key)) return false
    if (!hasSameContent(member, b[key])) return false
    extra--
  }
  for (const _ in b) extra++
  if (extra > 0) {
    for (const key in b) if (b[key] === undefined) extra--
  }
  return extra === 0
}

/**
 * Returns `before` if both have the same content (see `hasSameContent`). Otherwise replaces the unchanged parts of
 * `after` by those of `before`, so that versions share them, and returns `after`. With `keepsOrder`, the members of
 * shared parts are also in the same order, so that what is derived from `after` does not depend on `before`.
 */
export function shareContent<Value>(before: unknown, after: Value, keepsOrder = false): Value {
  // Equal texts are replaced too: the older one is in the old space of the heap already.
  if (before === after) return before as Value
  if (typeof before !== 'object' || typeof after !== 'object') return after
  if (before === null || after === null) return after
  if (Array.isArray(before) !== Array.isArray(after)) return after
  const shared = Array.isArray(before)
    ? shareItems(before, after as unknown[], keepsOrder)
    : shareMembers(before as Members, after as Members, keepsOrder)
  return shared as Value
}

function shareItems(before: unknown[], after: unknown[], keepsOrder: boolean): unknown[] {
  let isSame = before.length === after.length
  for (let at = 0; at < after.length; at++) {
    const item = shareContent(before[at], after[at], keepsOrder)
    after[at] = item
    if (item !== before[at]) isSame = false
  }
  return isSame ? before : after
}

type Members = Record<string, unknown>

function shareMembers(before: Members, after: Members, keepsOrder: boolean): Members {
  let extra = 0
  let isSame = true
  for (const key in after) {
    if (after[key] === undefined) continue
    // An object from JSON can have a member of this name, others inherit one.
    if (key === '__proto__') return !keepsOrder && hasSameContent(before, after) ? before : after
    extra--
    const member = shareContent(before[key], after[key], keepsOrder)
    after[key] = member
    if (member !== before[key]) isSame = false
  }
  for (const key in before) if (before[key] !== undefined) extra++
  if (!isSame || extra !== 0) return after
  return keepsOrder && !hasSameOrder(before, after) ? after : before
}

function hasSameOrder(a: Members, b: Members): boolean {
  const keys = Object.keys(b)
  return Object.keys(a).every((key, at) => key === keys[at])
}
