/** Which phases of a method a processor gets. */
type Phase = 'Off' | 'Request' | 'Response' | 'Full'

/**
 * Returns the phase of the most specific key that matches the method: the method itself, or else the pattern with the
 * longest text, and of two such patterns the first in alphabetical order.
 */
export function phaseOf(methods: Readonly<Record<string, Phase>>, method: string): Phase {
  if (Object.hasOwn(methods, method)) return methods[method] ?? 'Off'
  let best: string | undefined
  for (const pattern in methods) {
    if (!matches(pattern, method)) continue
    const isBetter =
      best === undefined ||
      pattern.length > best.length ||
      (pattern.length === best.length && pattern < best)
    if (isBetter) best = pattern
  }
  return best === undefined ? 'Off' : (methods[best] ?? 'Off')
}

function matches(pattern: string, method: string): boolean {
  const star = pattern.indexOf('*')
  if (star < 0) return pattern === method
  const isLongEnough = method.length >= pattern.length - 1
  return (
    isLongEnough &&
    method.startsWith(pattern.slice(0, star)) &&
    method.endsWith(pattern.slice(star + 1))
  )
}
