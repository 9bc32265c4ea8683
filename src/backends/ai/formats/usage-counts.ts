/** Counts of tokens as a provider's stream reports them, again and again. */
import type { JsonObject } from '../json.ts'

/** The latest value of each count; null, and a count that is left out, say nothing new. */
export function laterCounts(before: JsonObject, now: JsonObject | undefined): JsonObject {
  if (now === undefined) return before
  const told = Object.entries(now).filter(([, value]) => value !== null && value !== undefined)
  return { ...before, ...Object.fromEntries(told) }
}
