/**
 * Returns true only if two values have the same canonical JSON, without creating the texts. In rare cases it
 * returns false although they do: if a member is undefined.
 */
export function hasSameContent(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false
    for (let at = 0; at < a.length; at++) if (!hasSameContent(a[at], b[at])) return false
    return true
  }
  if (Array.isArray(b)) return false
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>]
  const keys = Object.keys(left)
  if (keys.length !== Object.keys(right).length) return false
  for (const key of keys) {
    if (!Object.hasOwn(right, key) || !hasSameContent(left[key], right[key])) return false
  }
  return true
}
