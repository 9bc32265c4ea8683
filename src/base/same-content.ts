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

/** Members that are undefined count as missing. */
function hasSameMembers(a: Record<string, unknown>, b: Record<string, unknown>): boolean {
  const keys = Object.keys(a)
  let found = 0
  for (const key of keys) {
    if (a[key] === undefined) continue
    if (!Object.hasOwn(b, key) || !hasSameContent(a[key], b[key])) return false
    found++
  }
  const others = Object.keys(b)
  return found === others.length || found === others.filter((key) => b[key] !== undefined).length
}
