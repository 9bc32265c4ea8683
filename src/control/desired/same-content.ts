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
